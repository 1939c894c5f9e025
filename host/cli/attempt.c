#include "host/cli/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/auxvec.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "host/engine/engine.h"
#include "host/process/launcher.h"
#include "host/process/paths.h"
#include "ipc/channel/channel.h"
#include "mojom_like_idl/contracts/heap_client_mojom.h"

enum { TRY_MS = 10000, LOOK_MS = 5, BREAKPOINT = 0xcc /* int3 */ };

struct attempt {
    char folder[32];
    char socket_path[64];
    char link_path[64];
    int listen_fd;
    struct ml_channel *channel;
    enum ml_attempt result;
    const char *reason;
};

static void on_hello(
    void *context, const struct ml_call *call, const struct memlog_client_hello_request *request
) {
    struct attempt *attempt = context;
    (void)call;
    (void)request;
    attempt->result = ML_ATTEMPT_REACHED;
}

/* Ignored here: the report of a run shows the program's allocators. */
static void on_allocators(
    void *context,
    const struct ml_call *call,
    const struct memlog_client_allocators_request *request
) {
    (void)context;
    (void)call;
    (void)request;
}

static void on_not_profiled(
    void *context,
    const struct ml_call *call,
    const struct memlog_client_not_profiled_request *request
) {
    struct attempt *attempt = context;
    (void)call;
    attempt->result = ML_ATTEMPT_REFUSED;
    attempt->reason = ml_engine_not_profiled_text(request->reason);
}

static const struct memlog_client_host_for_client_handlers handlers = {
    .hello = on_hello, .not_profiled = on_not_profiled, .allocators = on_allocators};

static bool listen_in(struct attempt *attempt) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int on = 1;
    (void)snprintf(attempt->folder, sizeof(attempt->folder), "/tmp/memlog-try.XXXXXX");
    if (mkdtemp(attempt->folder) == NULL) {
        attempt->folder[0] = '\0';
        return false;
    }
    (void)snprintf(attempt->socket_path, sizeof(attempt->socket_path), "%s/s", attempt->folder);
    (void)snprintf(
        attempt->link_path, sizeof(attempt->link_path), "%s/%s", attempt->folder, ML_PRELOAD_FILE
    );
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", attempt->socket_path);
    attempt->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return attempt->listen_fd >= 0 &&
           setsockopt(attempt->listen_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0 &&
           bind(attempt->listen_fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
           listen(attempt->listen_fd, 1) == 0;
}

static void fini(struct attempt *attempt) {
    ml_channel_free(attempt->channel);
    ml_descriptor_close(&attempt->listen_fd);
    if (attempt->folder[0] != '\0') {
        (void)unlink(attempt->socket_path);
        (void)unlink(attempt->link_path);
        (void)rmdir(attempt->folder);
    }
}

/* The program's environment and memlog's variables. The library is named by way of a symbolic link,
 * because its own path may hold characters that are special to the loader. */
static char **environment_for(const struct attempt *attempt, const char *library_path) {
    char folder[PATH_MAX];
    char preload[sizeof(attempt->link_path) + 64];
    const bool has_folder = ml_paths_preload_folder(library_path, folder);
    if (symlink(has_folder ? folder : library_path, attempt->link_path) != 0) {
        return NULL;
    }
    (void)snprintf(
        preload,
        sizeof(preload),
        "%s%s",
        attempt->link_path,
        has_folder ? "/" ML_PRELOAD_PLATFORM "/" ML_PRELOAD_FILE : ""
    );
    return ml_launcher_environment(environ, preload, attempt->socket_path);
}

__attribute__((noreturn)) static void
run_child(pid_t host, char *const *argv, char *const *environment) {
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++) {
        if (dup2(nowhere, fd) < 0) {
            _exit(0);
        }
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == host &&
        ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0) {
        (void)execvpe(argv[0], argv, environment);
    }
    _exit(0);
}

