#include "tools/analyzer/whole/data.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/json_writer.h"
#include "base/metric_label.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/whole/whole.h"

/* Smaller ones are in the tree's sums alone. */
enum { PROCESSES_MAX = 64, NS_PER_MS = 1000000 };

struct member {
    const struct ml_profile_process *process;
    struct ml_whole whole;
};

static int order_members(const void *left, const void *right) {
    const struct member *a = left;
    const struct member *b = right;
    const uint64_t bytes_a = ml_whole_bytes(&a->whole);
    const uint64_t bytes_b = ml_whole_bytes(&b->whole);

    if (bytes_a != bytes_b) {
        return bytes_a < bytes_b ? 1 : -1;
    }
    return (a->process->id > b->process->id) - (a->process->id < b->process->id);
}

/* The processes that are told, largest first. NULL: no memory. Owner: the caller. */
static struct member *members_of(const struct ml_profile *profile, size_t *out_count) {
    const bool anyone_runs = ml_profile_anyone_runs(profile);
    const size_t all = profile->processes_count + profile->others_count;
    struct member *members = calloc(all + 1, sizeof *members);

    *out_count = 0;
    for (size_t i = 0; members && i < all; i++) {
        const struct ml_profile_process *process =
            i < profile->processes_count ? &profile->processes[i]
                                         : &profile->others[i - profile->processes_count];
        const bool is_running = process->state == MEMLOG_SERVICE_PROCESS_STATE_RUNNING;
        if (is_running == anyone_runs) {
            struct member *member = &members[*out_count];
            *member = (struct member){.process = process};
            ml_whole_add(&member->whole, process);
            *out_count += ml_whole_bytes(&member->whole) > 0 ? 1 : 0;
        }
    }
    if (members) {
        qsort(members, *out_count, sizeof *members, order_members);
    }
    return members;
}

static void put_whole(struct ml_json *json, const struct ml_whole *whole) {
    char notes[ML_WHOLE_TEXT_BYTES];

    ml_json_number_member(json, "private_bytes", ml_whole_bytes(whole));
    ml_json_number_member(json, "unread_bytes", whole->unread_bytes);
    ml_json_string_member(json, "notes", ml_whole_notes(whole, notes));
    ml_json_open_member(json, "values", '[');
    for (enum ml_component i = 0; i < ML_COMPONENTS; i++) {
        ml_json_number(json, whole->components.of[i].private);
    }
    ml_json_close(json, ']');
}

static void
put_member(struct ml_json *json, const struct ml_profile *profile, const struct member *member) {
    const struct ml_profile_process *process = member->process;

    ml_json_open(json, '{');
    ml_json_number_member(json, "id", process->id);
    ml_json_number_member(json, "pid", process->pid);
    ml_json_key(json, "name");
    ml_json_text(json, process->name.bytes, process->name.count_bytes);
    ml_json_number_member(json, "read_ms", ml_profile_regions_ns(profile, process) / NS_PER_MS);
    put_whole(json, &member->whole);
    ml_json_close(json, '}');
}

void ml_whole_json(const struct ml_profile *profile, FILE *out) {
    struct ml_json json = ml_json_over(out);
    struct ml_whole whole;
    size_t count = 0;
    struct member *members = members_of(profile, &count);

    ml_whole_of_running(profile, &whole);
    ml_json_open(&json, '{');
    ml_json_number_member(&json, "time_ms", profile->now.realtime_ns / NS_PER_MS);
    ml_json_bool_member(&json, "running", ml_profile_anyone_runs(profile));
    ml_json_open_member(&json, "components", '[');
    for (enum ml_component i = 0; i < ML_COMPONENTS; i++) {
        ml_json_string(&json, ml_component_name(i));
    }
    ml_json_close(&json, ']');
    ml_json_open_member(&json, "tree", '{');
    put_whole(&json, &whole);
    ml_json_close(&json, '}');
    ml_json_open_member(&json, "processes", '[');
    for (size_t i = 0; members && i < count && i < PROCESSES_MAX; i++) {
        put_member(&json, profile, &members[i]);
    }
    ml_json_close(&json, ']');
    ml_json_number_member(&json, "smaller", count > PROCESSES_MAX ? count - PROCESSES_MAX : 0);
    ml_json_close(&json, '}');
    putc('\n', out);
    free(members);
}

