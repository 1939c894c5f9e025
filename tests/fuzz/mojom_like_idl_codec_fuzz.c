/* A body of any message of any contract: the first byte says which. */
#include <stdlib.h>
#include <string.h>

#include "mojom_like_idl/contracts/heap_client_mojom.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "tests/fuzz/fuzz.h"
#include "tests/mojom_like_idl/golden/example_mojom.h"

static const struct ml_interface *const interfaces[] = {
    &memlog_example_keeper_interface,
    &memlog_client_host_for_client_interface,
    &memlog_host_host_interface,
    &memlog_service_service_interface,
    &memlog_service_host_for_service_interface,
};

/* The message with this number, over all interfaces, requests and replies; NULL: behind the last.
 */
static const struct ml_message_type *message_type(unsigned number) {
    for (size_t i = 0; i < sizeof(interfaces) / sizeof(interfaces[0]); i++) {
        for (uint32_t m = 0; m < interfaces[i]->method_count; m++) {
            const struct ml_method *method = &interfaces[i]->methods[m];
            if (number-- == 0) {
                return method->request;
            }
            if (method->reply != NULL && number-- == 0) {
                return method->reply;
            }
        }
    }
    return NULL;
}

static void demand(int promise) {
    if (!promise) {
        abort();
    }
}

/* What is checked can be decoded, and encodes to the bytes that it came from. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    const struct ml_message_type *type = count_bytes == 0 ? NULL : message_type(data[0]);
    if (type == NULL) {
        return 0;
    }
    const uint8_t *body = data + 1;
    const size_t body_bytes = count_bytes - 1;
    size_t arena_bytes = 0;
    struct ml_handles handles = {0};
    const enum ml_status status =
        type->codec->check(type, body, body_bytes, &arena_bytes, &handles);
    if (status != ML_OK) {
        demand(ml_status_family(status) == ML_FAMILY_PEER);
        return 0;
    }
    for (uint32_t i = 0; i < handles.count; i++) {
        handles.fds[i] = 100 + (int)i;
    }
    void *value = malloc(type->size_bytes);
    void *arena = malloc(arena_bytes + 1);
    uint8_t *again = malloc(body_bytes + 1);
    demand(value != NULL && arena != NULL && again != NULL);
    demand(
        type->codec->decode(type, body, body_bytes, &handles, arena, arena_bytes, value) == ML_OK
    );
    size_t again_bytes = 0;
    struct ml_handles again_handles = {0};
    const enum ml_status encoded =
        type->codec->encode(type, value, again, body_bytes + 1, &again_bytes, &again_handles);
    /* A message of an older version comes back in the newest form, which is longer. */
    if (encoded == ML_OK && again_bytes == body_bytes) {
        demand(memcmp(again, body, body_bytes) == 0 && again_handles.count == handles.count);
    } else {
        demand(encoded == ML_BUG_SPACE || (encoded == ML_OK && again_bytes > body_bytes));
    }
    free(again);
    free(arena);
    free(value);
    return 0;
}
