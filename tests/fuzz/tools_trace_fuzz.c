/* Packets of a dump with true checksums: byte kind, two bytes length, body, and so on. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pb_encode.h>

#include "base/upload.h"
#include "ipc/trace/crc32.h"
#include "ipc/trace/trace.pb.h"
#include "ipc/wire/event.h"
#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/formats/chrome_trace.h"
#include "tools/analyzer/formats/collapsed.h"
#include "tools/analyzer/formats/flame.h"
#include "tools/analyzer/formats/heap_text.h"
#include "tools/analyzer/formats/pprof.h"
#include "tools/analyzer/growth/suspects.h"
#include "tools/analyzer/sqlite/file.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/model/trace_decode.h"
#include "tools/analyzer/report/breakdown.h"
#include "tools/analyzer/report/diff.h"
#include "tools/analyzer/report/report.h"
#include "tools/analyzer/report/timeline.h"
#include "tools/analyzer/stacks/prune.h"
#include "tools/analyzer/stacks/stacks.h"
#include "tools/analyzer/upload/body.h"
#include "tools/analyzer/upload/redact.h"

struct body {
    const uint8_t *bytes;
    size_t count;
};

static bool put_body(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct body *body = *arg;

    return pb_encode_tag_for_field(stream, field) &&
           pb_encode_string(stream, body->bytes, body->count);
}

static bool put_memlog(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    return pb_encode_tag_for_field(stream, field) &&
           pb_encode_submessage(stream, ml_trace_Memlog_fields, *arg);
}

static void
feed(struct ml_trace_decoder *decoder, uint8_t kind, const uint8_t *bytes, size_t count) {
    static uint8_t packet[80 * 1024];
    struct body body = {.bytes = bytes, .count = count};
    ml_trace_Memlog memlog = {
        .crc32 = ml_crc32(ml_crc32(0, &kind, 1), bytes, count),
        .kind = kind,
        .body = {.funcs.encode = put_body, .arg = &body},
    };
    ml_trace_TracePacket message = ml_trace_TracePacket_init_zero;
    pb_ostream_t stream = pb_ostream_from_buffer(packet, sizeof packet);

    message.memlog = (pb_callback_t){.funcs.encode = put_memlog, .arg = &memlog};
    if (!pb_encode(&stream, ml_trace_TracePacket_fields, &message)) {
        abort();
    }
    if (ml_trace_decode_packet(decoder, packet, stream.bytes_written) != ML_OK) {
        decoder->profile->damaged = true;
    }
}

/* The profile's promise (tools/analyzer/model/profile.h). */
static void check(const struct ml_profile_process *process) {
    for (size_t i = 0; i < process->nodes_count; i++) {
        const struct ml_profile_node *node = &process->nodes[i];
        if ((i > 0 && node->id <= process->nodes[i - 1].id) || node->parent >= node->id ||
            (node->parent != 0 && ml_profile_node_at(process, node->parent) >= i) ||
            (node->module != 0 && ml_profile_module_at(process, node->module) == SIZE_MAX)) {
            abort();
        }
    }
    for (size_t i = 0; i < process->cells_count; i++) {
        uint32_t node = process->cells[i].node;
        if (node != 0 && ml_profile_node_at(process, node) == SIZE_MAX) {
            abort();
        }
    }
}

static void write_others(struct ml_stacks *stacks, FILE *nowhere) {
    const struct ml_chrome_dump dump = {
        .stacks = stacks,
        .needed_modules_only = true,
        .others_as_one = true,
    };
    const struct ml_prune_rule rule = {.least_worth = 100};

    if (ml_stacks_prune(stacks, 100) != ML_OK || ml_stacks_merge_functions(stacks) != ML_OK ||
        ml_stacks_shorten(stacks, 3) != ML_OK || ml_stacks_prune_by(stacks, &rule) != ML_OK ||
        ml_pprof_write(stacks, ML_METRIC_LIVE, NULL, nowhere) != ML_OK ||
        ml_heap_text_write(stacks, nowhere) != ML_OK ||
        ml_chrome_trace_write(&dump, 1, ML_METRIC_LIVE, nowhere) != ML_OK ||
        ml_flame_write(stacks, stacks, ML_METRIC_LIVE, nowhere) != ML_OK ||
        ml_sqlite_file_write(stacks, nowhere) != ML_OK) {
        abort();
    }
}

