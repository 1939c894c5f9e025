/* Compiled with frame pointers. */
#define ML_TREE_SET ml_tree_framed
#include "tests/client/unwind_tree_set.h"
