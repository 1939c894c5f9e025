#include "tools/analyzer/upload/relocate.h"

#include <stdbool.h>

#include "ipc/wire/event.h"

static bool is_file(
    const struct ml_code_file *file,
    const struct ml_profile_process *process,
    const struct ml_profile_module *module
) {
    return ml_profile_text_eq(file->path, ml_profile_module_path(process, module)) &&
           ml_profile_text_eq(file->build_id, module->build_id);
}

static uint64_t base_of(size_t number) {
    const size_t last = ML_RELOCATE_MODULES - 2;
    return ((uint64_t)(number < last ? number : last) + 1) << ML_RELOCATE_BITS;
}

static void move_module(struct ml_profile_module *module, uint64_t base) {
    const uint64_t by = base - (uint64_t)module->bias;

    module->start += by;
    module->end += by;
    module->bias = (int64_t)base;
}

/* Those without a frame in any stack lie behind the others. */
static void
move_modules(const struct ml_stacks *stacks, struct ml_profile_process *process, size_t *others) {
    for (size_t i = 0; i < process->modules_count; i++) {
        struct ml_profile_module *module = &process->modules[i];
        size_t number = 0;

        while (number < stacks->files_count && !is_file(&stacks->files[number], process, module)) {
            number++;
        }
        number = number < stacks->files_count ? number : stacks->files_count + (*others)++;
        move_module(module, base_of(number));
    }
}

static void move_file(struct ml_code_file *file, uint64_t base) {
    const uint64_t by = base - (uint64_t)file->bias;

    file->start += by;
    file->end += by;
    file->bias = (int64_t)base;
}

void ml_relocate(struct ml_profile *profile, struct ml_stacks *stacks) {
    static const char no_file[] = "[code in no file]";
    const struct ml_profile_text nowhere = {.bytes = no_file, .count_bytes = sizeof no_file - 1};
    size_t others = 0;

    for (size_t i = 0; i < profile->processes_count; i++) {
        move_modules(stacks, &profile->processes[i], &others);
    }
    for (size_t i = 0; i < stacks->files_count; i++) {
        move_file(&stacks->files[i], base_of(i));
    }
    for (size_t i = 0; i < stacks->places_count; i++) {
        struct ml_place *place = &stacks->places[i];
        if (place->kind == ML_FRAME_ADDRESS && place->file == ML_STACKS_NONE) {
            place->offset = 0;
            place->process = 0;
            if (place->symbols_count == 0) {
                place->kind = ML_PLACE_GROUP;
                place->name = nowhere;
            }
        }
    }
}
