/* Compiled with frame pointers. */
#define ML_TREE_SET ml_tree_framed
#include "tests/client/unwind/tree_set.h"
