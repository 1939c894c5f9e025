#include "tools/analyzer/upload/body.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "tools/analyzer/formats/chrome_trace.h"
#include "tools/analyzer/formats/otlp.h"
#include "tools/analyzer/formats/pprof.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/upload/internal.h"

const char *const ml_upload_form_names[ML_UPLOAD_FORM_COUNT + 1] = {
    "report", "trace", "pprof", "pyroscope", "pyroscope-ingest", "otlp"};

/* ---- Chrome's trace */

/* Whether a dump of a control population is what it is. */
static bool is_control(const struct ml_profile *profile) {
    return strcmp(ml_profile_trigger_name(profile->trigger.kind), "control") == 0;
}

static struct ml_sender sender_of(const struct ml_upload *upload) {
    return (struct ml_sender
    ){.host = upload->host,
      .version = upload->version,
      .weight = is_control(upload->stacks->profile) ? upload->weight : 0};
}

static enum ml_status write_trace(const struct ml_upload *upload, FILE *out) {
    const struct ml_profile *profile = upload->stacks->profile;
    char build[ML_PROFILE_HEX_BYTES];
    const struct ml_sender sender = sender_of(upload);
    const struct ml_chrome_report report = {
        .guid = upload->guid, .sender = &sender, .build_id = build};
    const struct ml_chrome_dump dump = {
        .report = &report,
        .stacks = upload->stacks,
        .needed_modules_only = !upload->keeps_small,
        .others_as_one = upload->others_as_one,
    };

    (void)ml_profile_build_id(profile, build);
    return ml_chrome_trace_write(&dump, 1, ML_METRIC_LIVE, out);
}

/* ---- multipart */

static void part_head(const struct ml_upload *upload, FILE *out, const char *name) {
    fprintf(out, "--%s\r\nContent-Disposition: form-data; name=\"%s\"", upload->boundary, name);
}

static void
put_part(const struct ml_upload *upload, FILE *out, const char *name, const char *text) {
    part_head(upload, out, name);
    fputs("\r\n\r\n", out);
    /* The boundary cannot be in it: no program has such a name. */
    fputs(text, out);
    fputs("\r\n", out);
}

static void
put_if_told(const struct ml_upload *upload, FILE *out, const char *name, const char *text) {
    if (text && text[0]) {
        put_part(upload, out, name, text);
    }
}

static void
put_number(const struct ml_upload *upload, FILE *out, const char *name, uint64_t number) {
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, number);
    put_part(upload, out, name, text);
}

static void put_end(const struct ml_upload *upload, FILE *out) {
    fprintf(out, "--%s--\r\n", upload->boundary);
}

static const char *or_unknown(const char *text) {
    return text[0] ? text : "unknown";
}

/* Chromium's `config`: which rule made the report. */
static void put_config(const struct ml_upload *upload, FILE *out) {
    const struct ml_profile *profile = upload->stacks->profile;
    const char *kind = ml_profile_trigger_name(profile->trigger.kind);
    const char *name = "MEMLOG_BACKGROUND_TRIGGER";

    if (!kind[0]) {
        name = "MEMLOG_MANUAL_TRIGGER";
    } else if (is_control(profile)) {
        name = "MEMLOG_CONTROL_TRIGGER";
    }
    part_head(upload, out, "config");
    fprintf(
        out,
        "\r\n\r\n{\"mode\":\"SAMPLING_%" PRIu64 "\",\"category\":\"MEMLOG\",\"configs\":[{\"rule\":"
        "\"MEMLOG\",\"trigger_name\":\"%s\",\"category\":\"BENCHMARK_MEMORY_HEAVY\"}]}\r\n",
        ml_profile_sampling_bytes(profile),
        name
    );
}

static enum ml_status write_report(const struct ml_upload *upload, FILE *out) {
    const struct ml_profile *profile = upload->stacks->profile;
    char build[ML_PROFILE_HEX_BYTES];
    char version[2 * 64 + sizeof "unknown-trace"];
    const struct ml_profile_process *costliest = ml_profile_costliest(profile);
    enum ml_status status = ML_OK;

