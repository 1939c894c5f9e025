/* What pprof and OpenTelemetry's profiles have in common: places of code with their frames, and
 * samples with figures by name. Room: tools. Context: one thread.
 *
 * One rule: a row means the same whatever form it came in. A figure that a form does not carry is
 * not told (MEMLOG_FLEET_TOLD_*); its 0 means nothing. */
#ifndef MEMLOG_TOOLS_ANALYZER_FLEET_PROFILE_H
#define MEMLOG_TOOLS_ANALYZER_FLEET_PROFILE_H

#include "tools/analyzer/fleet/form.h"
#include "tools/analyzer/fleet/rows.h"
#include "tools/analyzer/formats/sender.h"

/* A file that was mapped. */
struct ml_fleet_mapping {
    uint64_t id;               /* in the form: pprof's id, OpenTelemetry's place in the table */
    uint64_t start;            /* first address */
    uint64_t offset;           /* of that in the file */
    uint32_t module, build_id; /* strings of the rows */
};

/* Frames of each place, outermost first. */
struct ml_fleet_place {
    uint64_t id;
    size_t first, count; /* in `frames` */
};

struct ml_fleet_places {
    struct ml_fleet_rows *rows;
    struct ml_fleet_place *places;
    size_t count, capacity;
    struct ml_index index; /* by id */
    struct ml_fleet_frame *frames;
    size_t frames_count, frames_capacity;
    uint64_t *path; /* of the sample at hand: places, innermost first */
    size_t path_count, path_capacity;
};

/* Places are all zero at first, but for `rows`. */
void ml_fleet_places_fini(struct ml_fleet_places *places);

/* A new place without frames. False: no memory, or there are too many. */
bool ml_fleet_place_add(struct ml_fleet_places *places, uint64_t id);

/* A frame of the newest place, innermost first; turned round by ml_fleet_place_end. */
bool ml_fleet_place_frame(struct ml_fleet_places *places, const struct ml_fleet_frame *frame);
void ml_fleet_place_end(struct ml_fleet_places *places);

/* The frame of an address without a function. `mapping` NULL: it lies in none. */
struct ml_fleet_frame ml_fleet_frame_at(
    struct ml_fleet_rows *rows, const struct ml_fleet_mapping *mapping, uint64_t address
);

/* Add a place to the path. */
bool ml_fleet_path_add(void *places, uint64_t id);

/* The stack of the path, which is empty then. `thread`: a string that stands at its root; 0: none.
 */
uint32_t ml_fleet_path_stack(struct ml_fleet_places *places, uint32_t thread);

/* A text as a string of the rows, and the last component of a path. */
uint32_t ml_fleet_text(struct ml_fleet_rows *rows, struct ml_fleet_piece text, size_t most_bytes);
uint32_t ml_fleet_file(struct ml_fleet_rows *rows, struct ml_fleet_piece path);
bool ml_fleet_is_text(struct ml_fleet_piece text, const char *word);

/* All of a process's time. Who says more is not believed. */
enum { ML_FLEET_PPM_MAX = 1000000 };

/* What is said of the report beside figures (tools/analyzer/formats/sender.h), as a text and, where
 * it is one, as a number; NULL: it is none. Of two values the first counts. */
void ml_fleet_told(
    struct ml_fleet_rows *rows,
    enum ml_sender_word word,
    struct ml_fleet_piece text,
    const uint64_t *number
);

/* The figure of that name in a profile of a heap, and what it tells. NULL: it is none of ours. */
uint64_t *ml_fleet_figure(
    struct memlog_fleet_figures *figures, struct ml_fleet_piece name, uint32_t *out_told
);

#endif