/* What people look at beside the report: each breakdown, what grew, the dump against itself. */
static void write_views(const struct ml_report *report, FILE *nowhere) {
    const struct ml_timeline_span whole = {.from = {.from = ML_TIME_NONE}};
    struct ml_timeline timeline;
    struct ml_suspects suspects;
    struct ml_diff diff;
    const char *error = NULL;

    for (int by = ML_BY_FUNCTION; by <= ML_BY_LINE; by++) {
        struct ml_breakdown breakdown;
        if (ml_breakdown_init(&breakdown, report->stacks, (enum ml_breakdown_by)by, by % 2 == 0) ==
            ML_OK) {
            ml_breakdown_sort(&breakdown, ML_METRIC_LIVE, ML_ORDER_CUMULATIVE);
        }
        ml_breakdown_fini(&breakdown);
    }
    if (ml_timeline_init(&timeline, report, &whole, &error) == ML_OK) {
        const struct ml_report_style style = {.width = 80};
        ml_timeline_text(&timeline, &style, nowhere);
        ml_timeline_json(&timeline, 100, true, nowhere);
        ml_timeline_csv(&timeline, 100, nowhere);
        ml_timeline_html(&timeline, nowhere);
    }
    ml_timeline_fini(&timeline);
    if (ml_suspects_init(&suspects, report) == ML_OK) {
        const struct ml_report_style style = {.width = 80};
        ml_suspects_text(&suspects, &style, nowhere);
        ml_suspects_json(&suspects, nowhere);
    }
    ml_suspects_fini(&suspects);
    if (ml_diff_init(&diff, report->stacks, report->stacks) != ML_OK) {
        abort();
    }
    for (size_t i = 0; i < diff.count; i++) {
        const struct ml_profile_totals *sides = diff.stacks[i].sides;
        if (sides[ML_DIFF_FROM].live_bytes != sides[ML_DIFF_TO].live_bytes) {
            abort();
        }
    }
    ml_diff_fini(&diff);
}

/* What would leave the machine, in one form. */
static void write_upload(
    struct ml_profile *profile, struct ml_stacks *stacks, enum ml_upload_form form, FILE *nowhere
) {
    const struct ml_upload upload = {
        .stacks = stacks,
        .form = form,
        .max_bytes = ML_UPLOAD_LEAST_BYTES,
        .guid = "0123456789abcdef0123456789abcdef",
        .boundary = "boundary"};
    struct ml_redacted redacted;
    struct ml_upload_cut cut;

    if (ml_redact(profile, stacks, ML_REDACT_PLAIN, &redacted) != ML_OK) {
        abort();
    }
    /* It may not fit. */
    (void)!ml_upload_write(&upload, nowhere, &cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    static FILE *nowhere;
    struct ml_profile profile = {0};
    struct ml_trace_decoder decoder = {.profile = &profile};
    struct ml_stacks stacks;
    size_t at = 0;

    ml_profile_restart(&profile);
    while (count_bytes - at >= 3) {
        size_t length = data[at + 1] | (size_t)data[at + 2] << 8;
        length = length < count_bytes - at - 3 ? length : count_bytes - at - 3;
        feed(&decoder, data[at], data + at + 3, length);
        at += 3 + length;
    }
    for (size_t i = 0; i < profile.processes_count; i++) {
        check(&profile.processes[i]);
    }
    if (!nowhere) {
        nowhere = fopen("/dev/null", "w");
    }
    if (ml_stacks_init(&stacks, &profile) == ML_OK) {
        const struct ml_report report = {
            .profile = &profile, .stacks = &stacks, .file_path = "x", .limit = 3};
        const struct ml_report_style style = {.width = 80};

        ml_report_json(&report, nowhere);
        ml_report_text(&report, &style, nowhere);
        if (ml_collapsed_write(&stacks, ML_METRIC_PEAK, nowhere) != ML_OK) {
            abort();
        }
        /* A part of the inputs: they cost far more than reading. */
        switch (count_bytes % 16) {
        case 0:
            write_others(&stacks, nowhere);
            break;
        case 5:
            write_views(&report, nowhere);
            break;
        case 10:
            write_upload(&profile, &stacks, data[0] % ML_UPLOAD_FORM_COUNT, nowhere);
            break;
        default:
            break;
        }
    }
    ml_stacks_fini(&stacks);
    ml_profile_fini(&profile);
    return 0;
}