    (void)ml_profile_build_id(profile, build);
    snprintf(version, sizeof version, "%s-trace", or_unknown(build));
    put_part(upload, out, "prod", or_unknown(profile->program.bytes));
    put_part(upload, out, "ver", version);
    put_part(upload, out, "guid", upload->guid);
    put_part(upload, out, "type", "trace");
    put_part(upload, out, "should_process", "false");
    put_config(upload, out);
    put_part(upload, out, "build_id", build);
    put_if_told(upload, out, "host", upload->host);
    put_if_told(upload, out, "program_version", upload->version);
    put_part(upload, out, "time", ml_units_time(profile->now.realtime_ns).text);
    put_part(upload, out, "reason", ml_profile_reason_name(profile->reason));
    put_part(upload, out, "trigger", ml_profile_trigger_name(profile->trigger.kind));
    put_part(upload, out, "complete", ml_profile_is_complete(profile) ? "true" : "false");
    put_part(upload, out, "covered", ml_profile_is_covered(profile) ? "true" : "false");
    if (ml_profile_promised_ppm(profile) != 0) {
        put_number(upload, out, "promised_ppm", ml_profile_promised_ppm(profile));
    }
    if (costliest) {
        put_number(upload, out, "cost_ppm", ml_profile_cost_ppm(costliest));
    }
    put_number(upload, out, "live_bytes", profile->running.bytes);
    put_number(upload, out, "left_bytes", profile->left.bytes);
    put_number(upload, out, "peak_bytes", profile->tree.peak_bytes);
    put_number(upload, out, "processes", ml_profile_processes(profile));
    part_head(upload, out, "trace");
    fputs("; filename=\"trace.json.gz\"\r\nContent-Type: application/gzip\r\n\r\n", out);
    status = write_trace(upload, out);
    fputs("\r\n", out);
    put_end(upload, out);
    return status;
}

/* ---- Pyroscope */

static enum ml_status write_pprof(const struct ml_upload *upload, FILE *out) {
    const struct ml_sender sender = sender_of(upload);
    return ml_pprof_write(upload->stacks, ML_METRIC_LIVE, &sender, out);
}

static enum ml_status pprof_make(const struct ml_upload *upload, struct ml_upload_bytes *out_body) {
    FILE *file = open_memstream(&out_body->bytes, &out_body->count_bytes);
    enum ml_status status = ML_ENV_MEMORY;

    if (file) {
        status = write_pprof(upload, file);
        if (fclose(file) != 0 && status == ML_OK) {
            status = ML_ENV_MEMORY;
        }
    }
    return status;
}

static void put_base64(const struct ml_upload_bytes *body, FILE *out) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *bytes = (const unsigned char *)body->bytes;

    for (size_t i = 0; i < body->count_bytes; i += 3) {
        size_t left = body->count_bytes - i;
        uint32_t word = (uint32_t)bytes[i] << 16 | (uint32_t)(left > 1 ? bytes[i + 1] : 0) << 8 |
                        (uint32_t)(left > 2 ? bytes[i + 2] : 0);
        putc(letters[word >> 18], out);
        putc(letters[word >> 12 & 63], out);
        putc(left > 1 ? letters[word >> 6 & 63] : '=', out);
        putc(left > 2 ? letters[word & 63] : '=', out);
    }
}

static void put_label(struct ml_json *json, const char *name, const char *value) {
    ml_json_open(json, '{');
    ml_json_string_member(json, "name", name);
    ml_json_string_member(json, "value", value);
    ml_json_close(json, '}');
}

static enum ml_status write_pyroscope(const struct ml_upload *upload, FILE *out) {
    struct ml_json json = ml_json_over(out);
    struct ml_upload_bytes pprof = {NULL, 0};
    char build[ML_PROFILE_HEX_BYTES];
    enum ml_status status = pprof_make(upload, &pprof);

