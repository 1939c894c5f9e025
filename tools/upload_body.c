#include "tools/upload_body.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/chrome_trace.h"
#include "tools/json_writer.h"
#include "tools/otlp.h"
#include "tools/pprof.h"
#include "tools/prune.h"
#include "tools/words.h"

enum {
    BELOW_FIRST_BYTES = 16 * 1024, /* Chromium's, with ML_PRUNE_KEPT_BLOCKS */
    BELOW_SECOND_BYTES = 1024,
    KEPT_SECOND_BLOCKS = 64,
    FRAMES_LEAST = 2,
    ENOUGH_FIFTHS = 4, /* of the live bytes with a stack: better than that is not looked for */
};

const char *const ml_upload_form_names[ML_UPLOAD_FORM_COUNT] = {
    "report", "trace", "pprof", "pyroscope", "pyroscope-ingest", "otlp"};

/* A body in memory. */
struct body {
    char *bytes;
    size_t count_bytes;
};

/* What is written: the caller's wishes, and how the way at hand goes about it. */
static enum ml_status write_trace(const struct ml_upload *upload, FILE *out) {
    const struct ml_chrome_dump dump = {
        .profile = upload->profile,
        .stacks = upload->stacks,
        .needed_modules_only = !upload->keeps_small,
        .others_as_one = upload->others_as_one,
    };

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
    /* A boundary cannot be in it: it is made of what nobody names his program. */
    fputs(text, out);
    fputs("\r\n", out);
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

/* The build id of the first process's own program, in hex: which build this was. */
static void build_of(const struct ml_profile *profile, char out_hex[2 * 64 + 1]) {
    const struct ml_profile_process *process = profile->processes;

    out_hex[0] = '\0';
    for (size_t i = 0; profile->processes_count > 0 && i < process->modules_count; i++) {
        const struct ml_profile_module *module = &process->modules[i];
        if (module->path.count_bytes > 0 &&
            strcmp(module->path.bytes, process->exe_path.bytes) != 0) {
            continue;
        }
        for (size_t b = 0; b < module->build_id.count_bytes && b < 64; b++) {
            snprintf(out_hex + 2 * b, 3, "%02x", (unsigned char)module->build_id.bytes[b]);
        }
        return;
    }
}

static const char *or_unknown(const char *text) {
    return text[0] ? text : "unknown";
}

/* Chromium's `config`: which rule made the report. */
static void put_config(const struct ml_upload *upload, FILE *out) {
    const struct ml_profile *profile = upload->profile;
    const char *kind = ml_profile_trigger_name(profile->trigger.kind);
    const char *name = "MEMLOG_BACKGROUND_TRIGGER";
    uint64_t sampling_bytes = 1;

    for (size_t i = 0; i < profile->processes_count; i++) {
        if (profile->processes[i].sampling_bytes > sampling_bytes) {
            sampling_bytes = profile->processes[i].sampling_bytes;
        }
    }
    if (!kind[0]) {
        name = "MEMLOG_MANUAL_TRIGGER";
    } else if (strcmp(kind, "control") == 0) {
        name = "MEMLOG_CONTROL_TRIGGER";
    }
    part_head(upload, out, "config");
    fprintf(
        out,
        "\r\n\r\n{\"mode\":\"SAMPLING_%" PRIu64 "\",\"category\":\"MEMLOG\",\"configs\":[{\"rule\":"
        "\"MEMLOG\",\"trigger_name\":\"%s\",\"category\":\"BENCHMARK_MEMORY_HEAVY\"}]}\r\n",
        sampling_bytes,
        name
    );
}

static enum ml_status write_report(const struct ml_upload *upload, FILE *out) {
    const struct ml_profile *profile = upload->profile;
    char build[2 * 64 + 1];
    char version[2 * 64 + sizeof "unknown-trace"];
    char words[ML_WORDS_BYTES];
    enum ml_status status = ML_OK;

