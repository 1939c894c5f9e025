#include "host/collect/ids.h"

#include <string.h>

#include <gnutls/crypto.h>

enum { PARTS_BYTES = 1024, HMAC_BYTES = 32 };

/* Parts with their lengths in front, so that no two lists of parts are the same bytes. */
struct parts {
    uint8_t bytes[PARTS_BYTES];
    size_t count;
};

static void put_number(struct parts *parts, uint64_t number) {
    memcpy(parts->bytes + parts->count, &number, sizeof(number));
    parts->count += sizeof(number);
}

static void put_string(struct parts *parts, struct ml_string string) {
    put_number(parts, string.count_bytes);
    if (string.count_bytes > 0) {
        memcpy(parts->bytes + parts->count, string.data, string.count_bytes);
    }
    parts->count += string.count_bytes;
}
_Static_assert(
    PARTS_BYTES >= MEMLOG_FLEET_FRAME_FUNCTION_LIMIT + MEMLOG_FLEET_FRAME_MODULE_LIMIT +
                       MEMLOG_FLEET_FRAME_BUILD_ID_LIMIT + 6 * sizeof(uint64_t),
    "a frame fits"
);

static int64_t id_of(const uint8_t *key, const struct parts *parts) {
    uint8_t digest[HMAC_BYTES];
    uint64_t id = 0;
    (void)gnutls_hmac_fast(
        GNUTLS_MAC_SHA256, key, ML_TEAM_KEY_BYTES, parts->bytes, parts->count, digest
    );
    memcpy(&id, digest, sizeof(id));
    id >>= 1;
    return id != 0 ? (int64_t)id : 1;
}

enum kind { KIND_FRAME = 1, KIND_STACK, KIND_NAMES };

int64_t
ml_id_of_frame(const uint8_t key[ML_TEAM_KEY_BYTES], const struct memlog_fleet_frame *frame) {
    struct parts parts = {.count = 0};
    put_number(&parts, KIND_FRAME);
    put_string(&parts, frame->function);
    put_string(&parts, frame->module);
    put_string(&parts, frame->build_id);
    put_number(&parts, frame->offset);
    return id_of(key, &parts);
}

int64_t ml_id_of_stack(const uint8_t key[ML_TEAM_KEY_BYTES], int64_t parent, int64_t frame) {
    struct parts parts = {.count = 0};
    put_number(&parts, KIND_STACK);
    put_number(&parts, (uint64_t)parent);
    put_number(&parts, (uint64_t)frame);
    return id_of(key, &parts);
}

int64_t ml_id_of_names(
    const uint8_t key[ML_TEAM_KEY_BYTES], int64_t parent, const struct memlog_fleet_frame *frame
) {
    struct parts parts = {.count = 0};
    put_number(&parts, KIND_NAMES);
    put_number(&parts, (uint64_t)parent);
    put_string(&parts, frame->function.count_bytes > 0 ? frame->function : frame->module);
    return id_of(key, &parts);
}
