#include "tests/client/capture.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/wire/lease.h"
#include "mojom_like_idl/contracts/heap_client_mojom.h"
#include "tests/client/capture_running.h"

/* Of one run: the socket, and another name of the library, as LD_PRELOAD takes none with a blank.
 */
static char folder[64];
static char socket_path[96];
static char preload_path[96];

static void name_library(void) {
    char here[4096];
    char library[4200];
    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    (void)snprintf(library, sizeof(library), "%s/libmemlog.so", here);
    if (access(library, R_OK) != 0) {
        (void)snprintf(library, sizeof(library), "%s/out/libmemlog.so", here);
    }
    ck_assert_int_eq(symlink(library, preload_path), 0);
}

static void make_folder(void) {
    (void)strcpy(folder, "/tmp/memlog-capture.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(socket_path, sizeof(socket_path), "%s/socket", folder);
    (void)snprintf(preload_path, sizeof(preload_path), "%s/libmemlog.so", folder);
    name_library();
}

static void remove_folder(void) {
    (void)unlink(socket_path);
    (void)unlink(preload_path);
    (void)rmdir(folder);
}

static int listen_somewhere(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int on = 1;
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    (void)strcpy(address.sun_path, socket_path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 64), 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
    return fd;
}

static bool receive(int fd, struct capture_message *out) {
    char control[512];
    struct iovec piece = {.iov_base = out->packet, .iov_len = sizeof(out->packet)};
    struct msghdr message = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control)};
    const ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    out->fds_count = 0;
    if (got <= 0) {
        return false;
    }
    out->count_bytes = (size_t)got;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_type == SCM_RIGHTS) {
            out->fds_count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(out->fds, CMSG_DATA(c), out->fds_count * sizeof(int));
        } else if (c->cmsg_type == SCM_CREDENTIALS) {
            struct ucred who;
            memcpy(&who, CMSG_DATA(c), sizeof(who));
            out->pid = who.pid;
        }
    }
    return true;
}

static void
send_reply(int fd, const void *packet, size_t count_bytes, const struct ml_handles *handles) {
    char control[CMSG_SPACE(sizeof(int) * ML_HANDLES_MAX)] = {0};
    struct iovec piece = {.iov_base = (void *)(uintptr_t)packet, .iov_len = count_bytes};
    struct msghdr message = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = CMSG_SPACE(sizeof(int) * handles->count)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * handles->count);
    memcpy(CMSG_DATA(rights), handles->fds, sizeof(int) * handles->count);
    ck_assert_int_eq(sendmsg(fd, &message, MSG_NOSIGNAL), (ssize_t)count_bytes);
}

static int
sealed_memfd(const char *name, uint64_t size_bytes, const void *head, size_t head_bytes) {
    const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)size_bytes), 0);
    ck_assert_int_eq(pwrite(fd, head, head_bytes, 0), (ssize_t)head_bytes);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    return fd;
}

static struct captured_process *add_process(struct capture *capture, pid_t pid) {
    ck_assert_uint_lt(capture->processes_count, CAPTURE_PROCESSES_MAX);
    struct captured_process *process = &capture->processes[capture->processes_count++];
    process->pid = pid;
    return process;
}

