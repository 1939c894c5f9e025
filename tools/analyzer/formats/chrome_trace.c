#include "tools/analyzer/formats/chrome_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "tools/analyzer/formats/chrome_heap.h"
#include "tools/analyzer/formats/chrome_memory.h"
#include "tools/analyzer/formats/chrome_metadata.h"
#include "tools/analyzer/formats/gzip_stream.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/progress/progress.h"

/* Above PID_MAX_LIMIT (2^22), so that no process can have it: for former images of a pid, and for
 * merged processes. */
enum { PID_FORMER = 1 << 30, PID_OTHERS = 4999999 };

/* One process of one dump. */
struct writer {
    struct ml_json json;
    const struct ml_profile *profile;
    const struct ml_stacks *stacks;
    size_t process; /* its place in the profile */
    enum ml_metric metric;
    bool lists_regions;
    bool tells_heaps;
    bool is_upload;
    uint64_t left_bytes, left_blocks; /* of the process's live ones: it has left the tree */
    uint64_t pid;
    struct ml_chrome_numbers *numbers;
    uint64_t *file_biases;
    bool *files_needed; /* has a frame without a name; NULL: write all */
};

static bool is_module_of(
    const struct ml_profile_process *process,
    const struct ml_profile_module *module,
    const struct ml_code_file *file
) {
    return ml_profile_text_eq(ml_profile_module_path(process, module), file->path);
}

/* Identifies a heap: of all processes together, one each. */
static uint64_t guid_of(const struct writer *writer, uint32_t heap) {
    return ((uint64_t)(heap + 1) << 32) + writer->pid;
}

static void
put_allocator_of(struct writer *writer, uint32_t heap, const struct ml_profile_totals *totals) {
    struct ml_json *json = &writer->json;
    const struct ml_profile_process *process = &writer->profile->processes[writer->process];
    char name[ML_CHROME_HEAP_NAME_BYTES];

    ml_json_open_member(json, ml_chrome_heap_name(process, heap, name), '{');
    ml_chrome_hex_member(json, "guid", guid_of(writer, heap));
    ml_json_open_member(json, "attrs", '{');
    ml_chrome_scalar(json, "size", "bytes", ml_metric_bytes(totals, writer->metric));
    ml_chrome_scalar(json, "object_count", "objects", ml_metric_blocks(totals, writer->metric));
    if (totals->peak_bytes > 0) {
        ml_chrome_scalar(json, "peak_size", "bytes", totals->peak_bytes);
    }
    ml_json_close(json, '}');
    ml_json_close(json, '}');
}

/* Whether the process's list is by heap and type. */
static bool has_heaps(const struct writer *writer) {
    return writer->stacks->is_detailed || (writer->tells_heaps && writer->stacks->details &&
                                           writer->stacks->details[writer->process].stacks);
}

static const struct ml_stack_list *list_of(const struct writer *writer) {
    const struct ml_stacks *stacks = writer->stacks;

    return has_heaps(writer) && !stacks->is_detailed ? &stacks->details[writer->process]
                                                     : &stacks->processes[writer->process];
}

/* The viewer shows heap details only of what stands here, too. */
static void put_allocators(struct writer *writer) {
    struct ml_json *json = &writer->json;
    const struct ml_profile_process *process = &writer->profile->processes[writer->process];

    ml_json_open_member(json, "allocators", '{');
    if (!writer->profile->heap.bytes || !has_heaps(writer)) {
        put_allocator_of(writer, 0, &process->totals);
    }
    for (size_t i = 0; has_heaps(writer) && i < process->heaps_count; i++) {
        if (ml_chrome_heap_tells(writer->profile, process, i)) {
            put_allocator_of(writer, process->heaps[i].id, &process->heaps[i].own);
        }
    }
    if (writer->lists_regions) {
        ml_chrome_components(json, process, writer->pid);
    }
    ml_json_close(json, '}');
}

/* Whether the module has a frame whose name a reader could look up. */
static bool is_needed(
    const struct writer *writer,
    const struct ml_profile_process *process,
    const struct ml_profile_module *module
) {
    for (size_t f = 0; writer->files_needed && f < writer->stacks->files_count; f++) {
        if (writer->files_needed[f] && is_module_of(process, module, &writer->stacks->files[f])) {
            return true;
        }
    }
    return !writer->files_needed;
}

static bool has_modules(const struct writer *writer) {
    const struct ml_profile_process *process = &writer->profile->processes[writer->process];

    for (size_t i = 0; i < process->modules_count; i++) {
        if (is_needed(writer, process, &process->modules[i])) {
            return true;
        }
    }
    return false;
}

