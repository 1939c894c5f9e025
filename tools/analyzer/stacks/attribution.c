#include "tools/analyzer/stacks/attribution.h"

#include <string.h>

#include "ipc/wire/event.h"
#include "tools/analyzer/names/allocator_frames.h"

/* So many frames without names are skipped for a caller that has one. They can be static functions
 * of a file that names its exported ones alone. */
enum { NAMELESS_PASSED = 3 };

bool ml_attribution_is_common_name(const char *name) {
    static const char *const names[] = {
        "libc.so",
        "libc-",
        "libstdc++.so",
        "libc++.so",
        "libgcc_s.so",
        "ld-linux",
        "libpthread",
        "libm.so"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(name, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

bool ml_attribution_is_common(const struct ml_code_file *file) {
    return ml_attribution_is_common_name(basename(file->path.bytes));
}

/* Kinds of frames, by how well they explain a block, worst first. */
enum frame { FRAME_WORD, FRAME_COMMON, FRAME_PLUMBING, FRAME_NAMELESS, FRAME_ASKER };

static bool is_asking(const char *name) {
    return name[0] != '\0' && !ml_is_allocator_frame(name);
}

/* The kind of a place. With FRAME_ASKER *out_symbol is the function that is attributed. */
static enum frame
frame_of(const struct ml_stacks *stacks, const struct ml_place *place, size_t *out_symbol) {
    *out_symbol = 0;
    if (place->kind == ML_FRAME_SCOPE || place->kind == ML_PLACE_FUNCTION) {
        return is_asking(place->name.bytes) ? FRAME_ASKER : FRAME_PLUMBING;
    }
    if (place->kind != ML_FRAME_ADDRESS && place->kind != ML_FRAME_SCRIPT) {
        return FRAME_WORD;
    }
    if (place->file != ML_STACKS_NONE && ml_attribution_is_common(&stacks->files[place->file])) {
        return FRAME_COMMON;
    }
    for (size_t i = 0; i < place->symbols_count; i++) {
        if (is_asking(stacks->symbols[place->first_symbol + i].function)) {
            *out_symbol = i;
            return FRAME_ASKER;
        }
    }
    return place->symbols_count > 0 && stacks->symbols[place->first_symbol].function[0]
               ? FRAME_PLUMBING
               : FRAME_NAMELESS;
}

struct ml_attribution ml_attribution_find(const struct ml_stacks *stacks, uint32_t node) {
    struct ml_attribution best = {.node = node};
    enum frame best_frame = FRAME_WORD;
    unsigned nameless = 0;
    uint32_t nameless_file = ML_STACKS_NONE;

    for (; node != ML_STACKS_NONE && nameless <= NAMELESS_PASSED;
         node = stacks->nodes[node].parent) {
        size_t symbol = 0;
        const enum frame frame =
            frame_of(stacks, &stacks->places[stacks->nodes[node].place], &symbol);
        const uint32_t file = stacks->places[stacks->nodes[node].place].file;
        if (frame == FRAME_ASKER && nameless > 0 && file != nameless_file) {
            return best; /* attribute the frame without a name, not its caller in another file */
        }
        if (frame == FRAME_ASKER) {
            return (struct ml_attribution){.node = node, .symbol = symbol, .is_named = true};
        }
        if (frame > best_frame) {
            best = (struct ml_attribution){.node = node, .symbol = symbol};
            best_frame = frame;
        }
        if (frame == FRAME_NAMELESS) {
            nameless_file = nameless == 0 ? file : nameless_file;
            nameless++;
        }
    }
    return best;
}