static void
welcome(struct capture *capture, const struct capture_options *options, int fd, pid_t pid) {
    struct captured_process *process = add_process(capture, pid);
    const uint32_t slots = options->slots == 0 ? 1 : options->slots;
    const uint64_t sampling_bytes = options->sampling_bytes == 0 ? 1 : options->sampling_bytes;
    const struct ml_staging_header header = {
        .magic = ML_STAGING_MAGIC, .version = ML_STAGING_VERSION, .slots = slots};
    const struct ml_control_page page = {
        .magic = ML_CONTROL_MAGIC,
        .version = 1,
        .enabled = options->dormant ? 0 : 1,
        .fork_enabled = options->dormant ? 0 : 1,
        .sampling_bytes = sampling_bytes,
        .all_sampled = 1,
        .hooks_entries = options->entries ? 1 : 0,
        .measures_cost = options->measures_cost ? 1 : 0,
        .stack_mode = options->stack_mode,
        .generation = 1,
        .clock = options->clock,
        .unwind_check = options->unwind_check};
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    process->pipe_fd = ends[0];
    process->staging_fd =
        sealed_memfd("capture", ml_staging_size_bytes(slots), &header, sizeof(header));
    process->control_fd = sealed_memfd("capture", ML_CONTROL_BYTES, &page, sizeof(page));
    const struct memlog_client_hello_reply reply = {
        .params =
            {.verdict =
                 options->dormant ? MEMLOG_CLIENT_VERDICT_DORMANT : MEMLOG_CLIENT_VERDICT_RECORD,
             .stack_mode = (enum memlog_client_stack_mode)options->stack_mode,
             .sampling_bytes = sampling_bytes,
             .staging_slots = slots},
        .has_event_pipe = true,
        .event_pipe = ends[1],
        .has_staging = true,
        .staging = process->staging_fd,
        .has_control = true,
        .control = process->control_fd,
        .has_lease = true,
        .lease = capture->lease_fd};
    uint8_t packet[MEMLOG_CLIENT_HELLO_REPLY_MAX_BYTES];
    size_t count_bytes = 0;
    struct ml_handles handles;
    ck_assert_int_eq(
        memlog_client_hello_reply_encode(&reply, 1, packet, sizeof(packet), &count_bytes, &handles),
        ML_OK
    );
    send_reply(fd, packet, count_bytes, &handles);
    (void)close(ends[1]);
}

static void take_message(
    struct capture *capture,
    const struct capture_options *options,
    int fd,
    struct capture_message *got
) {
    struct memlog_client_hello_request hello;
    struct memlog_client_forked_request forked;
    struct memlog_client_not_profiled_request other;
    struct memlog_client_allocators_request allocators;
    if (memlog_client_allocators_request_decode(
            0, got->packet, got->count_bytes, NULL, 0, NULL, 0, &allocators
        ) == ML_OK) {
        capture->allocators_count++;
        return; /* its Hello comes next */
    }
    if (memlog_client_hello_request_decode(
            1, got->packet, got->count_bytes, NULL, 0, NULL, 0, &hello
        ) == ML_OK) {
        welcome(capture, options, fd, got->pid);
        return;
    }
    if (memlog_client_forked_request_decode(
            0, got->packet, got->count_bytes, got->fds, got->fds_count, NULL, 0, &forked
        ) == ML_OK) {
        struct captured_process *process = add_process(capture, got->pid);
        process->forked = true;
        process->fork_serial = forked.fork_serial;
        process->pipe_fd = forked.event_pipe;
        process->staging_fd = forked.staging;
        process->control_fd = forked.control;
        (void)fcntl(process->pipe_fd, F_SETFL, O_NONBLOCK);
        return;
    }
    ck_assert_int_eq(
        memlog_client_not_profiled_request_decode(
            0, got->packet, got->count_bytes, NULL, 0, NULL, 0, &other
        ),
        ML_OK
    );
    capture->not_profiled_count++;
    (void)snprintf(
        capture->not_profiled,
        sizeof(capture->not_profiled),
        "%d %.*s",
        (int)other.reason,
        (int)other.path.count_bytes,
        other.path.data
    );
}

static void append(struct captured_process *process, const void *bytes, size_t count_bytes) {
    if (process->bytes_count + count_bytes > process->bytes_capacity) {
        process->bytes_capacity = (process->bytes_count + count_bytes) * 2;
        process->bytes = realloc(process->bytes, process->bytes_capacity);
        ck_assert_ptr_nonnull(process->bytes);
    }
    memcpy(process->bytes + process->bytes_count, bytes, count_bytes);
    process->bytes_count += count_bytes;
}

