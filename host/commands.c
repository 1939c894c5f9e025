#include "host/commands.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/complaint.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "base/size.h"
#include "base/suggest.h"
#include "host/rendezvous.h"
#include "host/role.h"
#include "host/run.h"
#include "host/voice.h"
#include "ipc/channel.h"
#include "mojom_like_idl/heap_host_mojom.h"

/* An answer to ps needs no work; a dump drains all pipes and is written to disk. */
enum { PS_TIMEOUT_MS = 10000, DUMP_TIMEOUT_MS = 600000, PIDS_MAX = 1024 };

struct arguments {
    bool json;
    const char *host;
    const char *role, *reason; /* of a dump; "" without */
    uint32_t pids[PIDS_MAX];
    uint32_t pids_count;
};

bool ml_commands_unknown(const char *word, const char *const *known, size_t known_count) {
    char name[ML_SUGGEST_WORD_MAX + 1];
    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
    const char *near = ml_suggest(name, known, known_count);
    if (near != NULL) {
        ml_say_error("unknown option '%s'; did you mean '%s'?", word, near);
    } else {
        ml_say_error("unknown option '%s'", word);
    }
    return false;
}

static bool unknown_argument(const char *argument, bool is_ps) {
    static const char *const of_ps[] = {"--host", "--json"};
    static const char *const of_dump[] = {"--host", "--role", "--reason"};
    return ml_commands_unknown(argument, is_ps ? of_ps : of_dump, is_ps ? 2 : 3);
}

/* A role that there is, a reason that is not empty. */
static bool take_dump_word(const char *word, struct arguments *arguments) {
    struct ml_complaint complaint = {.text = ""};
    enum ml_role role = ML_ROLE_OTHER;
    if (strncmp(word, "--reason=", 9) == 0) {
        arguments->reason = word + 9;
        if (strlen(arguments->reason) > MEMLOG_HOST_DUMP_REQUEST_REASON_LIMIT) {
            ml_say_error("--reason: at most %d bytes", MEMLOG_HOST_DUMP_REQUEST_REASON_LIMIT);
            return false;
        }
        return true;
    }
    arguments->role = word + 7;
    if (ml_role_parse(arguments->role, &role, &complaint) != ML_OK) {
        ml_say_error("--role: %s", complaint.text);
        return false;
    }
    return true;
}

static bool is_dump_word(const char *word) {
    return strncmp(word, "--role=", 7) == 0 || strncmp(word, "--reason=", 9) == 0;
}

/* False and a word on stderr: wrong usage. */
static bool parse(char *const *words, bool is_ps, struct arguments *out_arguments) {
    *out_arguments = (struct arguments){.role = "", .reason = ""};
    for (size_t i = 0; words[i] != NULL; i++) {
        uint64_t pid = 0;
        if (is_ps && strcmp(words[i], "--json") == 0) {
            out_arguments->json = true;
        } else if (strncmp(words[i], "--host=", 7) == 0) {
            out_arguments->host = words[i] + 7;
        } else if (!is_ps && is_dump_word(words[i])) {
            if (!take_dump_word(words[i], out_arguments)) {
                return false;
            }
        } else if (words[i][0] == '-') {
            return unknown_argument(words[i], is_ps);
        } else if (is_ps || !ml_count_read(words[i], INT_MAX, &pid) || pid == 0) {
            ml_say_error("'%s' is not %s", words[i], is_ps ? "an option" : "a process id");
            return false;
        } else if (out_arguments->pids_count < PIDS_MAX) {
            out_arguments->pids[out_arguments->pids_count++] = (uint32_t)pid;
        }
    }
    return true;
}

struct ml_channel *ml_commands_reach_host(const char *path) {
    struct ml_complaint complaint = {.text = ""};
    int fd = -1;
    if (ml_rendezvous_connect(path, &fd, &complaint) != ML_OK) {
        ml_say_error("%s", complaint.text);
        return NULL;
    }
    const struct ml_channel_options options = {.loop = NULL};
    struct ml_channel *channel = NULL;
    enum ml_status status = ml_channel_new(fd, &options, &channel);
    if (status != ML_OK) {
        ml_say_error("cannot speak to the running memlog: %s", ml_status_text(status));
        return NULL;
    }
    return channel;
}

void ml_commands_json_text(const char *bytes, size_t count_bytes) {
    struct ml_json json = ml_json_over(stdout);

    ml_json_text(&json, bytes, count_bytes);
}

void ml_commands_put_path(const char *bytes, size_t count_bytes) {
    if (isatty(STDOUT_FILENO)) {
        ml_printable_put(stdout, bytes, count_bytes);
    } else {
        (void)fwrite(bytes, 1, count_bytes, stdout);
    }
    (void)putchar('\n');
}

