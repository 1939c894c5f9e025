/* Compiled as for a debugger. */
#define ML_TREE_SET ml_tree_unoptimised
#include "tests/client/unwind/tree_set.h"
