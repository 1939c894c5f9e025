#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/size.h"
#include "tools/command.h"
#include "tools/redact.h"
#include "tools/upload_body.h"

static const char help[] =
    "memlog upload --dry-run [--form=FORM] [--upload-max-bytes=N] [--upload-names=POLICY]\n"
    "              [--memlog-keep-small-allocations] [-o FILE] DUMP\n"
    "\n"
    "Show byte for byte what an upload of the dump would send, on stdout or in FILE, and on "
    "stderr\n"
    "what was cut for it. Nothing is sent.\n"
    "\n"
    "  --form=FORM       report (default: what --upload=https:// sends), trace (folders and s3),\n"
    "                    pprof, pyroscope, pyroscope-ingest, otlp\n"
    "  --upload-max-bytes=N\n"
    "                    as memlog run has it (10000000): pruned harder until it fits\n"
    "  --upload-names=plain|none|all\n"
    "                    names of threads, processes and pseudo stacks: plain words only "
    "(default),\n"
    "                    none, all of them\n"
    "  --memlog-keep-small-allocations\n"
    "                    prune only what does not fit\n"
    "\n"
    "Example: memlog upload --dry-run memlog.sqlite3.1234/0001.threshold.pftrace | less\n";

/* Chromium's bound for a report. */
static const uint64_t max_bytes_default = 10000000;

enum { GUID_BYTES = 32 };

struct request {
    const char *form, *max_bytes, *names, *guid, *output, *file;
    bool dry_run, keep_small;
};

/* The word's place in the list. False after a complaint, with *out_exit. */
static bool choose(
    const struct ml_command *command,
    const char *option,
    const char *word,
    const char *const *words,
    size_t count,
    unsigned *out_place
) {
    *out_place = 0;
    for (unsigned i = 0; word && i < count; i++) {
        if (strcmp(word, words[i]) == 0) {
            *out_place = i;
            return true;
        }
    }
    if (word) {
        (void)ml_command_complain_of_value(command, option, word, words, count);
    }
    return !word;
}

static bool is_guid(const char *text) {
    return strlen(text) == GUID_BYTES && strspn(text, "0123456789abcdef") == GUID_BYTES;
}

static bool make_guid(char out_guid[GUID_BYTES + 1]) {
    unsigned char bytes[GUID_BYTES / 2];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        return false;
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        snprintf(out_guid + 2 * i, 3, "%02x", bytes[i]);
    }
    return true;
}

static double percent(uint64_t part, uint64_t of) {
    return of > 0 ? 100.0 * (double)part / (double)of : 100.0;
}

/* What became of stacks and processes that are left. */
static void say_shape(const struct ml_upload_cut *cut) {
    if (cut->frames > 0) {
        fprintf(
            stderr,
            "cut: of each stack %ju frames stay, from the function that asked on%s\n",
            (uintmax_t)cut->frames,
            cut->from_asker ? "" : ", and the inner ones"
        );
    }
    if (cut->function_bytes > 0) {
        fprintf(
            stderr,
            "cut: stacks with %.1f %% of the live bytes became the function that asked\n",
            percent(cut->function_bytes, cut->live_bytes)
        );
    }
    if (cut->is_sparse) {
        fprintf(stderr, "cut: resident sizes, peaks, sums of blocks, and the time of the dump\n");
    }
    if (cut->programs > 0) {
        fprintf(
            stderr, "cut: %zu processes became one with those of their program\n", cut->programs
        );
    }
    if (cut->others > 0) {
        fprintf(stderr, "cut: %zu processes with nothing left but sums became one\n", cut->others);
    }
}

static void
say_cut(const struct ml_redacted *redacted, const struct ml_upload_cut *cut, uint64_t max_bytes) {
    fprintf(
        stderr,
        "cut: %zu paths to their base names, %zu arguments left out, %zu names replaced\n",
        redacted->paths,
        redacted->arguments,
        redacted->names
    );
    if (cut->least_worth > 0) {
        fprintf(
            stderr,
            "cut: stacks worth less than %.0f bytes for each byte of their place in it%s folded "
            "into <other>: ",
            cut->least_worth,
            cut->below_bytes > 0 ? ", and of less than 16 KiB and 1,024 blocks," : ""
        );
    } else {
        fprintf(stderr, "cut: no stack folded into <other>: ");
    }
    fprintf(
        stderr,
        "%zu of %zu left, with %.1f %% of the live bytes (%.1f %% name who asked, a function of "
        "the "
        "program's own)\n",
        cut->stacks_after,
        cut->stacks_before,
        percent(cut->attributed_bytes, cut->live_bytes),
        percent(cut->named_bytes, cut->live_bytes)
    );
    say_shape(cut);
    fprintf(
        stderr, "size: %ju bytes of %ju allowed\n", (uintmax_t)cut->body_bytes, (uintmax_t)max_bytes
    );
}

