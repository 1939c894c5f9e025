/* `memlog top`. Room: host. Context: its own process.
 *
 * One rule: a look costs the host one answer to Ps, and the profiled program nothing. */
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/size.h"
#include "host/cli/commands.h"
#include "host/cli/run.h"
#include "host/terminal/top_model.h"
#include "host/terminal/top_screen.h"
#include "host/process/log.h"
#include "host/sockets/socket_directory.h"
#include "host/inquiry/find.h"
#include "host/inquiry/functions.h"
#include "host/inquiry/inquiry.h"
#include "ipc/channel/channel.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"

enum { TOP_TIMEOUT_MS = 10000, DELAY_SECONDS = 2, NS_PER_SECOND = 1000000000 };

struct top {
    const char *host, *filter;
    enum ml_top_sort sort;
    uint32_t count, delay_seconds;
    const char *operands[ML_PIDS_MAX];
    struct ml_pids pids;
    struct ml_command_socket socket; /* `host` is its path where a folder was given */
};

static const struct ml_option top_options[] = {
    {.name = "--count",
     .short_name = "-n",
     ML_COUNT_TO(struct top, count),
     .least = 1,
     .value = "N",
     .help = "print so many looks, in place of a live screen; rates are known from the second on"},
    {.name = "--delay",
     .short_name = "-d",
     ML_SECONDS_TO(struct top, delay_seconds),
     .least = 1,
     .most = 86400,
     .value = "TIME",
     .help = "between two looks (default: 2s)"},
    {.name = "--sort",
     ML_WORD_TO(struct top, sort),
     .value = "ORDER",
     .words = ml_top_sort_names,
     .help = "the largest first, by:"},
    {.name = "--filter",
     ML_TEXT_TO(struct top, filter),
     .most = 256,
     .value = "TEXT",
     .help = "processes alone whose name has TEXT in it, in upper or lower case"},
    ML_ROW_HOST(struct top, host),
};

const struct ml_option_table ml_top_table = {
    .program = "memlog",
    .name = "top",
    .summary = "the largest processes of a running memlog, and how they grow",
    .usage = "[OPTIONS] [PID...|DIR]",
    .about = "Shows the recorded processes of a running memlog, the largest first: live heap, "
             "private memory, growth of the heap and allocated bytes a second. Where input or "
             "output is no terminal, one look is printed. DIR, the folder of a run's dumps, names "
             "the run in place of the newest one.",
    ML_OPTIONS(top_options),
    .operands = ML_OPERANDS_FILES,
    .operands_offset = offsetof(struct top, operands),
    .operands_most = ML_PIDS_MAX,
    .example = "memlog top -n 10 --sort=growth",
};

/* All rows at one moment. */
struct look {
    struct ml_top_row *rows;
    size_t count;
    uint64_t at_ns; /* monotonic */
};

static uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static bool is_wanted(const struct top *top, const struct memlog_host_process_row *row) {
    bool is_named = top->pids.count == 0;
    for (uint32_t i = 0; i < top->pids.count; i++) {
        is_named = is_named || top->pids.items[i] == row->pid;
    }
    return is_named && row->recording && row->folded_processes == 0;
}

/* The rows of an answer. Owner: out->rows are freed by the caller. NULL, or what went wrong. */
static const char *
read_look(const struct top *top, const struct memlog_host_ps_reply *reply, struct look *out) {
    *out = (struct look){.at_ns = now_ns()};
    out->rows = calloc((size_t)reply->processes.count + 1, sizeof(*out->rows));
    if (out->rows == NULL) {
        return "no memory";
    }
    for (uint32_t i = 0; i < reply->processes.count; i++) {
        const struct memlog_host_process_row *from = &reply->processes.items[i];
        if (!is_wanted(top, from)) {
            continue;
        }
        struct ml_top_row *row = &out->rows[out->count++];
        row->id = from->id;
        row->pid = from->pid;
        row->heap_bytes = from->live_bytes;
        row->private_bytes = from->footprint_bytes;
        row->total_bytes = from->total_bytes;
        (void
        )ml_printable_copy(from->name.data, from->name.count_bytes, row->name, sizeof(row->name));
    }
    return NULL;
}

/* Ask the host, and wait. As read_look. */
static const char *take_look(const struct top *top, struct ml_channel *channel, struct look *out) {
    const struct memlog_host_ps_request request = {.version = MEMLOG_HOST_HOST_VERSION};
    struct memlog_host_ps_reply reply;
    *out = (struct look){.rows = NULL};
    const enum ml_status status =
        memlog_host_ps_wait(ml_channel_port(channel), &request, TOP_TIMEOUT_MS, &reply);
    return status == ML_OK ? read_look(top, &reply, out) : ml_status_text(status);
}

