/* Compiled with every stack realigned. */
#define ML_TREE_SET ml_tree_realigned
#define ML_TREE_ALIGNED
#include "tests/client/unwind_tree_set.h"