static void json_field(const char *name, struct ml_string value) {
    (void)printf(", \"%s\": ", name);
    ml_commands_json_text(value.data, value.count_bytes);
}

static void json_uploads(const struct memlog_host_uploads *uploads) {
    if (uploads->target.count_bytes == 0) {
        return;
    }
    (void)printf(
        ", \"uploads\": {\"sent\": %" PRIu64 ", \"sent_bytes\": %" PRIu64 ", \"retries\": %" PRIu64
        ", \"given_up\": %" PRIu64 ", \"refused\": %" PRIu64 ", \"waiting\": %" PRIu32
        ", \"next_ms\": %" PRIu64,
        uploads->sent,
        uploads->sent_bytes,
        uploads->retries,
        uploads->given_up,
        uploads->refused,
        uploads->waiting,
        uploads->next_ms
    );
    json_field("target", uploads->target);
    json_field("last_error", uploads->last_error);
    (void)printf(", \"history\": [");
    for (uint32_t i = 0; i < uploads->history.count; i++) {
        (void)printf(i > 0 ? ", " : "");
        ml_commands_json_text(
            uploads->history.items[i].data, uploads->history.items[i].count_bytes
        );
    }
    (void)printf("]}");
}

static void print_json(const struct memlog_host_ps_reply *reply) {
    (void)printf("{\"memlog\": 1, \"program\": ");
    ml_commands_json_text(reply->program.data, reply->program.count_bytes);
    (void)printf(", \"processes\": [");
    for (uint32_t i = 0; i < reply->processes.count; i++) {
        const struct memlog_host_process_row *row = &reply->processes.items[i];
        (void)printf(
            "%s\n  {\"id\": %" PRIu32 ", \"pid\": %" PRIu32 ", \"parent_pid\": %" PRIu32,
            i > 0 ? "," : "",
            row->id,
            row->pid,
            row->parent_pid
        );
        json_field("name", row->name);
        json_field("role", row->role);
        json_field("state", row->state);
        (void)printf(
            ", \"recording\": %s, \"live_bytes\": %" PRIu64 ", \"live_blocks\": %" PRIu64
            ", \"peak_bytes\": %" PRIu64 ", \"total_bytes\": %" PRIu64 ", \"events\": %" PRIu64
            ", \"lost_events\": %" PRIu64 ", \"waits\": %" PRIu64 ", \"waited_ns\": %" PRIu64
            ", \"longest_wait_ns\": %" PRIu64 ", \"sampling_bytes\": %" PRIu64
            ", \"footprint_bytes\": %" PRIu64,
            row->recording ? "true" : "false",
            row->live_bytes,
            row->live_blocks,
            row->peak_bytes,
            row->total_bytes,
            row->events,
            row->lost_events,
            row->waits,
            row->waited_ns,
            row->longest_wait_ns,
            row->sampling_bytes,
            row->footprint_bytes
        );
        if (row->folded_processes > 0) {
            (void)printf(", \"folded_processes\": %" PRIu32, row->folded_processes);
        }
        json_field("note", row->note);
        (void)printf("}");
    }
    (void)printf("%s]", reply->processes.count > 0 ? "\n" : "");
    json_uploads(&reply->uploads);
    (void)printf("}\n");
}

enum { FOLDED_TEXT_BYTES = 48 };

/* Its role where somebody has said one; "main" of the first process. */
static struct ml_string
role_word(const struct memlog_host_ps_reply *reply, const struct memlog_host_process_row *row) {
    const char *name = ml_role_name(ML_ROLE_OTHER);
    if (row->role.count_bytes == strlen(name) &&
        memcmp(row->role.data, name, row->role.count_bytes) == 0) {
        return ml_string_of("");
    }
    name = ml_role_name(ML_ROLE_BROWSER);
    if (row->role.count_bytes != strlen(name) ||
        memcmp(row->role.data, name, row->role.count_bytes) != 0) {
        return row->role;
    }
    for (uint32_t i = 0; i < reply->processes.count; i++) {
        if (reply->processes.items[i].pid == row->parent_pid) {
            return row->role; /* a rule of the user's: it has a parent here */
        }
    }
    return ml_string_of("main");
}