static void put_sums(struct ml_json *json, const struct ml_component_figures *figures) {
    ml_json_number_member(json, "private_bytes", figures->private);
    ml_json_number_member(json, "proportional_bytes", figures->proportional);
    ml_json_number_member(json, "swapped_bytes", figures->swapped);
}

/* The members that all sums have. */
static void put_tree(struct ml_json *json, const struct ml_whole *whole) {
    put_sums(json, &whole->components.all);
    ml_json_number_member(json, "unread_bytes", whole->unread_bytes);
    ml_json_number_member(json, "never_read_processes", whole->never_read_count);
    ml_json_key(json, "moved_bytes");
    ml_json_integer(json, whole->components.moved);
    ml_json_open_member(json, "components", '[');
    for (enum ml_component i = 0; i < ML_COMPONENTS; i++) {
        ml_json_open(json, '{');
        ml_json_string_member(json, "name", ml_component_name(i));
        put_sums(json, &whole->components.of[i]);
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
}

void ml_whole_tree_member(struct ml_json *json, const struct ml_profile *profile) {
    struct ml_whole whole;

    if (!ml_profile_anyone_runs(profile)) {
        ml_json_key(json, "memory");
        ml_json_null(json);
        return;
    }
    ml_whole_of_running(profile, &whole);
    ml_json_open_member(json, "memory", '{');
    put_tree(json, &whole);
    ml_json_close(json, '}');
}

void ml_whole_tree_peak_member(struct ml_json *json, const struct ml_profile *profile) {
    struct ml_whole whole;

    if (!ml_whole_of_tree_peak(profile, &whole)) {
        ml_json_key(json, "memory_peak");
        ml_json_null(json);
        return;
    }
    ml_json_open_member(json, "memory_peak", '{');
    ml_json_string_member(json, "time", ml_units_time_ms(ml_profile_tree_peak_ns(profile)).text);
    ml_json_number_member(json, "processes", whole.read_count + whole.never_read_count);
    ml_json_number_member(json, "dropped_processes", profile->tree_views_dropped);
    put_tree(json, &whole);
    ml_json_close(json, '}');
}

static void put_sample(
    const struct ml_profile_process *process, const char *component, uint64_t bytes, FILE *out
) {
    if (!process) {
        fprintf(out, "memlog_tree_memory_bytes{component=\"");
    } else {
        fprintf(
            out,
            "memlog_process_memory_bytes{id=\"%" PRIu32 "\",pid=\"%" PRIu32
            "\",role=\"%s\",name=\"",
            process->id,
            process->pid,
            ml_profile_role_name(process->role)
        );
        ml_metric_label(out, process->name.bytes);
        fputs("\",component=\"", out);
    }
    ml_metric_label(out, component);
    fprintf(out, "\"} %" PRIu64 "\n", bytes);
}

/* Every component, also one of 0, so that no series comes and goes. */
static void
put_samples(const struct ml_profile_process *process, const struct ml_whole *whole, FILE *out) {
    for (enum ml_component i = 0; i < ML_COMPONENTS; i++) {
        put_sample(process, ml_component_name(i), whole->components.of[i].private, out);
    }
    put_sample(process, "not read", whole->unread_bytes, out);
}

void ml_whole_metrics(const struct ml_profile *profile, FILE *out) {
    struct ml_whole whole;
    size_t count = 0;
    struct member *members = ml_profile_anyone_runs(profile) ? members_of(profile, &count) : NULL;

    ml_whole_of_running(profile, &whole);
    ml_metric_head(
        out,
        "memlog_tree_memory_bytes",
        false,
        false,
        "Private memory of all running processes by what it is made of, as last read."
    );
    put_samples(NULL, &whole, out);
    ml_metric_head(
        out,
        "memlog_process_memory_bytes",
        false,
        false,
        "Private memory of the largest processes by what it is made of, as last read."
    );
    for (size_t i = 0; members && i < count && i < PROCESSES_MAX; i++) {
        put_samples(members[i].process, &members[i].whole, out);
    }
    free(members);
}
