#include "client/stream/module_record.h"

#include "client/state/process.h"

/* Which profile has the module's record; NULL for an id that has no place. */
static _Atomic uint32_t *told_of(uint32_t module_id) {
    return module_id >= 1 && module_id <= ML_MODULES_TABLE_MAX
               ? &ml_process.unwind->modules.records[module_id - 1].told
               : NULL;
}

void ml_module_record(void *lane, uint32_t module_id, const struct ml_image *image) {
    struct ml_event event = {.kind = ML_EVENT_MODULE};
    event.module.id = module_id;
    event.module.start = image->start;
    event.module.end = image->end;
    event.module.bias = image->bias;
    event.module.build_id = image->build_id;
    event.module.build_id_bytes = image->build_id_bytes <= ML_BUILD_ID_MAX_BYTES
                                      ? image->build_id_bytes
                                      : ML_BUILD_ID_MAX_BYTES;
    size_t length = 0;
    while (image->path[length] != 0) {
        length++;
    }
    const size_t cut = length > ML_PATH_MAX_BYTES ? length - ML_PATH_MAX_BYTES : 0;
    event.module.path = (const uint8_t *)image->path + cut;
    event.module.path_bytes = (uint32_t)(length - cut);
    event.module.code_address = image->code_address;
    event.module.code_offset = image->code_offset;
    ml_lane_record(lane, &event);
    _Atomic uint32_t *told = told_of(module_id);
    if (told != NULL) {
        atomic_store_explicit(
            told, ((const struct ml_lane *)lane)->profile + 1, memory_order_release
        );
    }
}

void ml_module_define(struct ml_lane *lane, uint32_t module_id, uint64_t address) {
    const _Atomic uint32_t *told = told_of(module_id);
    if (told == NULL || atomic_load_explicit(told, memory_order_acquire) == lane->profile + 1) {
        return;
    }
    struct ml_image image;
    if (ml_image_find(address, &image) &&
        image.start == ml_process.unwind->modules.records[module_id - 1].start) {
        ml_module_record(lane, module_id, &image);
    }
}
