#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/size.h"
#include "base/upload.h"
#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/upload/body.h"
#include "tools/analyzer/upload/redact.h"
#include "tools/analyzer/upload/relocate.h"

enum { GUID_BYTES = 32, HOST_BYTES = ML_UPLOAD_WORD_MAX + 1 };

struct request {
    struct ml_upload upload;
    enum ml_redact_names names;
    const char *guid, *output;
    bool dry_run;
    struct ml_load load;
};

static const char *const policies[] = {"plain", "none", "all", NULL};

static bool read_guid(void *to, const char *value, struct ml_error_message *why) {
    (void)why;
    ((struct request *)to)->guid = value;
    return strlen(value) == GUID_BYTES && strspn(value, "0123456789abcdef") == GUID_BYTES;
}

static bool read_host(void *to, const char *value, struct ml_error_message *why) {
    (void)why;
    ((struct request *)to)->upload.host = strcmp(value, "none") == 0 ? "" : value;
    return ml_upload_is_word(value);
}

static bool read_version(void *to, const char *value, struct ml_error_message *why) {
    (void)why;
    ((struct request *)to)->upload.version = value;
    return ml_upload_is_word(value);
}

static const struct ml_option options[] = {
    {.name = "--dry-run",
     ML_FLAG_TO(struct request, dry_run),
     .help = "show it; without, a running memlog is asked to send one of its own"},
    {.name = "--form",
     ML_WORD_TO(struct request, upload.form),
     .value = "FORM",
     .words = ml_upload_form_names,
     .help = "report (default: what --upload=https:// sends), trace (folders and s3), and what "
             "other servers take:"},
    {.name = "--upload-max-bytes",
     ML_SIZE_TO(struct request, upload.max_bytes),
     .least = ML_UPLOAD_LEAST_BYTES,
     .value = "BYTES",
     .help = "as memlog run has it (10000000), 4K or more: pruned harder until it fits"},
    {.name = "--upload-prune",
     ML_COUNT_TO(struct request, upload.prune),
     .least = 1,
     .most = ML_UPLOAD_PRUNE_MAX,
     .value = "RATIO",
     .help = "and so many times smaller than the whole body, as memlog run has it; never below 4K"},
    {.name = "--upload-names",
     ML_WORD_TO(struct request, names),
     .words = policies,
     .help = "names of threads, processes, scopes, heaps and types: plain words only (default), "
             "none, all "
             "of them"},
    {.name = "--upload-host",
     .kind = ML_OPTION_OWN,
     .read = read_host,
     .value = "NAME",
     .wants = ML_UPLOAD_WORD_WANTS,
     .help = "the machine's name in it (default: its own); none: no name"},
    {.name = "--upload-version",
     .kind = ML_OPTION_OWN,
     .read = read_version,
     .value = "TEXT",
     .wants = ML_UPLOAD_WORD_WANTS,
     .help = "the program's version, as its user counts"},
    {.name = "--upload-weight",
     ML_COUNT_TO(struct request, upload.weight),
     .value = "COUNT",
     .help = "of a dump by chance: it stands for so many looks at the processes"},
    {.name = "--memlog-keep-small-allocations",
     ML_FLAG_TO(struct request, upload.keeps_small),
     .help = "prune only what does not fit"},
    ML_ROW_OUTPUT(struct request, output, "where to (default: stdout)"),
    {.name = "--guid",
     .kind = ML_OPTION_OWN,
     .read = read_guid,
     .value = "GUID",
     .wants = "32 hex digits"},
};

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

/* Empty where it is no plain word. */
static void own_name(char out_name[HOST_BYTES]) {
    if (gethostname(out_name, HOST_BYTES) != 0 || !memchr(out_name, 0, HOST_BYTES) ||
        !ml_upload_is_word(out_name)) {
        out_name[0] = '\0';
    }
}

static double percent(uint64_t part, uint64_t of) {
    return of > 0 ? 100.0 * (double)part / (double)of : 100.0;
}

