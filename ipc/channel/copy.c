#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/channel/channel.h"

/* What was decoded can be encoded and decoded again: any other status is a bug of ours. */
static void must(enum ml_status status) {
    if (status != ML_OK) {
        abort();
    }
}

void *ml_message_copy(const struct ml_message_type *type, const void *message) {
    const struct ml_codec *codec = type->codec;
    /* calloc'ed memory is aligned for anything; the arena behind the value for 8 bytes. */
    const size_t value_bytes = ((size_t)type->size_bytes + 7) & ~(size_t)7;
    size_t body_bytes = 0;
    size_t arena_bytes = 0;
    struct ml_handles handles = {0};
    struct ml_handles declared = {0};
    must(codec->encode(type, message, NULL, 0, &body_bytes, &handles));
    uint8_t *body = malloc(body_bytes);
    if (body == NULL) {
        return NULL;
    }
    must(codec->encode(type, message, body, body_bytes, &body_bytes, &handles));
    must(codec->check(type, body, body_bytes, &arena_bytes, &declared));
    uint8_t *copy = calloc(1, value_bytes + arena_bytes + body_bytes);
    if (copy != NULL) {
        uint8_t *arena = copy + value_bytes;
        uint8_t *kept = memcpy(arena + arena_bytes, body, body_bytes);
        must(codec->decode(type, kept, body_bytes, &handles, arena, arena_bytes, copy));
    }
    free(body);
    return copy;
}
