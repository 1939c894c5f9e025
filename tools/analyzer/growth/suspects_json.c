/* The suspects for programs. Room: tools. */
#include <math.h>

#include "tools/analyzer/growth/suspects.h"

enum { VERSION = 1 };

static const char *kind_name(enum ml_growth_kind kind) {
    static const char *const names[] = {
        [ML_GROWTH_NONE] = "none",
        [ML_GROWTH_SHORT] = "too-short",
        [ML_GROWTH_STEADY] = "steady",
        [ML_GROWTH_SLOWING] = "slowing",
        [ML_GROWTH_LEVELLED] = "levelled",
        [ML_GROWTH_FREED] = "freed"};

    return names[kind];
}

static void
time_member(struct ml_json *json, const char *name, const struct ml_report *report, uint64_t ms) {
    ml_json_number_member(json, name, ml_profile_realtime_ms(report->profile, ms));
}

static void
put_growth(struct ml_json *json, const struct ml_report *report, const struct ml_growth *growth) {
    ml_json_string_member(json, "verdict", kind_name(growth->kind));
    time_member(json, "since_ms", report, growth->since_ms);
    time_member(json, "until_ms", report, growth->until_ms);
    ml_json_number_member(json, "grown_bytes", growth->grown_bytes);
    ml_json_number_member(json, "bytes_per_s", (uint64_t)llround(fmax(growth->bytes_per_s, 0)));
    ml_json_number_member(
        json, "bytes_per_s_error", (uint64_t)llround(fmax(growth->error_per_s, 0))
    );
    ml_json_number_member(json, "steps", growth->steps);
    ml_json_number_member(json, "rising_steps", growth->rising);
}

static void put_process_name(struct ml_json *json, const struct ml_profile_process *process) {
    ml_json_number_member(json, "process_id", process->id);
    ml_json_number_member(json, "pid", process->pid);
    ml_json_text_member(json, "name", process->name.bytes, process->name.count_bytes);
}

void ml_suspects_json(const struct ml_suspects *suspects, FILE *out) {
    const struct ml_report *report = suspects->report;
    struct ml_json json = ml_json_over(out);

    ml_json_open(&json, '{');
    ml_json_number_member(&json, "memlog", VERSION);
    ml_report_json_dump(&json, report);
    time_member(&json, "from_ms", report, suspects->from_ms);
    time_member(&json, "to_ms", report, suspects->to_ms);
    ml_json_open_member(&json, "functions", '[');
    for (size_t i = 0; i < suspects->count; i++) {
        const struct ml_suspect *suspect = &suspects->suspects[i];
        ml_json_line(&json);
        ml_json_open(&json, '{');
        ml_json_string_member(&json, "function", suspect->name);
        put_process_name(&json, suspect->process);
        put_growth(&json, report, &suspect->growth);
        ml_json_number_member(&json, "stacks", suspect->stacks_count);
        ml_json_number_member(&json, "live_bytes", suspect->live_bytes);
        ml_json_number_member(&json, "live_blocks", suspect->live_blocks);
        ml_json_number_member(&json, "total_blocks", suspect->total_blocks);
        ml_report_json_frames(&json, report->stacks, suspect->node);
        ml_json_close(&json, '}');
    }
    ml_json_close(&json, ']');
    ml_json_open_member(&json, "processes", '[');
    for (size_t i = 0; i < suspects->processes_count; i++) {
        const struct ml_suspect_process *process = &suspects->processes[i];
        ml_json_line(&json);
        ml_json_open(&json, '{');
        put_process_name(&json, process->process);
        put_growth(&json, report, &process->growth);
        ml_json_number_member(&json, "followed_stacks", process->followed_count);
        ml_json_number_member(&json, "followed_bytes", process->followed_bytes);
        ml_json_number_member(&json, "live_bytes", process->live_bytes);
        ml_json_close(&json, '}');
    }
    ml_json_close(&json, ']');
    ml_json_close(&json, '}');
    putc('\n', out);
}
