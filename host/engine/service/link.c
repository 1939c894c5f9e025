#include "host/engine/service/link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptors/close_above.h"
#include "base/uncovered.h"
#include "host/process/orphan.h"
#include "ipc/channel/channel.h"

/* For the service to end after its socket was closed. */
enum { CLOSE_TIMEOUT_MS = 2000 };

static void hang_up(struct ml_service_link *link) {
    struct ml_channel *channel = link->channel;
    link->channel = NULL;
    ml_channel_free(channel);
}

static void tell_gone(struct ml_service_link *link, const char *why) {
    hang_up(link);
    if (!link->told) {
        link->told = true;
        link->events.on_gone(link->events.context, why);
    }
}

static void on_end(void *context, struct ml_channel *channel, const struct ml_channel_end *end) {
    (void)channel;
    struct ml_service_link *link = context;
    if (end->status == ML_PEER_CLOSED) {
        tell_gone(link, "it has ended");
        return;
    }
    char why[256];
    (void)snprintf(
        why,
        sizeof(why),
        "%s in %s",
        ml_status_text(end->status),
        end->message_name != NULL ? end->message_name : "its messages"
    );
    tell_gone(link, why);
}

static void on_client_lost(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_client_lost_request *request
) {
    (void)call;
    struct ml_service_link *link = context;
    char reason[MEMLOG_SERVICE_CLIENT_LOST_REQUEST_REASON_LIMIT + 1];
    ml_string_copy(reason, sizeof(reason), request->reason);
    link->events.on_client_lost(link->events.context, request->id, reason);
}

static void on_memory_short(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_memory_short_request *request
) {
    struct ml_service_link *link = context;
    const struct memlog_service_memory_short_reply reply = {.id = request->id};
    link->events.on_memory_short(link->events.context, request);
    if (link->channel != NULL) {
        ml_service_link_sent(link, memlog_service_memory_short_answer(call, &reply));
    }
}

static void on_hear(
    void *context, const struct ml_call *call, const struct memlog_service_hear_request *request
) {
    struct ml_service_link *link = context;
    const struct memlog_service_hear_reply reply = {
        .id = request->id, .ticks = link->events.on_hear(link->events.context, request->id)};
    if (link->channel != NULL) {
        ml_service_link_sent(link, memlog_service_hear_answer(call, &reply));
    }
}

static const struct memlog_service_host_for_service_handlers handlers = {
    .client_lost = on_client_lost, .memory_short = on_memory_short, .hear = on_hear};

static void on_configured(
    void *context, enum ml_status status, const struct memlog_service_configure_reply *reply
) {
    struct ml_service_link *link = context;
    if (status != ML_OK) {
        return; /* on_end says why */
    }
    char missing[MEMLOG_SERVICE_CONFIGURE_REPLY_MISSING_SANDBOX_LIMIT + 1];
    ml_string_copy(missing, sizeof(missing), reply->missing_sandbox);
    link->events.on_ready(link->events.context, missing);
}

/* What the child needs. */
struct birth {
    const struct ml_service_start *start;
    int socket_fd;
    char *const *argv;
};

/* The child's side. */
static void run_service(void *context) {
    const struct birth *birth = context;
    static char *const no_environment[] = {NULL};
    /* Its standard input and output are nobody's; stderr it shares, to name its trouble. */
    int null_fd = open("/dev/null", O_RDWR);
    /* Move them first: one may have a number that another one is to get. */
    const int socket_fd = fcntl(birth->socket_fd, F_DUPFD_CLOEXEC, ML_SERVICE_WORDS_FD + 1);
    const int words_fd =
        birth->start->words_fd < 0
            ? -1
            : fcntl(birth->start->words_fd, F_DUPFD_CLOEXEC, ML_SERVICE_WORDS_FD + 1);
    (void)dup2(socket_fd, ML_SERVICE_FD);
    (void)close(ML_SERVICE_WORDS_FD);
    if (words_fd >= 0) {
        (void)dup2(words_fd, ML_SERVICE_WORDS_FD);
    }
    if (null_fd >= 0) {
        (void)dup2(null_fd, STDIN_FILENO);
        (void)dup2(null_fd, STDOUT_FILENO);
        if (null_fd > ML_SERVICE_WORDS_FD) {
            (void)close(null_fd);
        }
    }
    /* What the host's starter left open is nobody's there. The service tries so, too, and may open
     * no list of them where the kernel has no close_range. */
    ml_close_above(ML_SERVICE_WORDS_FD);
    (void)execve(birth->start->path, birth->argv, no_environment);
    _exit(127);
}

