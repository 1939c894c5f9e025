/* Dumps as what memlog sends of them. Room: tests. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "tests/host/mill/feed.h"

enum { PLACE_BYTES = 32, REGION_SHIFT = 36, PID = 1 };

/* The number of a module among the frames without a name: the first frame that lies in it. */
static size_t module_of(const struct memlog_fleet_frame *frames, size_t at) {
    size_t first = 0;
    while (frames[first].function.count_bytes > 0 ||
           strcmp(frames[first].module.data, frames[at].module.data) != 0) {
        first++;
    }
    return first;
}

static uint64_t base_of(size_t module) {
    return (uint64_t)(module + 1) << REGION_SHIFT;
}

static void put_hex(struct ml_json *json, const char *name, uint64_t number) {
    char text[PLACE_BYTES];
    (void)snprintf(text, sizeof(text), "%" PRIx64, number);
    ml_json_string_member(json, name, text);
}

/* Each module at a place of its own. */
static void
put_regions(struct ml_json *json, const struct memlog_fleet_frame *frames, size_t count) {
    ml_json_open_member(json, "process_mmaps", '{');
    ml_json_open_member(json, "vm_regions", '[');
    for (size_t i = 0; i < count; i++) {
        if (frames[i].function.count_bytes > 0 || module_of(frames, i) != i) {
            continue;
        }
        ml_json_open(json, '{');
        put_hex(json, "sa", base_of(i));
        put_hex(json, "sz", (uint64_t)1 << REGION_SHIFT);
        put_hex(json, "lb", base_of(i));
        ml_json_string_member(json, "mf", frames[i].module.data);
        ml_json_string_member(json, "id", frames[i].build_id.data);
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
    ml_json_close(json, '}');
}

static void put_frame(struct ml_json *json, const struct memlog_fleet_frame *frames, size_t at) {
    char place[PLACE_BYTES];
    const struct memlog_fleet_frame *frame = &frames[at];
    const bool has_name = frame->function.count_bytes > 0;
    if (!has_name) {
        (void)snprintf(
            place, sizeof(place), "pc:%" PRIx64, base_of(module_of(frames, at)) + frame->offset
        );
    }
    ml_json_open(json, '{');
    ml_json_number_member(json, "id", at + 1);
    ml_json_string_member(json, "string", has_name ? frame->function.data : place);
    ml_json_close(json, '}');
}

static void put_maps(
    struct ml_json *json,
    const struct fleet_program *program,
    const struct memlog_fleet_frame *frames
) {
    ml_json_open_member(json, "maps", '{');
    ml_json_open_member(json, "nodes", '[');
    for (size_t i = 0; i < program->stacks_count; i++) {
        ml_json_open(json, '{');
        ml_json_number_member(json, "id", i + 1);
        ml_json_number_member(json, "name_sid", program->stacks[i].frame);
        if (program->stacks[i].parent > 0) {
            ml_json_number_member(json, "parent", program->stacks[i].parent);
        }
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
    ml_json_open_member(json, "types", '[');
    ml_json_close(json, ']');
    ml_json_open_member(json, "strings", '[');
    for (size_t i = 0; i < program->frames_count; i++) {
        put_frame(json, frames, i);
    }
    ml_json_close(json, ']');
    ml_json_close(json, '}');
}

/* One figure of each row; the stack's number, or a 0, where it is none of the figures. */
static void
put_column(struct ml_json *json, const char *name, const struct fleet_dump *dump, int figure) {
    ml_json_open_member(json, name, '[');
    for (size_t i = 0; i < dump->count; i++) {
        const struct memlog_fleet_figures *figures = &dump->rows[i].figures;
        const uint64_t values[] = {
            figures->live_bytes,
            figures->live_blocks,
            figures->peak_bytes,
            figures->peak_blocks,
            figures->total_bytes,
            figures->total_blocks,
            dump->rows[i].stack,
            0};
        ml_json_number(json, values[figure]);
    }
    ml_json_close(json, ']');
}

static void put_columns(
    struct ml_json *json,
    const char *member,
    const char *const *names,
    int count,
    int first,
    const struct fleet_dump *dump
) {
    enum { STACKS = 6, TYPES };
    ml_json_open_member(json, member, '{');
    ml_json_open_member(json, "malloc", '{');
    put_column(json, "nodes", dump, STACKS);
    put_column(json, "types", dump, TYPES);
    for (int i = 0; i < count; i++) {
        put_column(json, names[i], dump, first + i);
    }
    ml_json_close(json, '}');
    ml_json_close(json, '}');
}

static void put_process(
    struct ml_json *json,
    const struct fleet_program *program,
    const struct memlog_fleet_frame *frames,
    const struct fleet_dump *dump
) {
    static const char *const live[] = {"sizes", "counts"};
    static const char *const ours[] = {"peak_sizes", "peak_counts", "total_sizes", "total_counts"};
    ml_json_open(json, '{');
    ml_json_string_member(json, "ph", "v");
    ml_json_number_member(json, "pid", PID);
    ml_json_open_member(json, "args", '{');
    ml_json_open_member(json, "dumps", '{');
    put_regions(json, frames, program->frames_count);
    ml_json_open_member(json, "heaps_v2", '{');
    put_maps(json, program, frames);
    put_columns(json, "allocators", live, 2, 0, dump);
    ml_json_close(json, '}');
    ml_json_open_member(json, "memlog", '{');
    ml_json_number_member(json, "version", 1);
    ml_json_string_member(json, "role", "main");
    ml_json_number_member(json, "private_bytes", dump->sums.live_bytes);
    put_columns(json, "heaps", ours, 4, 2, dump);
    ml_json_close(json, '}');
    ml_json_close(json, '}');
    ml_json_close(json, '}');
    ml_json_close(json, '}');
}

static void put_head(
    struct ml_json *json,
    const struct fleet_program *program,
    const char *build_id,
    const struct fleet_dump *dump
) {
    char text[FLEET_WORD_BYTES];
    ml_json_open_member(json, "metadata", '{');
    ml_json_open_member(json, "memlog", '{');
    ml_json_number_member(json, "version", 1);
    ml_json_string_member(json, "program", program->name);
    ml_json_string_member(json, "build_id", build_id);
    fleet_host_name(dump->host, text);
    ml_json_string_member(json, "host", text);
    (void)snprintf(text, sizeof(text), "1.%u", (unsigned)dump->build);
    ml_json_string_member(json, "program_version", text);
    ml_json_number_member(json, "time_ns", dump->time_ms * 1000000);
    ml_json_string_member(json, "reason", "threshold");
    ml_json_string_member(json, "trigger", dump->control ? "control" : "live");
    ml_json_bool_member(json, "complete", true);
    ml_json_bool_member(json, "covered", true);
    ml_json_number_member(json, "sampling_bytes", 1);
    ml_json_number_member(json, "processes", 1);
    ml_json_close(json, '}');
    ml_json_close(json, '}');
}

static bool
put_body(const struct fleet_program *program, const struct fleet_dump *dump, FILE *out) {
    char build_id[FLEET_WORD_BYTES];
    fleet_build_id(dump->program, dump->build, build_id);
    struct memlog_fleet_frame *frames = fleet_frames(program, dump->build, build_id);
    struct ml_json json = ml_json_over(out);
    if (frames == NULL) {
        return false;
    }
    ml_json_open(&json, '{');
    ml_json_open_member(&json, "traceEvents", '[');
    ml_json_open(&json, '{');
    ml_json_string_member(&json, "ph", "M");
    ml_json_string_member(&json, "name", "process_name");
    ml_json_number_member(&json, "pid", PID);
    ml_json_open_member(&json, "args", '{');
    ml_json_string_member(&json, "name", program->name);
    ml_json_close(&json, '}');
    ml_json_close(&json, '}');
    put_process(&json, program, frames, dump);
    ml_json_close(&json, ']');
    put_head(&json, program, build_id, dump);
    ml_json_close(&json, '}');
    free(frames);
    return true;
}

bool feed_bodies(
    const struct fleet *fleet,
    const struct fleet_plan *plan,
    uint64_t from,
    uint64_t until,
    FILE *out
) {
    struct fleet_dump dump = {.rows = NULL};
    bool done = true;
    for (; done && from < until; from++) {
        char *text = NULL;
        size_t count = 0;
        FILE *body = open_memstream(&text, &count);
        done = body != NULL && fleet_make(fleet, plan, from, &dump) &&
               put_body(&fleet->programs[dump.program], &dump, body);
        done = body != NULL && fclose(body) == 0 && done;
        done = done && fprintf(out, "%zu %s\n", count, dump.guid) > 0 &&
               fwrite(text, 1, count, out) == count;
        free(text);
    }
    fleet_dump_fini(&dump);
    return done && fflush(out) == 0;
}