/* Of uploads the modules alone, and of pruned stacks those that are needed. */
static void put_modules(struct writer *writer) {
    const struct ml_profile_process *process = &writer->profile->processes[writer->process];

    for (size_t i = 0; i < process->modules_count; i++) {
        if (is_needed(writer, process, &process->modules[i])) {
            ml_chrome_module(&writer->json, process, &process->modules[i]);
        }
    }
}

static void put_regions(struct writer *writer) {
    const struct ml_profile_process *process = &writer->profile->processes[writer->process];
    const bool is_whole = writer->lists_regions && process->regions_count > 0;
    struct ml_json *json = &writer->json;

    if (!is_whole && !has_modules(writer)) {
        return;
    }
    ml_json_open_member(json, "process_mmaps", '{');
    ml_json_open_member(json, "vm_regions", '[');
    if (is_whole) {
        ml_chrome_regions(json, process);
    } else {
        put_modules(writer);
    }
    ml_json_close(json, ']');
    ml_json_close(json, '}');
}

static void put_totals(struct writer *writer) {
    const struct ml_profile_process *process = &writer->profile->processes[writer->process];
    struct ml_json *json = &writer->json;

    ml_json_open_member(json, "process_totals", '{');
    ml_chrome_hex_member(json, "resident_set_bytes", process->resident_bytes);
    ml_chrome_hex_member(json, "private_footprint_bytes", process->footprint_bytes);
    ml_json_close(json, '}');
}

static void put_event_head(struct writer *writer, const char *phase, const char *name) {
    struct ml_json *json = &writer->json;

    ml_json_line(json);
    ml_json_open(json, '{');
    ml_json_string_member(json, "ph", phase);
    ml_json_string_member(
        json, "cat", phase[0] == 'M' ? "__metadata" : "disabled-by-default-memory-infra"
    );
    ml_json_string_member(json, "name", name);
    ml_json_number_member(json, "pid", writer->pid);
}

static void
put_metadata(struct writer *writer, const char *name, const char *member, const char *text) {
    struct ml_json *json = &writer->json;

    put_event_head(writer, "M", name);
    ml_json_number_member(json, "tid", writer->pid);
    ml_json_number_member(json, "ts", 0);
    ml_json_open_member(json, "args", '{');
    ml_json_string_member(json, member, text);
    ml_json_close(json, '}');
    ml_json_close(json, '}');
}

/* Which dump it is, and when. */
static void put_moment(struct writer *writer) {
    const uint64_t now_ns = writer->profile->now.boottime_ns;
    struct ml_json *json = &writer->json;

    ml_chrome_hex_member(json, "id", now_ns);
    ml_json_key(json, "tid");
    ml_json_integer(json, -1);
    ml_json_number_member(json, "ts", now_ns / 1000);
}

static enum ml_status put_dump(struct writer *writer) {
    const struct ml_profile_process *process = &writer->profile->processes[writer->process];
    const struct ml_chrome_heap heap = {
        .stacks = writer->stacks,
        .list = list_of(writer),
        .has_heaps = has_heaps(writer),
        .process = process,
        .metric = writer->metric,
        .file_biases = writer->file_biases,
        .tells_all_figures = writer->is_upload,
        .left_bytes = writer->left_bytes,
        .left_blocks = writer->left_blocks,
    };
    struct ml_json *json = &writer->json;
    enum ml_status status = ML_OK;

    put_metadata(writer, "process_name", "name", process->name.bytes);
    if (writer->pid != process->pid) {
        char label[sizeof "pid 4294967295, before exec"];
        snprintf(label, sizeof label, "pid %" PRIu32 ", before exec", process->pid);
        put_metadata(writer, "process_labels", "labels", label);
    }
    put_event_head(writer, "v", "periodic_interval");
    put_moment(writer);
    ml_json_open_member(json, "args", '{');
    ml_json_open_member(json, "dumps", '{');
    ml_json_string_member(json, "level_of_detail", "detailed");
    put_totals(writer);
    put_regions(writer);
    put_allocators(writer);
    status = ml_chrome_heap_write(json, &heap, writer->numbers);
    ml_json_close(json, '}');
    ml_json_close(json, '}');
    ml_json_close(json, '}');
    return status;
}

/* Bias of each file in the process; that of its first process where it has none. */
static void biases_find(struct writer *writer) {
    const struct ml_profile_process *process = &writer->profile->processes[writer->process];

    for (size_t f = 0; f < writer->stacks->files_count; f++) {
        const struct ml_code_file *file = &writer->stacks->files[f];
        writer->file_biases[f] = (uint64_t)file->bias;
        for (size_t i = 0; i < process->modules_count; i++) {
            const struct ml_profile_module *module = &process->modules[i];
            if (is_module_of(process, module, file)) {
                writer->file_biases[f] = (uint64_t)module->bias;
            }
        }
    }
}