static enum ml_status start_service(
    struct ml_service_link *link,
    const struct ml_service_start *start,
    int *out_fd,
    struct ml_error_message *error
) {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        ml_error_set(error, "cannot make a socket: %s", strerror(errno));
        return ML_ENV_SYSTEM;
    }
    char name[] = "memlog-service";
    char sandbox[32];
    (void)snprintf(sandbox, sizeof(sandbox), "--sandbox=%s", ml_sandbox_names[start->sandbox]);
    char workers[] = "--workers=1";
    char *const argv[] = {name, sandbox, start->one_worker ? workers : NULL, NULL};
    struct birth birth = {.start = start, .socket_fd = ends[1], .argv = argv};
    const pid_t pid = ml_orphan_start(start->inherited, run_service, &birth, &link->pidfd);
    (void)close(ends[1]);
    if (pid < 0) {
        ml_error_set(error, "cannot start a process: %s", strerror(errno));
        (void)close(ends[0]);
        return ML_ENV_SYSTEM;
    }
    link->pid = pid;
    *out_fd = ends[0];
    return ML_OK;
}

void ml_service_link_sent(struct ml_service_link *link, enum ml_status status) {
    if (status != ML_OK && link->channel != NULL) {
        tell_gone(link, ml_status_text(status));
    }
}

enum ml_status ml_service_link_open(
    struct ml_service_link *link,
    struct ev_loop *loop,
    const struct ml_service_start *start,
    const struct ml_service_events *events,
    struct ml_error_message *error
) {
    *link = (struct ml_service_link){.events = *events, .pidfd = -1};
    int fd = -1;
    enum ml_status status = start_service(link, start, &fd, error);
    if (status != ML_OK) {
        return status;
    }
    const struct ml_channel_options options = {
        .loop = loop,
        .server = memlog_service_host_for_service_server(&handlers, link),
        .on_end = on_end,
        .context = link,
    };
    status = ml_channel_new(fd, &options, &link->channel);
    if (status != ML_OK) {
        ml_error_set(error, "cannot speak to memlog-service: %s", ml_status_text(status));
        ml_service_link_close(link);
        return status;
    }
    const struct memlog_service_configure_request request = {.setup = start->setup};
    ml_service_link_sent(
        link,
        memlog_service_configure(ml_channel_port(link->channel), &request, on_configured, link)
    );
    return ML_OK;
}

void ml_service_link_close(struct ml_service_link *link) {
    link->told = true;
    hang_up(link);
    if (link->pidfd < 0) {
        return;
    }
    /* Nothing of us is left behind: it has lost its socket and ends. */
    struct pollfd ended = {.fd = link->pidfd, .events = POLLIN};
    if (poll(&ended, 1, CLOSE_TIMEOUT_MS) == 0) {
        (void)syscall(SYS_pidfd_send_signal, link->pidfd, SIGKILL, NULL, 0);
    }
    (void)close(link->pidfd);
    link->pidfd = -1;
}

bool ml_service_link_up(const struct ml_service_link *link) {
    return link->channel != NULL;
}

/* A command line as the contract has it, empty when there is no memory. Returns the array's items,
 * for the caller to free. */
static struct ml_string *
fill_line(const struct ml_command_line *line, struct memlog_service_string_array *out_array) {
    struct ml_string *items = calloc(line->count + 1, sizeof(*items));
    for (size_t i = 0; items != NULL && i < line->count; i++) {
        items[i] = ml_string_of(line->arguments[i]);
    }
    *out_array = (struct memlog_service_string_array
    ){.items = items, .count = items != NULL ? (uint32_t)line->count : 0};
    return items;
}

void ml_service_link_add(
    struct ml_service_link *link, const struct ml_member *member, uint64_t sampling_bytes
) {
    if (link->channel == NULL) {
        return;
    }
    /* A parent that is not recorded is none to the service. */
    const struct ml_member *parent = ml_members_find(member->members, member->parent_id);
    struct memlog_service_add_client_request request = {
        .client =
            {.id = member->id,
             .parent_id =
                 parent != NULL && ml_recording_in_service(parent->recording) ? parent->id : 0,
             .pid = (uint32_t)member->pid,
             .parent_pid = (uint32_t)member->parent_pid,
             .role = (enum memlog_service_role)member->role,
             .from_startup = member->from_startup,
             .forked = member->birth == ML_BIRTH_FORK,
             .fork_serial = member->fork_serial,
             .sampling_bytes = sampling_bytes,
             .start = member->start,
             .name = ml_string_of(member->name),
             .executable = ml_string_of(member->executable),
             .profile = member->profile,
             .trouble = ml_string_of(member->trouble),
             .allocator =
                 {.owner = ml_string_of(member->allocator.owner),
                  .in_front = member->allocator.in_front,
                  .in_program = member->allocator.in_program,
                  .entry_point = ml_string_of(member->allocator.entry_point),
                  .entry_point_of = ml_string_of(member->allocator.entry_point_of)}},
        .event_pipe = member->endpoint.pipe_read_fd,
        .staging = member->endpoint.staging_fd,
    };
    struct ml_string *line = fill_line(&member->line, &request.client.command_line);
    ml_service_link_sent(link, memlog_service_add_client(ml_channel_port(link->channel), &request));
    free(line);
}