/* The looks of a live screen. */
struct watching {
    const struct top *top;
    struct ml_inquiry inquiry;
    struct look shown, before;
    bool is_full; /* the last answer was read */
    struct ml_functions functions;
    bool has_functions; /* open */
    struct ml_error_message trouble;
};

static void on_ps(void *context, const struct memlog_host_ps_reply *reply) {
    struct watching *watching = context;
    struct look look;
    watching->is_full = read_look(watching->top, reply, &look) == NULL;
    if (!watching->is_full) {
        return; /* the rows on the screen stay */
    }
    free(watching->before.rows);
    watching->before = watching->shown;
    const struct look *before = &watching->before;
    const uint64_t elapsed_ns = before->rows != NULL ? look.at_ns - before->at_ns : 0;
    ml_top_rates(look.rows, look.count, before->rows, before->count, elapsed_ns);
    watching->shown = look;
}

static void ask(void *context) {
    struct watching *watching = context;
    ml_inquiry_ask(&watching->inquiry);
}

static enum ml_top_answer
take_answer(void *context, struct ml_top_row **out_rows, size_t *out_count) {
    struct watching *watching = context;
    switch (ml_inquiry_turn(&watching->inquiry)) {
    case ML_INQUIRY_WAITS:
        return ML_TOP_NOTHING;
    case ML_INQUIRY_FAILED:
        return ML_TOP_FAILED;
    case ML_INQUIRY_GONE:
        return ML_TOP_ENDED;
    case ML_INQUIRY_ANSWERED:
        break;
    }
    if (!watching->is_full) {
        return ML_TOP_FAILED;
    }
    *out_rows = watching->shown.rows;
    *out_count = ml_top_filter(watching->shown.rows, watching->shown.count, watching->top->filter);
    return ML_TOP_ROWS;
}

static void ask_functions(void *context, uint32_t pid) {
    struct watching *watching = context;
    if (!watching->has_functions) {
        watching->trouble.text[0] = '\0';
        watching->has_functions = ml_functions_open(
                                      &watching->functions,
                                      watching->inquiry.path,
                                      &watching->top->pids,
                                      &watching->trouble
                                  ) == ML_OK;
    }
    if (watching->has_functions) {
        ml_functions_ask(&watching->functions, pid);
    } else {
        ml_functions_close(&watching->functions);
    }
}

static enum ml_top_answer take_functions(
    void *context, struct ml_top_function **out_rows, size_t *out_count, const char **out_trouble
) {
    struct watching *watching = context;
    if (!watching->has_functions) {
        *out_trouble = watching->trouble.text;
        return ML_TOP_FAILED;
    }
    switch (ml_functions_turn(&watching->functions)) {
    case ML_INQUIRY_WAITS:
        return ML_TOP_NOTHING;
    case ML_INQUIRY_ANSWERED:
        break;
    case ML_INQUIRY_FAILED:
    case ML_INQUIRY_GONE:
        *out_trouble = watching->functions.trouble;
        return ML_TOP_FAILED;
    }
    *out_rows = watching->functions.shown.rows;
    *out_count = watching->functions.shown.count;
    return ML_TOP_ROWS;
}

/* The newest host that can be reached. False: there is none, which was said. */
static bool reach(struct watching *watching) {
    struct ml_error_message error = {.text = ""};
    struct ml_command_socket *sockets = NULL;
    const char *path = watching->top->host;
    const size_t count = path == NULL ? ml_socket_directory_list(&sockets) : 0;
    enum ml_status status = ML_ENV_MISSING;
    if (path != NULL) {
        status = ml_inquiry_init(&watching->inquiry, path, on_ps, watching, &error);
    }
    for (size_t i = 0; i < count && status != ML_OK; i++) {
        status = ml_inquiry_init(&watching->inquiry, sockets[i].path, on_ps, watching, &error);
    }
    free(sockets);
    if (status != ML_OK && path == NULL) {
        /* In the words of all commands; sockets of those that were killed go. */
        ml_channel_free(ml_commands_reach_host(NULL));
    } else if (status != ML_OK) {
        ml_say_error("%s", error.text);
    }
    return status == ML_OK;
}

