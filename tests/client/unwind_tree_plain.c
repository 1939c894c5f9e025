/* Compiled without frame pointers. */
#define ML_TREE_SET ml_tree_plain
#include "tests/client/unwind_tree_set.h"