/* The reductions of the stacks and processes that are left. */
static void say_shape(const struct ml_upload_cut *cut) {
    if (cut->frames > 0) {
        fprintf(
            stderr,
            "cut: of each stack %ju frames stay, from the function that asked on, and the inner "
            "ones\n",
            (uintmax_t)cut->frames
        );
    }
    if (cut->function_bytes > 0) {
        fprintf(
            stderr,
            "cut: stacks with %.1f %% of the live bytes became the function that asked\n",
            percent(cut->function_bytes, cut->live_bytes)
        );
    }
    if (cut->others > 0) {
        fprintf(stderr, "cut: %zu processes with nothing left but sums became one\n", cut->others);
    }
}

static void say_cut(const struct ml_redacted *redacted, const struct ml_upload_cut *cut) {
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
        stderr,
        "size: %ju bytes of %ju allowed\n",
        (uintmax_t)cut->body_bytes,
        (uintmax_t)cut->max_bytes
    );
    if (cut->whole_bytes > 0) {
        fprintf(stderr, "size: a whole one has %ju bytes\n", (uintmax_t)cut->whole_bytes);
    }
}

static int
send_out(const struct ml_command *command, struct request *request, struct ml_loaded *loaded) {
    struct ml_upload *upload = &request->upload;
    struct ml_redacted redacted;
    struct ml_upload_cut cut;
    struct ml_output output;
    enum ml_status status = ml_redact(&loaded->profile, &loaded->stacks, request->names, &redacted);

    if (status == ML_OK) {
        ml_relocate(&loaded->profile, &loaded->stacks);
        status = ml_output_open(&output, request->output);
    }
    if (status == ML_OK) {
        upload->stacks = &loaded->stacks;
        status = ml_upload_write(upload, output.file, &cut);
        if (status == ML_PEER_LIMIT) {
            ml_command_say_of(
                command,
                request->load.path,
                "%ju bytes, though nothing is left to prune: say "
                "--upload-max-bytes=",
                (uintmax_t)cut.body_bytes
            );
        }
        status = ml_output_close(&output, status);
        if (status == ML_OK) {
            say_cut(&redacted, &cut);
        }
    }
    return status == ML_PEER_LIMIT ? ML_EXIT_FAILED
                                   : ml_command_written(command, request->output, status);
}

static int run(const struct ml_command *command, char *const *words) {
    struct request request = {.upload = {.max_bytes = ML_UPLOAD_MOST_BYTES, .version = ""}};
    struct ml_upload *upload = &request.upload;
    struct ml_loaded loaded;
    char guid[GUID_BYTES + 1];
    char host[HOST_BYTES];
    char boundary[GUID_BYTES + sizeof "memlog-"];
    int exit_code = ML_EXIT_OK;

    if (!ml_command_read(command, words, &request, NULL, &exit_code)) {
        return exit_code;
    }
    if (!request.guid && !make_guid(guid)) {
        return ml_command_written(command, NULL, ML_ENV_SYSTEM);
    }
    if (!request.output && isatty(STDOUT_FILENO)) {
        return ml_command_fail(command, "the body is binary: say -o FILE, or pipe it");
    }
    if (upload->prune > 0 && upload->keeps_small) {
        return ml_command_fail(
            command, "--upload-prune and --memlog-keep-small-allocations exclude each other"
        );
    }
    upload->guid = request.guid ? request.guid : guid;
    if (!upload->host) {
        own_name(host);
        upload->host = host;
    }
    /* The sender knows it: made of the guid. */
    snprintf(boundary, sizeof boundary, "memlog-%s", upload->guid);
    upload->boundary = boundary;
    request.load.output_path = request.output;
    exit_code = ml_command_load(command, &request.load, &loaded);
    if (exit_code == ML_EXIT_OK) {
        exit_code = send_out(command, &request, &loaded);
    }
    ml_loaded_fini(&loaded);
    return exit_code;
}

const struct ml_command ml_command_upload = {
    .table =
        {.program = "memlog",
         .name = "upload",
         .summary = "what an upload would send",
         .usage = "--dry-run [OPTIONS] [DUMP]",
         .about = "Shows byte for byte what an upload of the dump would send, on stdout or in "
                  "FILE, and on stderr what was cut for it. Nothing is sent.",
         ML_OPTIONS(options),
         ML_OPERANDS_NEWEST(struct request, load.path, 1),
         .example = "memlog upload --dry-run memlog.sqlite3.1234/0001.threshold.pftrace | less"},
    .dumps = ML_DUMPS_OR_NEWEST,
    .run = run,
};
