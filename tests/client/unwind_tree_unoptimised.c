/* Compiled as for a debugger. */
#define ML_TREE_SET ml_tree_unoptimised
#include "tests/client/unwind_tree_set.h"
