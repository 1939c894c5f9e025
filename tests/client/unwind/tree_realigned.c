/* Compiled with every stack realigned. */
#define ML_TREE_SET ml_tree_realigned
#define ML_TREE_ALIGNED
#include "tests/client/unwind/tree_set.h"