static bool drain(struct captured_process *process) {
    static uint8_t buffer[1 << 16];
    bool any = false;
    for (;;) {
        const ssize_t got = read(process->pipe_fd, buffer, sizeof(buffer));
        if (got <= 0) {
            return any;
        }
        append(process, buffer, (size_t)got);
        any = true;
    }
}

/* The chunks of a lane that only staging has: closed ones, then the open one. */
static void
read_lane(struct captured_process *process, uint32_t lane, const struct ml_staging_lane *header) {
    static uint8_t frame[ML_FRAME_MAX_BYTES];
    const uint64_t last = header->published >> ML_PUBLISHED_SHIFT;
    ck_assert_uint_le(header->sent, last);
    ck_assert_uint_le(last - header->sent, process->header.slots - 1);
    for (uint64_t number = header->sent; number <= last; number++) {
        const uint64_t at = ml_staging_slot_offset(lane, number, process->header.slots);
        ck_assert_int_eq(
            pread(process->staging_fd, frame, sizeof(frame), (off_t)at), sizeof(frame)
        );
        struct ml_frame_header own = {
            .chunk_number = number,
            .end_bytes = header->published & ML_PUBLISHED_BYTES_MASK,
            .lane = (uint16_t)lane};
        if (number != last) {
            struct ml_reader r = ml_reader_over(frame, ML_FRAME_HEADER_BYTES);
            ck_assert_int_eq(ml_frame_header_read(&r, &own), ML_OK);
            ck_assert_uint_eq(own.chunk_number, number);
        }
        ck_assert_uint_le(own.end_bytes, ML_CHUNK_MAX_BYTES);
        if (own.end_bytes > 0) {
            ml_frame_header_write(frame, &own);
            append(process, frame, ML_FRAME_HEADER_BYTES + (size_t)own.end_bytes);
        }
    }
}

/* Everything that has ended. */
static void read_staging(struct captured_process *process) {
    static struct ml_staging_lane lanes[ML_LANES_MAX];
    ck_assert_int_eq(
        pread(process->staging_fd, &process->header, sizeof(process->header), 0),
        sizeof(process->header)
    );
    ck_assert_uint_le(process->header.lanes_used, ML_LANES_MAX);
    process->lanes_used = process->header.lanes_used;
    ck_assert_int_eq(
        pread(process->staging_fd, lanes, sizeof(lanes), ML_STAGING_LANES_OFFSET), sizeof(lanes)
    );
    for (uint32_t i = 0; i < process->lanes_used; i++) {
        process->lost_events += lanes[i].lost_events;
        process->produced += lanes[i].produced;
        process->waits += lanes[i].waits;
        process->waited_ns += lanes[i].waited_ns;
        if (lanes[i].longest_wait_ns > process->longest_wait_ns) {
            process->longest_wait_ns = lanes[i].longest_wait_ns;
        }
        if (lanes[i].published >> ML_PUBLISHED_SHIFT >> ML_PROFILE_SHIFT <
            process->unread_profile) {
            continue;
        }
        read_lane(process, i, &lanes[i]);
    }
}

/* ---- what the signals of a process do */

static _Atomic pid_t wants_profile, wants_stop;

static void on_wish(int number, siginfo_t *info, void *context) {
    (void)context;
    atomic_store(number == SIGUSR1 ? &wants_profile : &wants_stop, info->si_pid);
}

static void listen_to_wishes(void) {
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
    action.sa_sigaction = on_wish;
    (void)sigaction(SIGUSR1, &action, NULL);
    (void)sigaction(SIGUSR2, &action, NULL);
}