    (void)ml_profile_build_id(upload->stacks->profile, build);
    ml_json_open(&json, '{');
    ml_json_open_member(&json, "series", '[');
    ml_json_open(&json, '{');
    ml_json_open_member(&json, "labels", '[');
    put_label(&json, "__name__", "memory");
    put_label(&json, "service_name", or_unknown(upload->stacks->profile->program.bytes));
    put_label(&json, "build_id", or_unknown(build));
    ml_json_close(&json, ']');
    ml_json_open_member(&json, "samples", '[');
    ml_json_open(&json, '{');
    /* A UUID of the guid's digits. */
    fprintf(
        out,
        "\"ID\":\"%.8s-%.4s-%.4s-%.4s-%.12s\",\"rawProfile\":\"",
        upload->guid,
        upload->guid + 8,
        upload->guid + 12,
        upload->guid + 16,
        upload->guid + 20
    );
    put_base64(&pprof, out);
    putc('"', out);
    ml_json_close(&json, '}');
    ml_json_close(&json, ']');
    ml_json_close(&json, '}');
    ml_json_close(&json, ']');
    ml_json_close(&json, '}');
    free(pprof.bytes);
    return status;
}

static enum ml_status write_ingest(const struct ml_upload *upload, FILE *out) {
    /* alloc_* only grow, and the server takes their differences. inuse_* are levels. */
    static const char types[] =
        "{\"alloc_objects\":{\"units\":\"objects\",\"aggregation\":\"sum\",\"cumulative\":true},"
        "\"alloc_space\":{\"units\":\"bytes\",\"aggregation\":\"sum\",\"cumulative\":true},"
        "\"inuse_objects\":{\"units\":\"objects\",\"aggregation\":\"average\"},"
        "\"inuse_space\":{\"units\":\"bytes\",\"aggregation\":\"average\"}}";
    enum ml_status status = ML_OK;

    part_head(upload, out, "sample_type_config");
    fputs("; filename=\"sample_type_config.json\"\r\nContent-Type: application/json\r\n\r\n", out);
    fputs(types, out);
    fputs("\r\n", out);
    part_head(upload, out, "profile");
    fputs("; filename=\"profile.pprof\"\r\nContent-Type: application/octet-stream\r\n\r\n", out);
    status = write_pprof(upload, out);
    fputs("\r\n", out);
    put_end(upload, out);
    return status;
}

static enum ml_status write_otlp(const struct ml_upload *upload, FILE *out) {
    const struct ml_sender sender = sender_of(upload);
    return ml_otlp_write(upload->stacks, upload->guid, &sender, out);
}

static enum ml_status write_form(const struct ml_upload *upload, FILE *out) {
    switch (upload->form) {
    case ML_UPLOAD_REPORT:
        return write_report(upload, out);
    case ML_UPLOAD_TRACE:
        return write_trace(upload, out);
    case ML_UPLOAD_PPROF:
        return write_pprof(upload, out);
    case ML_UPLOAD_PYROSCOPE:
        return write_pyroscope(upload, out);
    case ML_UPLOAD_PYROSCOPE_INGEST:
        return write_ingest(upload, out);
    case ML_UPLOAD_OTLP:
        return write_otlp(upload, out);
    default:
        return ML_ENV_MISSING;
    }
}

/* ---- all of them */

enum ml_status ml_upload_make(const struct ml_upload *upload, struct ml_upload_bytes *out_body) {
    FILE *file = NULL;
    enum ml_status status = ML_ENV_MEMORY;

    *out_body = (struct ml_upload_bytes){NULL, 0};
    file = open_memstream(&out_body->bytes, &out_body->count_bytes);
    if (file) {
        status = write_form(upload, file);
        if (fclose(file) != 0 && status == ML_OK) {
            status = ML_ENV_MEMORY;
        }
    }
    return status;
}
