/* Mapping records between their lane's queue and the client's mappings. A queued event has one
 * address and one size; whole pages leave room in both for the rest. */
#include "service/session/client_internal.h"

enum { KIND_BITS = 4, KIND_MASK = (1 << KIND_BITS) - 1 };
_Static_assert(
    (int)ML_MAPPING_KIND_COUNT <= 1 << KIND_BITS &&
        ML_MAPPING_FLAGS << KIND_BITS < (int)ML_MAPPING_PAGE_BYTES &&
        (int)ML_STRINGS_MAX <= (int)ML_NODES_MAX,
    "kind and flags fit below an address of whole pages, and a string's id where a node's is"
);

enum ml_status
ml_client_queue_mapping(struct ml_client *client, uint32_t lane, const struct ml_event *event) {
    const struct ml_event_mapping *mapping = &event->mapping;
    const uint64_t pages = mapping->length_bytes / ML_MAPPING_PAGE_BYTES;
    const struct ml_timed timed = {
        .time = event->time,
        .key = mapping->address | mapping->flags << KIND_BITS | mapping->kind,
        .size_bytes = pages < UINT32_MAX ? (uint32_t)pages : UINT32_MAX, /* 16 TiB */
        .node = (mapping->kind == ML_MAPPING_NAME ? mapping->string_id : mapping->node) &
                (ML_NODES_MAX - 1),
        .kind = ML_EVENT_MAPPING};
    uint32_t late = 0;
    /* It changes no figure of the heap, so it may come late. */
    return ml_sequencer_push(&client->sequencer, lane, &timed, NULL, 0, &late);
}

void ml_client_apply_mapping(
    struct ml_client *client, const struct ml_timed *timed, const void *lane
) {
    const uint32_t kind = timed->key & KIND_MASK;
    const bool is_name = kind == ML_MAPPING_NAME;
    const struct ml_mapping_record record = {
        .ticks = timed->time,
        .lane = lane,
        .mapping = {
            .kind = kind,
            .address = timed->key & ~(uint64_t)(ML_MAPPING_PAGE_BYTES - 1),
            .length_bytes = (uint64_t)timed->size_bytes * ML_MAPPING_PAGE_BYTES,
            .flags = (uint32_t)(timed->key >> KIND_BITS) & ML_MAPPING_FLAGS,
            .node = is_name ? 0 : timed->node,
            .string_id = is_name ? timed->node : 0}};
    ml_mappings_apply(&client->mappings, &record);
}