/* Note the files of which an address is shown that no symbol names. */
static void needed_find(struct writer *writer) {
    const struct ml_stacks *stacks = writer->stacks;
    const struct ml_stack_list *list = list_of(writer);

    for (size_t i = 0; i < list->count; i++) {
        uint32_t node = ml_chrome_heap_shows(&list->stacks[i], writer->metric, writer->is_upload)
                            ? list->stacks[i].node
                            : ML_STACKS_NONE;
        for (; node != ML_STACKS_NONE; node = stacks->nodes[node].parent) {
            const struct ml_place *place = &stacks->places[stacks->nodes[node].place];
            if (place->symbols_count == 0 && place->file != ML_STACKS_NONE) {
                writer->files_needed[place->file] = true;
            }
        }
    }
}

/* The pid that stands for a process: only the last image of a pid has the pid itself. */
static uint64_t pid_of(const struct ml_profile *profile, size_t process) {
    for (size_t i = process + 1; i < profile->processes_count; i++) {
        if (profile->processes[i].pid == profile->processes[process].pid) {
            return (uint64_t)PID_FORMER + process;
        }
    }
    return profile->processes[process].pid;
}

static enum ml_status process_write(struct writer *writer, const struct ml_chrome_dump *dump) {
    const size_t files_count = writer->stacks->files_count + 1; /* calloc(0) may be NULL */
    enum ml_status status = ML_ENV_MEMORY;

    writer->pid = pid_of(writer->profile, writer->process);
    writer->file_biases = calloc(files_count, sizeof *writer->file_biases);
    if (dump->needed_modules_only) {
        writer->files_needed = calloc(files_count, sizeof *writer->files_needed);
    }
    if (writer->file_biases && (writer->files_needed || !dump->needed_modules_only)) {
        if (writer->files_needed) {
            needed_find(writer);
        }
        biases_find(writer);
        status = put_dump(writer);
    }
    free(writer->file_biases);
    free(writer->files_needed);
    return status;
}

/* Whether pruning has left only sums of the process, of malloc's heap alone. */
static bool is_other(const struct ml_stacks *stacks, const struct ml_stack_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        const uint32_t node = list->stacks[i].node;
        if (node != ML_STACKS_NONE &&
            stacks->places[stacks->nodes[node].place].kind != ML_PLACE_OTHER) {
            return false;
        }
        if (list->stacks[i].heap != 0) {
            return false;
        }
    }
    return true;
}

size_t ml_chrome_trace_others(const struct ml_stacks *stacks) {
    size_t count = 0;

    for (size_t i = 0; i < stacks->processes_count; i++) {
        count += is_other(stacks, &stacks->processes[i]);
    }
    return count > 1 ? count : 0;
}

/* One process with the sums of all that have only sums left; its pid is no process's. Sums of the
 * processes' own peaks mean nothing, so it has no peak. */
static enum ml_status
others_write(struct writer *writer, const struct ml_chrome_dump *dump, size_t others_count) {
    static const struct ml_place other = {.kind = ML_PLACE_OTHER, .file = ML_STACKS_NONE};
    struct ml_place place = other;
    struct ml_stack_node node = {.parent = ML_STACKS_NONE, .place = 0};
    struct ml_stack sum = {.node = 0};
    struct ml_stack_list list = {.stacks = &sum, .count = 1};
    struct ml_profile_process process = {.pid = 0};
    const struct ml_profile profile = {
        .now = writer->profile->now, .processes = &process, .processes_count = 1};
    struct ml_stacks stacks = {
        .profile = &profile,
        .places = &place,
        .places_count = 1,
        .nodes = &node,
        .nodes_count = 1,
        .processes = &list,
        .processes_count = 1,
    };
    char name[sizeof "18446744073709551615 other processes"];
    struct writer others = *writer;
    const struct ml_chrome_dump alone = {
        .report = dump->report,
        .stacks = &stacks,
        .needed_modules_only = true,
    };
    enum ml_status status = ML_OK;

    for (size_t i = 0; i < writer->profile->processes_count; i++) {
        const struct ml_profile_process *one = &writer->profile->processes[i];
        if (is_other(dump->stacks, &dump->stacks->processes[i])) {
            process.footprint_bytes += one->footprint_bytes;
            process.resident_bytes += one->resident_bytes;
            process.folded_processes += (uint32_t)ml_profile_stands_for(one);
            others.left_bytes += one->left_tree ? one->totals.live_bytes : 0;
            others.left_blocks += one->left_tree ? one->totals.live_blocks : 0;
            sum.tree_peak_bytes += one->held_at_tree_peak_bytes;
            sum.tree_peak_blocks += one->held_at_tree_peak_blocks;
            if (one->sampling_bytes > process.sampling_bytes) {
                process.sampling_bytes = one->sampling_bytes;
            }
            ml_profile_totals_add(&process.totals, &one->totals);
        }
    }
    sum.own = process.totals;
    snprintf(name, sizeof name, "%zu other processes", others_count);
    process.name = (struct ml_profile_text){.bytes = name, .count_bytes = strlen(name)};
    process.pid = (uint32_t)PID_OTHERS;
    process.totals.peak_bytes = 0;
    others.profile = &profile;
    others.stacks = &stacks;
    others.process = 0;
    status = process_write(&others, &alone);
    writer->json = others.json;
    return status;
}