/* As the host writes it: the generation last. */
static void
grant(struct capture *capture, const struct capture_options *options, pid_t pid, int number) {
    for (size_t i = 0; i < capture->processes_count; i++) {
        struct captured_process *process = &capture->processes[i];
        if (process->pid != pid) {
            continue;
        }
        struct ml_control_page page;
        ck_assert_int_eq(pread(process->control_fd, &page, sizeof(page), 0), sizeof(page));
        if (number == SIGUSR1 &&
            (page.profile % 2 == 1 || options->signals == SIGNALS_READ_EACH_TIME)) {
            (void)drain(process);
            read_staging(process);
        }
        process->unread_profile += number == SIGUSR1;
        page.enabled = number == SIGUSR1;
        ck_assert_int_eq(pwrite(process->control_fd, &page, sizeof(page), 0), sizeof(page));
        const uint32_t word[] = {page.generation + 1, page.profile + (number == SIGUSR1)};
        const off_t at = offsetof(struct ml_control_page, generation);
        ck_assert_int_eq(pwrite(process->control_fd, word, sizeof(word), at), sizeof(word));
        (void)kill(pid, number);
    }
}

static void grant_requests(struct capture *capture, const struct capture_options *options) {
    const pid_t profile = atomic_exchange(&wants_profile, 0);
    const pid_t stop = atomic_exchange(&wants_stop, 0);
    if (profile != 0) {
        grant(capture, options, profile, SIGUSR1);
    }
    if (stop != 0) {
        grant(capture, options, stop, SIGUSR2);
    }
}

static int by_time(const void *a, const void *b) {
    const struct captured_event *x = a;
    const struct captured_event *y = b;
    if (x->profile != y->profile) {
        return x->profile < y->profile ? -1 : 1;
    }
    if (x->event.time != y->event.time) {
        return x->event.time < y->event.time ? -1 : 1;
    }
    if (x->lane != y->lane) {
        return x->lane < y->lane ? -1 : 1;
    }
    return x->order < y->order ? -1 : x->order > y->order;
}

static void decode(struct captured_process *process) {
    static uint64_t next_chunk[ML_LANES_MAX];
    struct ml_reader all = ml_reader_over(process->bytes, process->bytes_count);
    size_t capacity = 0;
    memset(next_chunk, 0, sizeof(next_chunk));
    while (ml_reader_left(&all) > 0) {
        struct ml_frame_header header;
        const uint8_t *payload = NULL;
        ck_assert_int_eq(ml_frame_header_read(&all, &header), ML_OK);
        ck_assert_uint_eq(header.start_bytes, 0);
        ck_assert_int_eq(ml_reader_bytes(&all, header.end_bytes, &payload), ML_OK);
        ck_assert_uint_ge(header.chunk_number, next_chunk[header.lane]);
        next_chunk[header.lane] = header.chunk_number + 1;
        struct ml_reader r = ml_reader_over(payload, header.end_bytes);
        struct ml_event_state state = {0};
        while (ml_reader_left(&r) > 0) {
            if (process->events_count == capacity) {
                capacity = capacity == 0 ? 1024 : capacity * 2;
                process->events =
                    realloc(process->events, capacity * sizeof(struct captured_event));
                ck_assert_ptr_nonnull(process->events);
            }
            struct captured_event *event = &process->events[process->events_count];
            ck_assert_int_eq(ml_event_decode(&r, &state, &event->event), ML_OK);
            event->lane = header.lane;
            event->profile = (uint32_t)(header.chunk_number >> ML_PROFILE_SHIFT);
            event->order = (uint32_t)process->events_count++;
        }
    }
    qsort(process->events, process->events_count, sizeof(struct captured_event), by_time);
}

static pid_t start(char *const arguments[]) {
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)setenv("MEMLOG_SOCKET", socket_path, 1);
        (void)setenv("LD_PRELOAD", preload_path, 1);
        (void)close_range(3, ~0u, 0);
        (void)execv(arguments[0], arguments);
        _exit(127);
    }
    return pid;
}