/* The program's entry point. 0: it cannot be read, or the loader ignores the preload. */
static uintptr_t entry_of(pid_t pid) {
    char path[64];
    uint64_t entries[64][2]; /* type, value */
    uintptr_t entry = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = fd >= 0 ? read(fd, entries, sizeof(entries)) : -1;
    ml_descriptor_close(&fd);
    for (size_t i = 0; bytes > 0 && i < (size_t)bytes / sizeof(entries[0]); i++) {
        if (entries[i][0] == AT_SECURE && entries[i][1] != 0) {
            return 0;
        }
        if (entries[i][0] == AT_ENTRY) {
            entry = (uintptr_t)entries[i][1];
        }
    }
    return entry;
}

/* The child is stopped at its exec. Set a breakpoint on its first instruction and let it run on. */
static bool let_load(pid_t pid) {
    const uintptr_t entry = entry_of(pid);
    errno = 0;
    const long word = entry != 0 ? ptrace(PTRACE_PEEKTEXT, pid, (void *)entry, NULL) : 0;
    if (entry == 0 || errno != 0) {
        return false;
    }
    const long stop = (word & ~0xffL) | BREAKPOINT;
    return ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_EXITKILL) == 0 &&
           ptrace(PTRACE_POKETEXT, pid, (void *)entry, (void *)stop) == 0 &&
           ptrace(PTRACE_CONT, pid, NULL, NULL) == 0;
}

/* Accept the connection, or receive a message on it. The handlers set attempt->result. */
static void listen_to(struct attempt *attempt) {
    struct pollfd ready = {.fd = attempt->listen_fd, .events = POLLIN};
    if (attempt->channel != NULL) {
        (void)!ml_channel_receive(attempt->channel, LOOK_MS);
        return;
    }
    if (poll(&ready, 1, LOOK_MS) > 0) {
        const int fd = accept4(attempt->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        const struct ml_channel_options options = {
            .server = memlog_client_host_for_client_server(&handlers, attempt)};
        if (fd >= 0 && ml_channel_new(fd, &options, &attempt->channel) != ML_OK) {
            attempt->channel = NULL;
        }
    }
}

/* True: the process still exists. */
static bool follow(struct attempt *attempt, pid_t pid) {
    int status = 0;
    const pid_t answer = waitpid(pid, &status, WNOHANG);
    if (answer == 0) {
        return true;
    }
    const bool is_there = answer == pid && WIFSTOPPED(status);
    if (is_there && WSTOPSIG(status) != SIGTRAP) {
        (void)ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)WSTOPSIG(status));
        return true;
    }
    /* What it sent before that has arrived: a connection and a message, which take a call each. */
    for (int i = 0; i < 2 && attempt->result == ML_ATTEMPT_UNKNOWN; i++) {
        listen_to(attempt);
    }
    if (attempt->result == ML_ATTEMPT_UNKNOWN) {
        attempt->result = is_there ? ML_ATTEMPT_NOT_LOADED : ML_ATTEMPT_ENDED;
    }
    return is_there;
}

static void watch(struct attempt *attempt, pid_t pid) {
    bool is_there = true;
    int status = 0;
    for (int waited_ms = 0; is_there && attempt->result == ML_ATTEMPT_UNKNOWN && waited_ms < TRY_MS;
         waited_ms += LOOK_MS) {
        listen_to(attempt);
        if (attempt->result == ML_ATTEMPT_UNKNOWN) {
            is_there = follow(attempt, pid);
        }
    }
    if (is_there) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, &status, 0);
    }
}

enum ml_attempt
ml_attempt_program(char *const *argv, const char *library_path, const char **out_reason) {
    struct attempt attempt = {.listen_fd = -1, .reason = ""};
    char **environment = NULL;
    if (listen_in(&attempt)) {
        environment = environment_for(&attempt, library_path);
    }
    const pid_t host = getpid();
    const pid_t pid = environment != NULL ? fork() : -1;
    if (pid == 0) {
        run_child(host, argv, environment);
    }
    int status = 0;
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
        if (let_load(pid)) {
            watch(&attempt, pid);
        } else {
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, &status, 0);
        }
    }
    free(environment);
    fini(&attempt);
    *out_reason = attempt.reason;
    return attempt.result;
}