    build_of(profile, build);
    snprintf(version, sizeof version, "%s-trace", or_unknown(build));
    put_part(upload, out, "prod", or_unknown(profile->program.bytes));
    put_part(upload, out, "ver", version);
    put_part(upload, out, "guid", upload->guid);
    put_part(upload, out, "type", "trace");
    put_part(upload, out, "should_process", "false");
    put_config(upload, out);
    put_part(upload, out, "build_id", build);
    put_part(upload, out, "time", ml_words_time(profile->now.realtime_ns, words));
    put_part(upload, out, "reason", ml_profile_reason_name(profile->reason));
    put_part(upload, out, "trigger", ml_profile_trigger_name(profile->trigger.kind));
    put_part(upload, out, "complete", ml_profile_is_complete(profile) ? "true" : "false");
    put_number(upload, out, "live_bytes", profile->tree.live_bytes);
    put_number(upload, out, "peak_bytes", profile->tree.peak_bytes);
    put_number(upload, out, "processes", profile->processes_count);
    part_head(upload, out, "trace");
    fputs("; filename=\"trace.json.gz\"\r\nContent-Type: application/gzip\r\n\r\n", out);
    status = write_trace(upload, out);
    fputs("\r\n", out);
    put_end(upload, out);
    return status;
}

/* ---- Pyroscope */

static enum ml_status pprof_make(const struct ml_upload *upload, struct body *out_body) {
    FILE *file = open_memstream(&out_body->bytes, &out_body->count_bytes);
    enum ml_status status = ML_ENV_MEMORY;

    if (file) {
        status = ml_pprof_write(upload->profile, upload->stacks, ML_METRIC_LIVE, file);
        if (fclose(file) != 0 && status == ML_OK) {
            status = ML_ENV_MEMORY;
        }
    }
    return status;
}

static void put_base64(const struct body *body, FILE *out) {
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
    struct body pprof = {NULL, 0};
    char build[2 * 64 + 1];
    enum ml_status status = pprof_make(upload, &pprof);

    build_of(upload->profile, build);
    ml_json_open(&json, '{');
    ml_json_key(&json, "series");
    ml_json_open(&json, '[');
    ml_json_open(&json, '{');
    ml_json_key(&json, "labels");
    ml_json_open(&json, '[');
    put_label(&json, "__name__", "memory");
    put_label(&json, "service_name", or_unknown(upload->profile->program.bytes));
    put_label(&json, "build_id", or_unknown(build));
    ml_json_close(&json, ']');
    ml_json_key(&json, "samples");
    ml_json_open(&json, '[');
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
    /* alloc_* only grow: the server takes the differences; inuse_* are what they are. */
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
    status = ml_pprof_write(upload->profile, upload->stacks, ML_METRIC_LIVE, out);
    fputs("\r\n", out);
    put_end(upload, out);
    return status;
}

static enum ml_status write_form(const struct ml_upload *upload, FILE *out) {
    switch (upload->form) {
    case ML_UPLOAD_REPORT:
        return write_report(upload, out);
    case ML_UPLOAD_TRACE:
        return write_trace(upload, out);
    case ML_UPLOAD_PPROF:
        return ml_pprof_write(upload->profile, upload->stacks, ML_METRIC_LIVE, out);
    case ML_UPLOAD_PYROSCOPE:
        return write_pyroscope(upload, out);
    case ML_UPLOAD_PYROSCOPE_INGEST:
        return write_ingest(upload, out);
    case ML_UPLOAD_OTLP:
        return ml_otlp_write(upload->profile, upload->stacks, upload->guid, out);
    default:
        return ML_ENV_MISSING;
    }
}

/* ---- fitting */

static enum ml_status make(const struct ml_upload *upload, struct body *out_body) {
    FILE *file = NULL;
    enum ml_status status = ML_ENV_MEMORY;