static void print_table(const struct memlog_host_ps_reply *reply) {
    (void)printf(
        "%8s %8s  %-8s %-8s %11s %11s %12s %8s %9s %9s  %s\n",
        "PID",
        "PARENT",
        "ROLE",
        "STATE",
        "LIVE",
        "PEAK",
        "EVENTS",
        "LOST",
        "WAITED",
        "SAMPLED",
        "NAME"
    );
    for (uint32_t i = 0; i < reply->processes.count; i++) {
        const struct memlog_host_process_row *row = &reply->processes.items[i];
        char live[ML_SIZE_TEXT_BYTES];
        char peak[ML_SIZE_TEXT_BYTES];
        char folded[FOLDED_TEXT_BYTES] = "";
        if (row->folded_processes > 0) {
            (void)snprintf(
                folded,
                sizeof(folded),
                " (the sums of %" PRIu32 " processes)",
                row->folded_processes
            );
        }
        char interval[ML_SIZE_TEXT_BYTES];
        const struct ml_string role = role_word(reply, row);
        (void)printf(
            "%8" PRIu32 " %8" PRIu32 "  %-8.*s %-8.*s %11s %11s %12" PRIu64 " %8" PRIu64
            " %6" PRIu64 " ms %9s  ",
            row->pid,
            row->parent_pid,
            (int)role.count_bytes,
            role.data,
            (int)row->state.count_bytes,
            row->state.data,
            ml_size_text(row->live_bytes, live),
            ml_size_text(row->peak_bytes, peak),
            row->events,
            row->lost_events,
            row->waited_ns / 1000000,
            row->sampling_bytes > 1 ? ml_size_text(row->sampling_bytes, interval)
                                    : (row->sampling_bytes == 1 ? "all" : "-")
        );
        ml_printable_put(stdout, row->name.data, row->name.count_bytes);
        (void)fputs(folded, stdout);
        if (row->note.count_bytes > 0) {
            (void)fputs(" (", stdout);
            ml_printable_put(stdout, row->note.data, row->note.count_bytes);
            (void)fputs(")", stdout);
        }
        (void)putchar('\n');
    }
}

static void print_uploads(const struct memlog_host_uploads *uploads) {
    if (uploads->target.count_bytes == 0) {
        return;
    }
    (void)fputs("\nuploads to ", stdout);
    ml_printable_put(stdout, uploads->target.data, uploads->target.count_bytes);
    (void)printf(
        ": %" PRIu64 " sent, %" PRIu32 " waiting, %" PRIu64 " retries, %" PRIu64
        " given up, %" PRIu64 " refused\n",
        uploads->sent,
        uploads->waiting,
        uploads->retries,
        uploads->given_up,
        uploads->refused
    );
    for (uint32_t i = 0; i < uploads->history.count; i++) {
        const struct ml_string *line = &uploads->history.items[i];
        (void)fputs("  ", stdout);
        ml_printable_put(stdout, line->data, line->count_bytes);
        (void)putchar('\n');
    }
}

int ml_command_ps(char *const *words) {
    struct arguments arguments;
    if (!parse(words, true, &arguments)) {
        return ML_EXIT_USAGE;
    }
    struct ml_channel *channel = ml_commands_reach_host(arguments.host);
    if (channel == NULL) {
        return ML_EXIT_FAILED;
    }
    const struct memlog_host_ps_request request = {.version = MEMLOG_HOST_HOST_VERSION};
    struct memlog_host_ps_reply reply;
    enum ml_status status =
        memlog_host_ps_wait(ml_channel_port(channel), &request, PS_TIMEOUT_MS, &reply);
    if (status != ML_OK) {
        ml_say_error("the running memlog does not answer: %s", ml_status_text(status));
    } else if (arguments.json) {
        print_json(&reply);
    } else {
        print_table(&reply);
        print_uploads(&reply.uploads);
    }
    ml_channel_free(channel);
    return status == ML_OK ? 0 : ML_EXIT_FAILED;
}

int ml_command_dump(char *const *words) {
    struct arguments arguments;
    if (!parse(words, false, &arguments)) {
        return ML_EXIT_USAGE;
    }
    struct ml_channel *channel = ml_commands_reach_host(arguments.host);
    if (channel == NULL) {
        return ML_EXIT_FAILED;
    }
    const struct memlog_host_dump_request request = {
        .version = MEMLOG_HOST_HOST_VERSION,
        .pids = {.items = arguments.pids, .count = arguments.pids_count},
        .role = ml_string_of(arguments.role),
        .reason = ml_string_of(arguments.reason),
    };
    struct memlog_host_dump_reply reply;
    enum ml_status status =
        memlog_host_dump_wait(ml_channel_port(channel), &request, DUMP_TIMEOUT_MS, &reply);
    bool written = status == ML_OK && reply.path.count_bytes > 0;
    if (status != ML_OK) {
        ml_say_error("the running memlog does not answer: %s", ml_status_text(status));
    } else if (reply.trouble.count_bytes > 0) {
        ml_say_error("%.*s", (int)reply.trouble.count_bytes, reply.trouble.data);
    }
    if (written) {
        ml_commands_put_path(reply.path.data, reply.path.count_bytes);
    }
    ml_channel_free(channel);
    return written ? 0 : ML_EXIT_FAILED;
}