/* One look at everything that may have something to say; true while there was something. */
static bool round_of(
    struct capture *capture,
    const struct capture_options *options,
    int listener,
    int *connections,
    size_t *connections_count
) {
    static struct capture_message got;
    bool any = false;
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    while (poll(&wait, 1, 0) > 0) {
        ck_assert_uint_lt(*connections_count, 256);
        connections[(*connections_count)++] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        any = true;
    }
    for (size_t i = 0; i < *connections_count; i++) {
        struct pollfd ready = {.fd = connections[i], .events = POLLIN};
        while (connections[i] >= 0 && poll(&ready, 1, 0) > 0) {
            if (!receive(connections[i], &got)) {
                (void)close(connections[i]);
                connections[i] = -1;
                break;
            }
            take_message(capture, options, connections[i], &got);
            any = true;
        }
    }
    for (size_t i = 0; !options->read_nothing && i < capture->processes_count; i++) {
        any |= drain(&capture->processes[i]);
    }
    return any;
}

void capture_run(
    struct capture *out_capture, const struct capture_options *options, char *const arguments[]
) {
    int connections[256];
    size_t connections_count = 0;
    const struct ml_lease_page lease = {.magic = ML_LEASE_MAGIC};
    *out_capture = (struct capture){0};
    out_capture->lease_fd = sealed_memfd("memlog-lease", ML_LEASE_BYTES, &lease, sizeof(lease));
    make_folder();
    const int listener = listen_somewhere();
    if (options->signals != SIGNALS_DO_NOTHING) {
        listen_to_wishes();
    }
    const pid_t pid = options->attach ? capture_start_bare(arguments) : start(arguments);
    int tracer = options->attach ? capture_start_tracer(pid) : -1;
    bool ended = false;
    /* A little longer than the program itself: what it forked may still say something. */
    for (int quiet = 0; quiet < (options->signals != SIGNALS_DO_NOTHING ? 500 : 50) || !ended;) {
        const bool any = round_of(out_capture, options, listener, connections, &connections_count);
        struct pollfd says = {.fd = tracer, .events = POLLIN};
        static struct capture_message got;
        if (tracer >= 0 && poll(&says, 1, 0) > 0) {
            if (receive(tracer, &got)) {
                int connection = -1;
                capture_hear_tracer(out_capture, &got, &connection);
                if (connection >= 0) {
                    connections[connections_count++] = connection;
                }
            } else {
                (void)close(tracer);
                tracer = -1;
            }
        }
        grant_requests(out_capture, options);
        if (!ended && waitpid(pid, &out_capture->exit_status, WNOHANG) == pid) {
            ended = true;
        }
        quiet = any || !ended ? 0 : quiet + 1;
        if (!any) {
            (void)usleep(options->signals != SIGNALS_DO_NOTHING ? 100 : 1000);
        }
    }
    for (size_t i = 0; i < out_capture->processes_count; i++) {
        struct captured_process *process = &out_capture->processes[i];
        (void)drain(process);
        if (!options->no_tail) {
            read_staging(process);
        }
        if (!options->no_events) {
            decode(process);
        }
        (void)close(process->pipe_fd);
        (void)close(process->staging_fd);
        (void)close(process->control_fd);
    }
    for (size_t i = 0; i < connections_count; i++) {
        (void)close(connections[i]);
    }
    (void)close(out_capture->lease_fd);
    (void)close(listener);
    remove_folder();
}

void capture_free(struct capture *capture) {
    for (size_t i = 0; i < capture->processes_count; i++) {
        free(capture->processes[i].bytes);
        free(capture->processes[i].events);
    }
}

void capture_profile(
    const struct captured_process *process, uint32_t profile, struct captured_process *out_part
) {
    size_t first = 0;
    while (first < process->events_count && process->events[first].profile < profile) {
        first++;
    }
    size_t end = first;
    while (end < process->events_count && process->events[end].profile == profile) {
        end++;
    }
    *out_part = *process;
    out_part->events = process->events + first;
    out_part->events_count = end - first;
}
