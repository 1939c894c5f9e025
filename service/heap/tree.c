#include "service/heap/tree.h"

void ml_tree_init(struct ml_tree *tree) {
    *tree = (struct ml_tree){.epoch = 1};
}
