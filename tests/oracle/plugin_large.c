/* The same size of library as plugin_small, laid out differently: where one has a call, the other
 * has other frames. Recipes and symbols kept from one are wrong for the other. */
#include <stdlib.h>
#include <string.h>

#include "tests/oracle/plugin.h"

PLUGIN_PATH void *large_innermost(size_t size, char *room);
PLUGIN_PATH void *large_alloc(size_t size);
PLUGIN_PATH void *plugin_make(size_t size);

PLUGIN_PATH void *large_innermost(size_t size, char *room) {
    memset(room, (int)size, 16);
    return malloc(size);
}

PLUGIN_PATH void *large_alloc(size_t size) {
    char room[1000];
    return large_innermost(size, room);
}

PLUGIN_PATH void *plugin_make(size_t size) {
    char *room = __builtin_alloca(size % 512 + 16);
    room[0] = 1;
    return large_alloc(size);
}