    *out_body = (struct body){NULL, 0};
    file = open_memstream(&out_body->bytes, &out_body->count_bytes);
    if (file) {
        status = write_form(upload, file);
        if (fclose(file) != 0 && status == ML_OK) {
            status = ML_ENV_MEMORY;
        }
    }
    return status;
}

/* Whether no stack is told: it had none, or the innermost place is what pruning left. */
static bool is_folded(const struct ml_stacks *stacks, uint32_t node) {
    return node == ML_STACKS_NONE ||
           stacks->places[stacks->nodes[node].place].kind == ML_PLACE_OTHER;
}

static size_t count_stacks(const struct ml_stacks *stacks) {
    size_t count = 0;

    for (size_t i = 0; i < stacks->processes_count; i++) {
        count += stacks->processes[i].count;
    }
    return count;
}

static void count_cut(const struct ml_upload *upload, struct ml_upload_cut *cut) {
    const struct ml_stacks *stacks = upload->stacks;

    cut->stacks_after = count_stacks(stacks);
    for (size_t i = 0; i < stacks->processes_count; i++) {
        const struct ml_stack_list *list = &stacks->processes[i];
        for (size_t s = 0; s < list->count; s++) {
            cut->live_bytes += list->stacks[s].own.live_bytes;
            if (!is_folded(stacks, list->stacks[s].node)) {
                cut->attributed_bytes += list->stacks[s].own.live_bytes;
            }
        }
    }
}

/* A way to prune: the innermost frames of each stack (0: all), and what is folded then: by worth,
 * or if that is 0 by size. */
struct way {
    uint32_t frames;
    bool others_as_one; /* processes of which sums alone are left */
    double least_worth;
    uint64_t below_bytes, kept_blocks;
};

/* The best body so far that fits. */
struct fitting {
    struct ml_upload upload; /* as the way at hand has it */
    const struct ml_stacks_copy *whole;
    size_t stacks_before;
    bool fits;
    struct body body;
    struct ml_upload_cut cut;
};

/* Whether it is Chrome's trace: its readers are told of functions alone, what differs by address or
 * line is the same to them. */
static bool is_chromes(enum ml_upload_form form) {
    return form == ML_UPLOAD_REPORT || form == ML_UPLOAD_TRACE;
}

/* Stacks of so many frames, from the whole ones: what all ways of that length begin with. */
static enum ml_status
shorten(const struct fitting *fitting, uint32_t frames, struct ml_stacks_copy *out_copy) {
    struct ml_stacks *stacks = fitting->upload.stacks;
    enum ml_status status = ml_stacks_restore(stacks, fitting->whole);

    if (status == ML_OK && frames > 0) {
        status = ml_stacks_shorten(stacks, frames);
    }
    return status == ML_OK && !ml_stacks_copy_init(out_copy, stacks) ? ML_ENV_MEMORY : status;
}

/* Prune the stacks in that way. */
static enum ml_status
prune(struct ml_stacks *stacks, const struct ml_stacks_copy *from, const struct way *way) {
    enum ml_status status = ml_stacks_restore(stacks, from);

    if (status == ML_OK && way->least_worth > 0) {
        return ml_stacks_prune_to_worth(stacks, way->least_worth);
    }
    return status == ML_OK ? ml_stacks_prune_to(stacks, way->below_bytes, way->kept_blocks)
                           : status;
}

/* Make a body in that way; if it fits and tells more than the best one, it is that. */
static enum ml_status try_way(
    struct fitting *fitting,
    const struct ml_stacks_copy *from,
    const struct way *way,
    bool *out_fits
) {
    struct ml_upload_cut cut = {
        .stacks_before = fitting->stacks_before,
        .below_bytes = way->below_bytes,
        .least_worth = way->least_worth,
        .frames = way->frames,
    };
    struct body body = {NULL, 0};
    enum ml_status status = prune(fitting->upload.stacks, from, way);

    fitting->upload.others_as_one = way->others_as_one;
    cut.others = way->others_as_one ? ml_chrome_trace_others(fitting->upload.stacks) : 0;
    status = status == ML_OK ? make(&fitting->upload, &body) : status;
    cut.body_bytes = body.count_bytes;
    *out_fits = status == ML_OK && body.count_bytes <= fitting->upload.max_bytes;
    count_cut(&fitting->upload, &cut);
    if (*out_fits && (!fitting->fits || cut.attributed_bytes > fitting->cut.attributed_bytes)) {
        free(fitting->body.bytes);
        fitting->body = body;
        fitting->cut = cut;
        fitting->fits = true;
        return ML_OK;
    }
    if (!fitting->fits) {
        fitting->cut = cut; /* how large it is at least */
    }
    free(body.bytes);
    return status;
}

static bool tells_enough(const struct fitting *fitting) {
    return fitting->fits &&
           fitting->cut.attributed_bytes >= fitting->cut.live_bytes / 5 * ENOUGH_FIFTHS;
}

/* Fill the room with what is worth most: the least worth for a byte of body that fits is found by
 * halves, on a scale of halves of powers of two. */
static enum ml_status fill_room(
    struct fitting *fitting, const struct ml_stacks_copy *from, uint32_t frames, bool others_as_one
) {
    /* Less is worth nothing, more nobody holds for a byte. */
    enum { LEAST_BITS = 3, PLACES = 2 * 32 };
    static const double halves[] = {1, 1.41};
    uint32_t low = 0;
    uint32_t high = PLACES;
    enum ml_status status = ML_OK;

    while (low < high && status == ML_OK) {
        const uint32_t middle = low + (high - low) / 2;
        const struct way way = {
            .frames = frames,
            .others_as_one = others_as_one,
            .least_worth = ldexp(halves[middle % 2], (int)(middle / 2 + LEAST_BITS)),
        };
        bool fits = false;
        status = try_way(fitting, from, &way, &fits);
        low = fits ? low : middle + 1;
        high = fits ? middle : high;
    }
    return status;
}

/* Stacks of so many frames, each process apart if that is enough. */
static enum ml_status fill_with(struct fitting *fitting, uint32_t frames) {
    const bool has_others =
        is_chromes(fitting->upload.form) && fitting->upload.stacks->processes_count > 1;
    struct ml_stacks_copy from = {0};
    enum ml_status status = shorten(fitting, frames, &from);

