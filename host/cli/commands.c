#include "host/cli/commands.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error_message.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "base/size.h"
#include "host/cli/run.h"
#include "host/policy/role.h"
#include "host/process/info.h"
#include "host/process/log.h"
#include "host/sockets/socket_directory.h"
#include "ipc/channel/channel.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"

/* The host answers ps at once. A dump first drains all pipes and is then written to disk. */
enum { PS_TIMEOUT_MS = 10000, DUMP_TIMEOUT_MS = 600000 };

int ml_commands_wrong(const struct ml_option_table *table, const char *error) {
    ml_say_error("%s", error);
    (void)fprintf(stderr, "Try 'memlog %s --help'.\n", table->name);
    return ML_EXIT_USAGE;
}

bool ml_commands_read(
    const struct ml_option_table *table,
    char *const *words,
    void *to,
    uint64_t *out_given,
    int *out_exit_code
) {
    struct ml_error_message error = {.text = ""};
    *out_exit_code = 0;
    switch (ml_option_table_read(table, words, to, out_given, &error)) {
    case ML_OPTIONS_READ:
        return true;
    case ML_OPTIONS_HELP:
        ml_option_table_help(table, stdout);
        return false;
    case ML_OPTIONS_WRONG:
        break;
    }
    *out_exit_code = ml_commands_wrong(table, error.text);
    return false;
}