static bool show(const struct top *top) {
    struct watching watching = {.top = top};
    const struct ml_top_feed feed = {
        .context = &watching,
        .ask = ask,
        .take = take_answer,
        .ask_functions = ask_functions,
        .take_functions = take_functions,
        .named_count = top->pids.count,
        .named_pid = top->pids.count == 1 ? top->pids.items[0] : 0,
        .sort = top->sort,
        .delay_seconds = top->delay_seconds,
    };
    if (!reach(&watching)) {
        return false;
    }
    const bool fine = ml_top_screen(&feed);
    if (!fine) {
        ml_say_error("this terminal cannot show a live screen: 'memlog top -n 1' prints lines");
    }
    if (watching.has_functions) {
        ml_functions_close(&watching.functions);
    }
    ml_inquiry_fini(&watching.inquiry);
    free(watching.before.rows);
    free(watching.shown.rows);
    return fine;
}

static void print_look(const struct top *top, const struct look *look) {
    char line[ML_TOP_LINE_BYTES];
    struct ml_top_row *shown = calloc(look->count + 1, sizeof(*shown));
    if (shown == NULL) {
        ml_say_error("no memory");
        return;
    }
    for (size_t i = 0; i < look->count; i++) {
        shown[i] = look->rows[i];
    }
    const size_t count = ml_top_filter(shown, look->count, top->filter);
    ml_top_sort(shown, count, top->sort);
    ml_top_head(top->sort, ML_TOP_COLUMNS_MAX, line);
    (void)puts(line);
    for (size_t i = 0; i < count; i++) {
        ml_top_line(&shown[i], ML_TOP_COLUMNS_MAX, line);
        (void)puts(line);
    }
    (void)fflush(stdout);
    free(shown);
}

/* All looks. False: the host went away meanwhile, which was said. */
static bool print_looks(const struct top *top) {
    struct ml_channel *channel = ml_commands_reach_host(top->host);
    if (channel == NULL) {
        return false;
    }
    struct look before = {.rows = NULL};
    bool fine = true;
    for (uint32_t i = 0; fine && i < (top->count > 0 ? top->count : 1); i++) {
        const struct timespec delay = {.tv_sec = (time_t)top->delay_seconds};
        struct look look;
        if (i > 0) {
            (void)nanosleep(&delay, NULL);
            (void)putchar('\n');
        }
        const char *trouble = take_look(top, channel, &look);
        fine = trouble == NULL;
        if (!fine) {
            ml_say_error("the running memlog does not answer: %s", trouble);
        }
        if (fine) {
            const uint64_t elapsed_ns = i > 0 ? look.at_ns - before.at_ns : 0;
            ml_top_rates(look.rows, look.count, before.rows, before.count, elapsed_ns);
            print_look(top, &look);
        }
        free(before.rows);
        before = look;
    }
    free(before.rows);
    ml_channel_free(channel);
    return fine;
}

/* Processes, or one folder. False: they are neither, and the exit code is set. */
static bool read_operands(struct top *top, int *out_exit_code) {
    struct ml_error_message error = {.text = ""};
    for (size_t i = 0; i < ML_PIDS_MAX && top->operands[i] != NULL; i++) {
        const char *word = top->operands[i];
        uint64_t pid = 0;
        if (ml_count_read(word, INT_MAX, &pid) && pid != 0) {
            top->pids.items[top->pids.count++] = (uint32_t)pid;
        } else if (i != 0 || top->operands[1] != NULL) {
            ml_error_set(&error, "'%.200s' is not a process id; a folder stands alone", word);
            *out_exit_code = ml_commands_wrong(&ml_top_table, error.text);
            return false;
        } else if (ml_inquiry_find(word, top->host, &top->socket, &error) == ML_OK) {
            top->host = top->socket.path;
        } else {
            ml_say_error("%s", error.text);
            *out_exit_code = ML_EXIT_FAILED;
            return false;
        }
    }
    return true;
}

int ml_command_top(char *const *words) {
    struct top arguments = {.filter = "", .delay_seconds = DELAY_SECONDS};
    int exit_code = 0;
    if (!ml_commands_read(&ml_top_table, words, &arguments, NULL, &exit_code)) {
        return exit_code;
    }
    if (!read_operands(&arguments, &exit_code)) {
        return exit_code;
    }
    const bool is_live = arguments.count == 0 && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    const bool fine = is_live ? show(&arguments) : print_looks(&arguments);
    return fine ? 0 : ML_EXIT_FAILED;
}