static struct memlog_service_overhead overhead_of(const struct ml_overhead *overhead) {
    return (struct memlog_service_overhead){
        .promised_ppm = overhead->promised_ppm,
        .recording_ppm = overhead->whole.recording_ppm,
        .passing_ppm = overhead->whole.passing_ppm,
        .measured = overhead->is_measured,
        .shortest_bytes = overhead->shortest_bytes,
    };
}

void ml_service_link_trouble(
    struct ml_service_link *link, const struct ml_member *member, const char *trouble
) {
    if (link->channel == NULL) {
        return;
    }
    struct memlog_service_update_process_request request = {
        .facts =
            {.id = member->id,
             .role = (enum memlog_service_role)member->role,
             .footprint_bytes = member->footprint_bytes,
             .footprint_files_bytes = member->footprint_files_bytes,
             .resident_bytes = member->resident_bytes,
             .read_ticks = member->footprint_ticks,
             .second_libc = member->libc_files > 1,
             .name = ml_string_of(member->name),
             .executable = ml_string_of(member->executable),
             .trouble = ml_string_of(trouble),
             .overhead = overhead_of(&member->overhead)},
    };
    struct ml_string *line = fill_line(&member->line, &request.facts.command_line);
    ml_service_link_sent(
        link, memlog_service_update_process(ml_channel_port(link->channel), &request)
    );
    free(line);
}

/* Without the member's trouble, which was said when it began: it may be beginning another profile.
 */
void ml_service_link_update(struct ml_service_link *link, const struct ml_member *member) {
    ml_service_link_trouble(link, member, "");
}

static struct memlog_service_memory_region region_of(const struct ml_memory_region *region) {
    const uint64_t *figures_kb = region->figures_kb;
    return (struct memlog_service_memory_region){
        .start = region->start,
        .end = region->end,
        .permissions = region->permissions,
        .offset = region->offset,
        .device = region->device,
        .inode = region->inode,
        .name = ml_string_of(region->name),
        .size_kb = figures_kb[ML_MEMORY_SIZE],
        .resident_kb = figures_kb[ML_MEMORY_RESIDENT],
        .proportional_kb = figures_kb[ML_MEMORY_PROPORTIONAL],
        .private_clean_kb = figures_kb[ML_MEMORY_PRIVATE_CLEAN],
        .private_dirty_kb = figures_kb[ML_MEMORY_PRIVATE_DIRTY],
        .shared_clean_kb = figures_kb[ML_MEMORY_SHARED_CLEAN],
        .shared_dirty_kb = figures_kb[ML_MEMORY_SHARED_DIRTY],
        .anonymous_kb = figures_kb[ML_MEMORY_ANONYMOUS],
        .swap_kb = figures_kb[ML_MEMORY_SWAP],
        .has_pages = region->has_pages,
    };
}

/* The regions would be told if they could be read: every process has some. */
static bool is_unreadable(const struct ml_process_view *view) {
    return view->regions.count == 0 && view->status.is_known;
}

/* Why less of it is known than the kernel knows; "": all that was to be read was. */
static const char *trouble_of(
    const struct ml_process_view *view, char out_text[MEMLOG_SERVICE_PROCESS_VIEW_TROUBLE_LIMIT + 1]
) {
    const int error = view->regions_error;
    const size_t room = MEMLOG_SERVICE_PROCESS_VIEW_TROUBLE_LIMIT + 1;
    if (is_unreadable(view)) {
        if (error == 0 || error == EACCES || error == EPERM) {
            return ML_MEMORY_UNREADABLE;
        }
        (void)snprintf(out_text, room, "unreadable: /proc/PID/smaps: %s", strerror(error));
    } else if (view->pages.error != 0) {
        (void)snprintf(
            out_text,
            room,
            "%s%s" ML_MEMORY_PAGES_UNREAD ": /proc/PID/pagemap: %s",
            view->why,
            view->why[0] != '\0' ? "; " : "",
            strerror(view->pages.error)
        );
    } else {
        return view->why;
    }
    return out_text;
}

