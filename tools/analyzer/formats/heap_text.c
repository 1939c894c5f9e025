#include "tools/analyzer/formats/heap_text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/printable.h"
#include "ipc/wire/event.h"
#include "tools/analyzer/progress/progress.h"

/* Made-up places begin here and keep this distance, so that no two files meet. */
static const uint64_t first_address = UINT64_C(0x100000000);
enum { PAGE_BYTES = 4096 };

/* Where a file stands. */
struct spot {
    uint64_t bias; /* address = ELF address + bias */
    uint64_t start, end;
    uint64_t file_offset; /* of start */
};

static uint64_t page_down(uint64_t address) {
    return address & ~(uint64_t)(PAGE_BYTES - 1);
}

/* The file's code as /proc/PID/maps has it: where its segment is not known, the whole file as one
 * region. */
static struct spot spot_of(const struct ml_code_file *file, uint64_t bias) {
    struct spot spot = {.bias = bias};

    if (file->text.size_bytes > 0) {
        spot.start = page_down(bias + file->text.address);
        spot.end = page_down(bias + file->text.address + file->text.size_bytes + PAGE_BYTES - 1);
        spot.file_offset = page_down(file->text.offset);
    } else {
        spot.start = file->start - (uint64_t)file->bias + bias;
        spot.end = spot.start + (file->end - file->start);
    }
    return spot;
}

/* For one process the files' own addresses; for several, made-up ones, one file behind the other. A
 * program that is not position-independent keeps its own, which are lower. */
static void spots_find(const struct ml_stacks *stacks, struct spot *out_spots) {
    uint64_t next = first_address;

    for (size_t i = 0; i < stacks->files_count; i++) {
        const struct ml_code_file *file = &stacks->files[i];
        uint64_t bias = (uint64_t)file->bias;

        if (stacks->profile->processes_count > 1 && bias != 0) {
            bias = next - (file->start - bias);
            next += page_down(file->end - file->start) + 16 * (uint64_t)PAGE_BYTES;
        }
        out_spots[i] = spot_of(file, bias);
    }
}

static void put_stack(
    const struct ml_stacks *stacks,
    const struct spot *spots,
    const struct ml_profile_totals *own,
    uint32_t node,
    FILE *out
) {
    bool has_frame = false;

    fprintf(
        out,
        "%6" PRIu64 ": %8" PRIu64 " [%6" PRIu64 ": %8" PRIu64 "] @",
        own->live_blocks,
        own->live_bytes,
        own->total_blocks,
        own->total_bytes
    );
    for (; node != ML_STACKS_NONE; node = stacks->nodes[node].parent) {
        const struct ml_place *place = &stacks->places[stacks->nodes[node].place];
        uint64_t bias = place->file == ML_STACKS_NONE ? 0 : spots[place->file].bias;

        if (place->kind == ML_FRAME_ADDRESS) {
            /* Readers take 1 off again: a return address stands behind its call. */
            fprintf(out, " 0x%016" PRIx64, place->offset + bias + 1);
            has_frame = true;
        }
    }
    /* Some readers ignore a line without an address. */
    fputs(has_frame ? "\n" : " 0x0000000000000001\n", out);
}

enum ml_status ml_heap_text_write(const struct ml_stacks *stacks, FILE *out) {
    struct spot *spots = calloc(stacks->files_count + 1, sizeof *spots);
    const struct ml_profile_totals *tree = &stacks->profile->tree;

    if (!spots) {
        return ML_ENV_MEMORY;
    }
    spots_find(stacks, spots);
    fprintf(
        out,
        "heap profile: %6" PRIu64 ": %8" PRIu64 " [%6" PRIu64 ": %8" PRIu64 "] @ heapprofile\n",
        tree->live_blocks,
        tree->live_bytes,
        tree->total_blocks,
        tree->total_bytes
    );
    for (size_t i = 0; i < stacks->tree.count; i++) {
        const struct ml_stack *stack = &stacks->tree.stacks[i];
        ml_progress_pieces("Writing stacks", i, stacks->tree.count, NULL);
        put_stack(stacks, spots, &stack->own, stack->node, out);
    }
    fputs("\nMAPPED_LIBRARIES:\n", out);
    for (size_t i = 0; i < stacks->files_count; i++) {
        /* Only files: a reader would look for the others, and a line break would be one. */
        if (stacks->files[i].path.bytes[0] == '/') {
            fprintf(
                out,
                "%08" PRIx64 "-%08" PRIx64 " r-xp %08" PRIx64 " 00:00 0 ",
                spots[i].start,
                spots[i].end,
                spots[i].file_offset
            );
            ml_printable_put_text(out, stacks->files[i].path.bytes);
            putc('\n', out);
        }
    }
    free(spots);
    return ML_OK;
}
