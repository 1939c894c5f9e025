/* Compiled without frame pointers. */
#define ML_TREE_SET ml_tree_plain
#include "tests/client/unwind/tree_set.h"