struct memlog_service_memory_status ml_service_link_status(const struct ml_memory_status *status) {
    return (struct memlog_service_memory_status){
        .known = status->is_known,
        .anonymous_kb = status->anonymous_kb,
        .file_kb = status->file_kb,
        .shared_kb = status->shared_kb,
        .swap_kb = status->swap_kb,
        .page_tables_kb = status->page_tables_kb,
        .kernel_stacks_kb = status->kernel_stacks_kb,
    };
}

void ml_service_link_show(
    struct ml_service_link *link,
    const struct ml_member *member,
    const struct ml_process_view *view,
    ml_on_shown *on_shown,
    void *context
) {
    struct memlog_service_thread_view *threads =
        calloc((size_t)view->threads.count + 1, sizeof(*threads));
    struct memlog_service_memory_region *regions =
        calloc((size_t)view->regions.count + 1, sizeof(*regions));
    struct memlog_service_page_run *pages = calloc((size_t)view->pages.count + 1, sizeof(*pages));
    struct memlog_service_word *words = calloc((size_t)view->words.count + 1, sizeof(*words));
    if (link->channel == NULL || threads == NULL || regions == NULL || pages == NULL ||
        words == NULL) {
        free(threads);
        free(regions);
        free(pages);
        free(words);
        on_shown(context, ML_ENV_MEMORY, NULL);
        return;
    }
    for (uint32_t i = 0; i < view->threads.count; i++) {
        threads[i] = (struct memlog_service_thread_view
        ){.tid = view->threads.items[i].tid, .name = ml_string_of(view->threads.items[i].name)};
    }
    for (uint32_t i = 0; i < view->regions.count; i++) {
        regions[i] = region_of(&view->regions.items[i]);
    }
    for (uint32_t i = 0; i < view->pages.count; i++) {
        const struct ml_memory_pages_run *run = &view->pages.items[i];
        pages[i] = (struct memlog_service_page_run
        ){.address = run->address, .bytes = run->bytes, .shared = run->shared};
    }
    for (uint32_t i = 0; i < view->words.count; i++) {
        words[i] = (struct memlog_service_word
        ){.address = view->words.items[i].address, .word = view->words.items[i].word};
    }
    char trouble[MEMLOG_SERVICE_PROCESS_VIEW_TROUBLE_LIMIT + 1];
    const struct memlog_service_show_process_request request = {
        .view = {
            .id = member->id,
            .boottime_ns = view->seen.boottime_ns,
            .ticks = view->seen.ticks,
            .threads = {.items = threads, .count = view->threads.count},
            .regions = {.items = regions, .count = view->regions.count},
            .pages = {.items = pages, .count = view->pages.count},
            .status = ml_service_link_status(&view->status),
            .unreadable = is_unreadable(view),
            .held_ns = view->held_ns,
            .trouble = ml_string_of(trouble_of(view, trouble)),
            .tree_reading = view->tree_reading,
            .words = {.items = words, .count = view->words.count},
            .words_are_python = view->words.are_python,
            .words_were_read = view->words.were_read,
            .words_are_cut = view->words.are_cut,
            .words_read_bytes = view->words.read_bytes,
        }};
    ML_SERVICE_ASK(link, memlog_service_show_process, &request, on_shown, context);
    free(threads);
    free(regions);
    free(pages);
    free(words);
}

void ml_service_link_code(
    struct ml_service_link *link,
    const struct ml_member *member,
    enum memlog_service_code_file_kind kind,
    const struct memlog_service_moment *now,
    int file_fd
) {
    if (link->channel == NULL) {
        return;
    }
    const struct memlog_service_hand_code_request request = {
        .about = {.id = member->id, .kind = kind, .now = *now}, .file = file_fd};
    ml_service_link_sent(link, memlog_service_hand_code(ml_channel_port(link->channel), &request));
}

void ml_service_link_end(struct ml_service_link *link, const struct ml_member *member) {
    if (link->channel == NULL) {
        return;
    }
    const struct memlog_service_end_client_request request = {
        .end =
            {.id = member->id,
             .state = ml_member_state_told(member->state),
             .exit_code = member->ending.exit_code,
             .signal = (uint32_t)member->ending.signal,
             .end = member->end},
    };
    ml_service_link_sent(link, memlog_service_end_client(ml_channel_port(link->channel), &request));
}