static int send_out(
    const struct ml_command *command,
    const struct request *request,
    struct ml_upload *upload,
    struct ml_loaded *loaded,
    enum ml_redact_names names
) {
    struct ml_redacted redacted;
    struct ml_upload_cut cut;
    struct ml_output output;
    enum ml_status status = ml_redact(&loaded->profile, &loaded->stacks, names, &redacted);

    if (status == ML_OK) {
        status = ml_output_open(&output, request->output);
    }
    if (status == ML_OK) {
        upload->profile = &loaded->profile;
        upload->stacks = &loaded->stacks;
        status = ml_upload_write(upload, output.file, &cut);
        if (status == ML_PEER_LIMIT) {
            ml_command_say_of(
                command,
                request->file,
                "%ju bytes, though nothing is left to prune: say "
                "--upload-max-bytes=",
                (uintmax_t)cut.body_bytes
            );
        }
        status = ml_output_close(&output, status);
        if (status == ML_OK) {
            say_cut(&redacted, &cut, upload->max_bytes);
        }
    }
    return status == ML_PEER_LIMIT ? ML_EXIT_FAILED
                                   : ml_command_written(command, request->output, status);
}

static int run(const struct ml_command *command, int argc, char **argv) {
    static const char *const policies[] = {"plain", "none", "all"};
    struct request request = {0};
    const struct ml_option options[] = {
        {.name = "--dry-run", .out_given = &request.dry_run},
        {.name = "--form", .out_value = &request.form},
        {.name = "--upload-max-bytes", .out_value = &request.max_bytes},
        {.name = "--upload-names", .out_value = &request.names},
        {.name = "--memlog-keep-small-allocations", .out_given = &request.keep_small},
        {.name = "--guid", .out_value = &request.guid},
        {.name = "--output", .short_name = "-o", .out_value = &request.output},
    };
    struct ml_upload upload = {.max_bytes = max_bytes_default};
    struct ml_loaded loaded;
    char guid[GUID_BYTES + 1];
    char boundary[GUID_BYTES + sizeof "memlog-"];
    unsigned form = 0;
    unsigned policy = 0;
    bool go_on = false;
    int exit_code = ml_command_arguments(command, argc, argv, options, 7, &request.file, 1, &go_on);

    if (!go_on) {
        return exit_code;
    }
    if (!choose(
            command, "--form", request.form, ml_upload_form_names, ML_UPLOAD_FORM_COUNT, &form
        ) ||
        !choose(command, "--upload-names", request.names, policies, 3, &policy)) {
        return ML_EXIT_USAGE;
    }
    if (request.max_bytes &&
        (!ml_size_read(request.max_bytes, &upload.max_bytes) || upload.max_bytes == 0)) {
        return ml_command_complain(command, "--upload-max-bytes wants a size, such as 10M");
    }
    if (request.guid && !is_guid(request.guid)) {
        return ml_command_complain(command, "--guid wants 32 hex digits");
    }
    if (!request.guid && !make_guid(guid)) {
        return ml_command_written(command, NULL, ML_ENV_SYSTEM);
    }
    if (!request.output && isatty(STDOUT_FILENO)) {
        return ml_command_complain(command, "the body is binary: say -o FILE, or pipe it");
    }
    upload.form = (enum ml_upload_form)form;
    upload.keeps_small = request.keep_small;
    upload.guid = request.guid ? request.guid : guid;
    /* Known to who sends it: the guid is. */
    snprintf(boundary, sizeof boundary, "memlog-%s", upload.guid);
    upload.boundary = boundary;
    const struct ml_load load = {.path = request.file, .output_path = request.output};
    exit_code = ml_command_load(command, &load, &loaded);
    if (exit_code == ML_EXIT_OK) {
        exit_code = send_out(command, &request, &upload, &loaded, (enum ml_redact_names)policy);
    }
    ml_loaded_fini(&loaded);
    return exit_code;
}

const struct ml_command ml_command_upload = {
    .name = "upload",
    .summary = "what an upload would send",
    .help = help,
    .run = run,
};