    if (status == ML_OK) {
        status = fill_room(fitting, &from, frames, false);
    }
    if (status == ML_OK && has_others && !tells_enough(fitting)) {
        status = fill_room(fitting, &from, frames, true);
    }
    ml_stacks_copy_fini(&from);
    return status;
}

/* Chromium's way first; if that tells too little, one that keeps more. If they are too large, the
 * room is filled: whole stacks before short ones, and every process before those with stacks alone.
 * The first that tells who holds most of what is live is taken; else the one that tells most. */
static enum ml_status fit(struct fitting *fitting) {
    static const uint32_t depths[] = {0, 24, 12, 8, 5, 3, FRAMES_LEAST};
    const struct way by_size[] = {
        {.below_bytes = BELOW_FIRST_BYTES, .kept_blocks = ML_PRUNE_KEPT_BLOCKS},
        {.below_bytes = BELOW_SECOND_BYTES, .kept_blocks = KEPT_SECOND_BLOCKS},
    };
    enum ml_status status = ML_OK;
    bool fits = false;

    if (fitting->upload.keeps_small) {
        status = make(&fitting->upload, &fitting->body);
        fitting->cut.stacks_before = fitting->stacks_before;
        fitting->cut.body_bytes = fitting->body.count_bytes;
        count_cut(&fitting->upload, &fitting->cut);
        fitting->fits = fitting->body.count_bytes <= fitting->upload.max_bytes;
        if (fitting->fits || status != ML_OK) {
            return status;
        }
    }
    for (size_t i = 0; status == ML_OK && !tells_enough(fitting) && i < 2; i++) {
        status = try_way(fitting, fitting->whole, &by_size[i], &fits);
        if (!fits) {
            break;
        }
    }
    for (size_t i = 0;
         status == ML_OK && !tells_enough(fitting) && i < sizeof depths / sizeof depths[0];
         i++) {
        status = fill_with(fitting, depths[i]);
    }
    return status == ML_OK && !fitting->fits ? ML_PEER_LIMIT : status;
}

enum ml_status
ml_upload_write(const struct ml_upload *upload, FILE *out, struct ml_upload_cut *out_cut) {
    struct fitting fitting = {.upload = *upload, .stacks_before = count_stacks(upload->stacks)};
    struct ml_stacks_copy whole;
    enum ml_status status = ML_OK;

    *out_cut = (struct ml_upload_cut){0};
    if (is_chromes(upload->form) && !upload->keeps_small) {
        status = ml_stacks_merge_functions(upload->stacks);
    }
    if (status != ML_OK || !ml_stacks_copy_init(&whole, upload->stacks)) {
        return ML_ENV_MEMORY;
    }
    fitting.whole = &whole;
    status = fit(&fitting);
    *out_cut = fitting.cut;
    ml_stacks_copy_fini(&whole);
    if (status == ML_OK &&
        fwrite(fitting.body.bytes, 1, fitting.body.count_bytes, out) != fitting.body.count_bytes) {
        status = ML_ENV_SYSTEM;
    }
    free(fitting.body.bytes);
    return status;
}
