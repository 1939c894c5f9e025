/* A library that allocates two calls deep, in small frames. */
#include <stdlib.h>

#include "tests/oracle/plugin.h"

PLUGIN_PATH void *small_alloc(size_t size);
PLUGIN_PATH void *plugin_make(size_t size);

PLUGIN_PATH void *small_alloc(size_t size) {
    return malloc(size);
}

PLUGIN_PATH void *plugin_make(size_t size) {
    return small_alloc(size);
}
