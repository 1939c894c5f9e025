#include "client/recording/mapping_names.h"

#include <stdatomic.h>
#include <string.h>

#include "client/recording/record.h"
#include "client/unwind/foreign.h"

enum { NAMES_MAX = 64 }; /* Chromium has some 20; of more than these each use is a new string */

enum state { STATE_FREE, STATE_WRITING, STATE_READY };

struct name {
    _Atomic uint32_t state;
    uint32_t id;
    uint64_t stream; /* in which it has that id */
    char text[ML_MAPPING_NAME_BYTES];
};

static struct name names[NAMES_MAX];

/* What tells a profile from any other of this process and of those that it was forked from. */
static uint64_t stream_of(const struct ml_lane *lane) {
    return (uint64_t)ml_process.generation << 32 | lane->profile;
}

static bool copy(char out_text[ML_MAPPING_NAME_BYTES], const char *name) {
    struct ml_foreign foreign = {0};
    size_t length = 0;
    if (!ml_foreign_string(&foreign, name, &length) || length >= ML_MAPPING_NAME_BYTES) {
        return false;
    }
    memset(out_text, 0, ML_MAPPING_NAME_BYTES); /* texts are compared whole */
    memcpy(out_text, name, length);
    return true;
}

/* The entry of that text, which is locked; NULL: another thread has it, or there is no room. */
static struct name *lock(const char text[ML_MAPPING_NAME_BYTES]) {
    for (uint32_t i = 0; i < NAMES_MAX; i++) {
        uint32_t seen = atomic_load_explicit(&names[i].state, memory_order_acquire);
        if (seen == STATE_WRITING ||
            (seen == STATE_READY && memcmp(names[i].text, text, ML_MAPPING_NAME_BYTES) != 0)) {
            continue;
        }
        return atomic_compare_exchange_strong(&names[i].state, &seen, STATE_WRITING) ? &names[i]
                                                                                     : NULL;
    }
    return NULL;
}

bool ml_mapping_name_id(struct ml_lane *lane, const char *name, uint32_t *out_id) {
    char text[ML_MAPPING_NAME_BYTES];
    *out_id = 0;
    if (name == NULL) {
        return true;
    }
    if (!copy(text, name)) {
        return false;
    }
    struct name *entry = lock(text);
    if (entry != NULL && entry->id != 0 && entry->stream == stream_of(lane)) {
        *out_id = entry->id;
    } else {
        *out_id = ml_record_string(lane, (const uint8_t *)text, (uint32_t)strlen(text));
    }
    if (entry != NULL) {
        memcpy(entry->text, text, sizeof(text));
        entry->stream = stream_of(lane);
        entry->id = *out_id;
        atomic_store_explicit(&entry->state, STATE_READY, memory_order_release);
    }
    return *out_id != 0;
}