/* Processes without a profile: what a viewer shows beside a process's name. */
static void unrecorded_write(struct ml_json *json, const struct ml_chrome_dump *dump) {
    enum { LABEL_BYTES = 512 };
    const struct ml_profile *profile = dump->stacks->profile;

    for (size_t i = 0; i < profile->others_count; i++) {
        const struct ml_profile_process *other = &profile->others[i];
        struct writer writer = {
            .json = *json,
            .profile = profile,
            .stacks = dump->stacks,
            .pid = other->pid,
        };
        char label[LABEL_BYTES];

        if (other->state == MEMLOG_SERVICE_PROCESS_STATE_REPLACED) {
            continue; /* its successor has its pid */
        }
        snprintf(
            label,
            sizeof label,
            "not recorded: %.400s; private memory %s",
            other->not_recorded_reason.bytes,
            other->coverage_was_read ? ml_units_size(other->footprint_bytes).text : "not read"
        );
        put_metadata(&writer, "process_name", "name", other->name.bytes);
        put_metadata(&writer, "process_labels", "labels", label);
        *json = writer.json;
    }
}

/* `numbers`: of all dumps of the file together; NULL: there is no other dump. */
static enum ml_status events_write(
    struct ml_json *json,
    const struct ml_chrome_dump *dump,
    enum ml_metric metric,
    struct ml_chrome_numbers *numbers
) {
    const struct ml_profile *profile = dump->stacks->profile;
    const size_t others_count = dump->others_as_one ? ml_chrome_trace_others(dump->stacks) : 0;
    enum ml_status status = ML_OK;

    for (size_t i = 0; status == ML_OK && i < profile->processes_count + (others_count > 0); i++) {
        const bool is_last = i == profile->processes_count;
        ml_progress_pieces(
            "Writing processes",
            i,
            profile->processes_count,
            is_last ? NULL : profile->processes[i].name.bytes
        );
        struct ml_chrome_numbers own = {0};
        struct writer writer = {
            .json = *json,
            .profile = profile,
            .stacks = dump->stacks,
            .process = i,
            .metric = metric,
            .lists_regions = dump->lists_regions,
            .tells_heaps = dump->tells_heaps,
            .is_upload = dump->report != NULL,
            .numbers = numbers ? numbers : &own,
        };
        if (!is_last && profile->processes[i].left_tree) {
            writer.left_bytes = profile->processes[i].totals.live_bytes;
            writer.left_blocks = profile->processes[i].totals.live_blocks;
        }
        if (is_last) {
            status = others_write(&writer, dump, others_count);
        } else if (others_count == 0 || !is_other(dump->stacks, &dump->stacks->processes[i])) {
            status = process_write(&writer, dump);
        }
        *json = writer.json;
    }
    if (dump->lists_unrecorded) {
        unrecorded_write(json, dump);
    }
    return status;
}

static enum ml_status
trace_write(const struct ml_chrome_dump *dumps, size_t count, enum ml_metric metric, FILE *out) {
    struct ml_json json = ml_json_over(out);
    struct ml_chrome_numbers numbers = {0};
    enum ml_status status = ML_OK;

    ml_json_open(&json, '{');
    ml_json_open_member(&json, "traceEvents", '[');
    for (size_t i = 0; status == ML_OK && i < count; i++) {
        status = events_write(&json, &dumps[i], metric, count > 1 ? &numbers : NULL);
    }
    ml_json_close(&json, ']');
    ml_chrome_metadata(
        &json, count > 0 ? dumps[0].stacks->profile : NULL, count > 0 ? dumps[0].report : NULL
    );
    ml_json_close(&json, '}');
    putc('\n', out);
    return status;
}

enum ml_status ml_chrome_trace_write(
    const struct ml_chrome_dump *dumps, size_t dumps_count, enum ml_metric metric, FILE *out
) {
    FILE *gzip = ml_gzip_open(out);

    if (!gzip) {
        return ML_ENV_MEMORY;
    }
    return ml_gzip_close(gzip, trace_write(dumps, dumps_count, metric, gzip));
}