struct ml_channel *ml_commands_reach_host(const char *path) {
    struct ml_error_message error = {.text = ""};
    int fd = -1;
    if (ml_socket_directory_connect(path, &fd, &error) != ML_OK) {
        ml_say_error("%s", error.text);
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

void ml_commands_json_member(struct ml_json *json, const char *name, struct ml_string value) {
    ml_json_text_member(json, name, value.data, value.count_bytes);
}

void ml_commands_put_path(const char *bytes, size_t count_bytes) {
    if (isatty(STDOUT_FILENO)) {
        ml_printable_put(stdout, bytes, count_bytes);
    } else {
        (void)fwrite(bytes, 1, count_bytes, stdout);
    }
    (void)putchar('\n');
}

static void json_uploads(struct ml_json *json, const struct memlog_host_uploads *uploads) {
    if (uploads->target.count_bytes == 0) {
        return;
    }
    ml_json_open_member(json, "uploads", '{');
    ml_json_number_member(json, "sent", uploads->sent);
    ml_json_number_member(json, "sent_bytes", uploads->sent_bytes);
    ml_json_number_member(json, "retries", uploads->retries);
    ml_json_number_member(json, "given_up", uploads->given_up);
    ml_json_number_member(json, "refused", uploads->refused);
    ml_json_number_member(json, "waiting", uploads->waiting);
    ml_json_number_member(json, "next_ms", uploads->next_ms);
    ml_commands_json_member(json, "target", uploads->target);
    ml_commands_json_member(json, "last_error", uploads->last_error);
    ml_json_open_member(json, "history", '[');
    for (uint32_t i = 0; i < uploads->history.count; i++) {
        const struct ml_string *line = &uploads->history.items[i];
        ml_json_text(json, line->data, line->count_bytes);
    }
    ml_json_close(json, ']');
    ml_json_close(json, '}');
}

static void json_process(struct ml_json *json, const struct memlog_host_process_row *row) {
    ml_json_line(json);
    ml_json_open(json, '{');
    ml_json_number_member(json, "id", row->id);
    ml_json_number_member(json, "pid", row->pid);
    ml_json_number_member(json, "parent_pid", row->parent_pid);
    ml_commands_json_member(json, "name", row->name);
    ml_commands_json_member(json, "role", row->role);
    ml_commands_json_member(json, "state", row->state);
    ml_json_bool_member(json, "recording", row->recording);
    ml_json_number_member(json, "live_bytes", row->live_bytes);
    ml_json_number_member(json, "live_blocks", row->live_blocks);
    ml_json_number_member(json, "peak_bytes", row->peak_bytes);
    ml_json_number_member(json, "total_bytes", row->total_bytes);
    ml_json_number_member(json, "events", row->events);
    ml_json_number_member(json, "lost_events", row->lost_events);
    ml_json_number_member(json, "waits", row->waits);
    ml_json_number_member(json, "waited_ns", row->waited_ns);
    ml_json_number_member(json, "longest_wait_ns", row->longest_wait_ns);
    ml_json_number_member(json, "sampling_bytes", row->sampling_bytes);
    ml_json_number_member(json, "footprint_bytes", row->footprint_bytes);
    if (row->promised_ppm > 0) {
        ml_json_number_member(json, "promised_ppm", row->promised_ppm);
    }
    if (row->cost_measured) {
        ml_json_number_member(json, "cost_ppm", row->cost_ppm);
        ml_json_number_member(json, "recent_cost_ppm", row->recent_cost_ppm);
    }
    if (row->folded_processes > 0) {
        ml_json_number_member(json, "folded_processes", row->folded_processes);
    }
    ml_commands_json_member(json, "note", row->note);
    ml_json_close(json, '}');
}

static void print_json(const struct memlog_host_ps_reply *reply) {
    struct ml_json json = ml_json_over(stdout);
    ml_json_open(&json, '{');
    ml_json_number_member(&json, "memlog", 1);
    ml_commands_json_member(&json, "program", reply->program);
    ml_json_open_member(&json, "processes", '[');
    for (uint32_t i = 0; i < reply->processes.count; i++) {
        json_process(&json, &reply->processes.items[i]);
    }
    ml_json_close(&json, ']');
    json_uploads(&json, &reply->uploads);
    ml_json_close(&json, '}');
    (void)putchar('\n');
}

enum { FOLDED_TEXT_BYTES = 48 };

/* The role to show: "" for other, and "main" for a browser without a parent in the list. */
static struct ml_string
role_word(const struct memlog_host_ps_reply *reply, const struct memlog_host_process_row *row) {
    const char *name = ml_role_name(MEMLOG_SERVICE_ROLE_OTHER);
    if (row->role.count_bytes == strlen(name) &&
        memcmp(row->role.data, name, row->role.count_bytes) == 0) {
        return ml_string_of("");
    }
    name = ml_role_name(MEMLOG_SERVICE_ROLE_BROWSER);
    if (row->role.count_bytes != strlen(name) ||
        memcmp(row->role.data, name, row->role.count_bytes) != 0) {
        return row->role;
    }
    for (uint32_t i = 0; i < reply->processes.count; i++) {
        if (reply->processes.items[i].pid == row->parent_pid) {
            return row->role; /* by a rule of the user: the first process has no parent here */
        }
    }
    return ml_string_of("main");
}

/* Whether the run has promised what it costs. */
static bool has_promised(const struct memlog_host_ps_reply *reply) {
    for (uint32_t i = 0; i < reply->processes.count; i++) {
        if (reply->processes.items[i].promised_ppm > 0) {
            return true;
        }
    }
    return false;
}

static void print_cost(const struct memlog_host_process_row *row) {
    char cost[ML_OVERHEAD_PERCENT_BYTES];
    (void)printf("%7s  ", row->cost_measured ? ml_overhead_percent(row->cost_ppm, cost) : "-");
}

static void print_table(const struct memlog_host_ps_reply *reply) {
    const bool shows_cost = has_promised(reply);
    (void)printf(
        "%8s %8s  %-8s %-8s %11s %11s %12s %8s %9s %9s  %s%s\n",
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
        shows_cost ? "   COST  " : "",
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
        if (shows_cost) {
            print_cost(row);
        }
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

struct ps {
    bool json;
    const char *host;
};

static const struct ml_option ps_options[] = {
    ML_ROW_JSON(struct ps, json),
    ML_ROW_HOST(struct ps, host),
};

const struct ml_option_table ml_ps_table = {
    .program = "memlog",
    .name = "ps",
    .summary = "list the processes of a running memlog",
    .usage = "[OPTIONS]",
    .about = "Lists the processes of a running memlog.",
    ML_OPTIONS(ps_options),
    .example = "memlog ps --json",
};

int ml_command_ps(char *const *words) {
    struct ps arguments = {.host = NULL};
    int exit_code = 0;
    if (!ml_commands_read(&ml_ps_table, words, &arguments, NULL, &exit_code)) {
        return exit_code;
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

struct dump {
    const char *host, *reason;
    enum memlog_service_role role;
    bool has_role;
    uint64_t min_private_bytes; /* 0: any */
    struct ml_pids pids;
};

static const struct ml_option dump_options[] = {
    {.name = "--role",
     ML_WORD_TO(struct dump, role),
     .value = "ROLE",
     .words = ml_role_names,
     .help = "processes of that role:"},
    {.name = "--reason",
     ML_TEXT_TO(struct dump, reason),
     .most = MEMLOG_HOST_DUMP_REQUEST_REASON_LIMIT,
     .value = "TEXT",
     .help = "it stands in the dump, where 'memlog report' shows it, and in the page's list"},
    {.name = "--min-private",
     ML_SIZE_TO(struct dump, min_private_bytes),
     .least = 1,
     .value = "SIZE",
     .help = "of these the processes alone that have so much private memory now"},
    ML_ROW_HOST(struct dump, host),
};

const struct ml_option_table ml_dump_table = {
    .program = "memlog",
    .name = "dump",
    .summary = "take a dump of a running memlog now",
    .usage = "[OPTIONS] [PID...]",
    .about = "Takes a dump of a running memlog, of the given processes, of those of a role or of "
             "all, and prints its path.",
    ML_OPTIONS(dump_options),
    ML_OPERANDS_PROCESSES(struct dump, pids),
    .example = "memlog dump --role=renderer --reason='after the tenth tab'",
};

static bool is_wanted(const struct dump *dump, const struct memlog_host_process_row *row) {
    const char *role = ml_role_name(dump->role);
    bool is_named = dump->pids.count == 0;
    for (uint32_t i = 0; i < dump->pids.count; i++) {
        is_named = is_named || dump->pids.items[i] == row->pid;
    }
    if (!is_named || (dump->has_role && (row->role.count_bytes != strlen(role) ||
                                         memcmp(row->role.data, role, strlen(role)) != 0))) {
        return false;
    }
    return ml_process_footprint((pid_t)row->pid).private_bytes >= dump->min_private_bytes;
}

/* Ask who runs, and name those that are large enough in place of what was named. False: nobody is,
 * or the host does not answer, which was said. */
static bool choose_large(struct dump *dump, struct ml_channel *channel) {
    const struct memlog_host_ps_request request = {.version = MEMLOG_HOST_HOST_VERSION};
    struct memlog_host_ps_reply reply;
    struct ml_pids large = {.count = 0};
    char size[ML_SIZE_TEXT_BYTES];
    const enum ml_status status =
        memlog_host_ps_wait(ml_channel_port(channel), &request, PS_TIMEOUT_MS, &reply);
    if (status != ML_OK) {
        ml_say_error("the running memlog does not answer: %s", ml_status_text(status));
        return false;
    }
    for (uint32_t i = 0; i < reply.processes.count && large.count < ML_PIDS_MAX; i++) {
        const struct memlog_host_process_row *row = &reply.processes.items[i];
        const bool is_new = large.count == 0 || large.items[large.count - 1] != row->pid;
        if (row->recording && is_new && is_wanted(dump, row)) {
            large.items[large.count++] = row->pid;
        }
    }
    if (large.count == 0) {
        ml_say_error(
            "no such process that is recorded has %s of private memory",
            ml_size_text(dump->min_private_bytes, size)
        );
        return false;
    }
    dump->pids = large;
    dump->has_role = false;
    return true;
}

/* Ask for a dump. False, and stderr says why: there is none. */
static bool ask_dump(
    struct ml_channel *channel,
    const struct memlog_host_dump_request *request,
    struct memlog_host_dump_reply *out_reply
) {
    const enum ml_status status =
        memlog_host_dump_wait(ml_channel_port(channel), request, DUMP_TIMEOUT_MS, out_reply);
    if (status != ML_OK) {
        ml_say_error("the running memlog does not answer: %s", ml_status_text(status));
        return false;
    }
    if (out_reply->trouble.count_bytes > 0) {
        ml_say_error("%.*s", (int)out_reply->trouble.count_bytes, out_reply->trouble.data);
    }
    return out_reply->path.count_bytes > 0;
}

bool ml_commands_dump_process(uint32_t pid, char out_path[PATH_MAX]) {
    struct ml_channel *channel = ml_commands_reach_host(NULL);
    if (channel == NULL) {
        return false;
    }
    const struct memlog_host_dump_request request = {
        .version = MEMLOG_HOST_HOST_VERSION,
        .pids = {.items = &pid, .count = 1},
        .role = ml_string_of(""),
        .reason = ml_string_of(""),
    };
    struct memlog_host_dump_reply reply;
    const bool written = ask_dump(channel, &request, &reply) && reply.path.count_bytes < PATH_MAX;
    if (written) {
        (void)snprintf(out_path, PATH_MAX, "%.*s", (int)reply.path.count_bytes, reply.path.data);
    }
    ml_channel_free(channel);
    return written;
}

int ml_command_dump(char *const *words) {
    struct dump arguments = {.reason = ""};
    uint64_t given = 0;
    int exit_code = 0;
    if (!ml_commands_read(&ml_dump_table, words, &arguments, &given, &exit_code)) {
        return exit_code;
    }
    arguments.has_role = ml_option_given(&ml_dump_table, given, "--role");
    struct ml_channel *channel = ml_commands_reach_host(arguments.host);
    if (channel == NULL) {
        return ML_EXIT_FAILED;
    }
    if (arguments.min_private_bytes > 0 && !choose_large(&arguments, channel)) {
        ml_channel_free(channel);
        return ML_EXIT_FAILED;
    }
    const struct memlog_host_dump_request request = {
        .version = MEMLOG_HOST_HOST_VERSION,
        .pids = {.items = arguments.pids.items, .count = arguments.pids.count},
        .role = ml_string_of(arguments.has_role ? ml_role_name(arguments.role) : ""),
        .reason = ml_string_of(arguments.reason),
    };
    struct memlog_host_dump_reply reply;
    const bool written = ask_dump(channel, &request, &reply);
    if (written) {
        ml_commands_put_path(reply.path.data, reply.path.count_bytes);
    }
    ml_channel_free(channel);
    return written ? 0 : ML_EXIT_FAILED;
}
