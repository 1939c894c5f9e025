#include "host/process/launcher.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include "base/descriptor.h"

/* env(1)'s. */
enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

#define PRELOAD_KEY "LD_PRELOAD="
#define SOCKET_KEY "MEMLOG_SOCKET="

void ml_inherited_read(struct ml_inherited *out_inherited) {
    (void)pthread_sigmask(SIG_SETMASK, NULL, &out_inherited->mask);
    (void)sigaction(SIGCHLD, NULL, &out_inherited->on_child);
    (void)getrlimit(RLIMIT_NOFILE, &out_inherited->descriptors);
}

void ml_inherited_take(struct ml_inherited *out_inherited) {
    ml_inherited_read(out_inherited);
    /* Started with SIGCHLD ignored, the kernel would reap our children behind our back. */
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    (void)sigaction(SIGCHLD, &by_default, NULL);
    struct rlimit raised = out_inherited->descriptors;
    raised.rlim_cur = raised.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &raised);
}

void ml_inherited_restore(const struct ml_inherited *inherited) {
    (void)setrlimit(RLIMIT_NOFILE, &inherited->descriptors);
    (void)sigaction(SIGCHLD, &inherited->on_child, NULL);
    (void)sigprocmask(SIG_SETMASK, &inherited->mask, NULL);
}

static bool is_of_loader(const char *entry) {
    return strncmp(entry, "LD_", 3) == 0;
}

void ml_launcher_forget_loader(char **environment) {
    char **kept = environment;
    for (char **entry = environment; *entry != NULL; entry++) {
        if (!is_of_loader(*entry)) {
            *kept++ = *entry;
        }
    }
    *kept = NULL;
}

char **ml_launcher_own_environment(char *const *environment) {
    size_t pointers_bytes = sizeof(char *);
    size_t text_bytes = 0;
    for (char *const *entry = environment; *entry != NULL; entry++) {
        pointers_bytes += sizeof(char *);
        text_bytes += strlen(*entry) + 1;
    }
    char **pointers = malloc(pointers_bytes + text_bytes);
    if (pointers == NULL) {
        return NULL;
    }
    char *text = (char *)pointers + pointers_bytes;
    char **kept = pointers;
    for (char *const *entry = environment; *entry != NULL; entry++) {
        const size_t bytes = strlen(*entry) + 1;
        if (!is_of_loader(*entry)) {
            *kept++ = memcpy(text, *entry, bytes);
            text += bytes;
        }
    }
    *kept = NULL;
    return pointers;
}

char **ml_launcher_environment(
    char *const *environment, const char *preload_path, const char *socket_path
) {
    size_t count = 0;
    const char *old_preload = NULL;
    for (; environment[count] != NULL; count++) {
        if (strncmp(environment[count], PRELOAD_KEY, strlen(PRELOAD_KEY)) == 0) {
            old_preload = environment[count] + strlen(PRELOAD_KEY);
        }
    }
    bool follows = old_preload != NULL && old_preload[0] != '\0';
    size_t preload_bytes =
        strlen(PRELOAD_KEY) + strlen(preload_path) + 1 + (follows ? strlen(old_preload) : 0) + 1;
    size_t socket_bytes = strlen(SOCKET_KEY) + strlen(socket_path) + 1;
    size_t pointers_bytes = (count + 3) * sizeof(char *);
    char *block = malloc(pointers_bytes + preload_bytes + socket_bytes);
    if (block == NULL) {
        return NULL;
    }
    char **pointers = (char **)(void *)block;
    char *preload = block + pointers_bytes;
    char *socket = preload + preload_bytes;
    (void)snprintf(
        preload,
        preload_bytes,
        PRELOAD_KEY "%s%s%s",
        preload_path,
        follows ? ":" : "",
        follows ? old_preload : ""
    );
    (void)snprintf(socket, socket_bytes, SOCKET_KEY "%s", socket_path);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environment[i], PRELOAD_KEY, strlen(PRELOAD_KEY)) != 0 &&
            strncmp(environment[i], SOCKET_KEY, strlen(SOCKET_KEY)) != 0) {
            pointers[kept++] = environment[i];
        }
    }
    pointers[kept++] = preload;
    pointers[kept++] = socket;
    pointers[kept] = NULL;
    return pointers;
}

/* The child's side: wait for the gate, become the program, or say why not. */
__attribute__((noreturn)) static void
run_child(const struct ml_launch *launch, char *const *environment, int gate_fd, int error_fd) {
    char byte = 0;
    ssize_t count = -1;
    do {
        count = read(gate_fd, &byte, 1);
    } while (count < 0 && errno == EINTR);
    if (count != 1) { /* the host is gone or has cancelled */
        _exit(EXIT_CANNOT_RUN);
    }
    ml_inherited_restore(launch->inherited);
    (void)execvpe(launch->argv[0], launch->argv, environment);
    int32_t error = errno;
    (void)!write(error_fd, &error, sizeof(error));
    _exit(ml_launcher_exit_code(error));
}

enum ml_status ml_launcher_fork(
    const struct ml_launch *launch, struct ml_launched *out_launched, struct ml_error_message *error
) {
    enum ml_status status = ML_ENV_SYSTEM;
    int gate[2] = {-1, -1};
    int error_pipe[2] = {-1, -1};
    char **environment = NULL;
    if (launch->preload_path != NULL) {
        environment =
            ml_launcher_environment(launch->environment, launch->preload_path, launch->socket_path);
        if (environment == NULL) {
            return ML_ENV_MEMORY;
        }
    }
    pid_t pid = -1;
    if (pipe2(gate, O_CLOEXEC) != 0 || pipe2(error_pipe, O_CLOEXEC) != 0) {
        goto fail;
    }
    pid = fork();
    if (pid < 0) {
        goto fail;
    }
    if (pid == 0) {
        (void)close(gate[1]);
        run_child(
            launch, environment != NULL ? environment : launch->environment, gate[0], error_pipe[1]
        );
    }
    (void)close(gate[0]);
    (void)close(error_pipe[1]);
    *out_launched = (struct ml_launched
    ){.pid = pid, .gate_fd = gate[1], .error_fd = error_pipe[0], .environment = environment};
    return ML_OK;
fail:
    ml_error_set(error, "cannot start a process: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        ml_descriptor_close(&gate[i]);
        if (error_pipe[i] >= 0) {
            (void)close(error_pipe[i]);
        }
    }
    free(environment);
    return status;
}

static void launched_fini(struct ml_launched *launched) {
    (void)close(launched->error_fd);
    free(launched->environment);
    launched->environment = NULL;
    launched->error_fd = -1;
    launched->gate_fd = -1;
}

void ml_launcher_release(struct ml_launched *launched, int *out_errno) {
    (void)!write(launched->gate_fd, "g", 1);
    (void)close(launched->gate_fd);
    int32_t error = 0;
    ssize_t count = -1;
    do {
        count = read(launched->error_fd, &error, sizeof(error));
    } while (count < 0 && errno == EINTR);
    *out_errno = count == (ssize_t)sizeof(error) ? error : 0;
    launched_fini(launched);
}

void ml_launcher_cancel(struct ml_launched *launched) {
    (void)close(launched->gate_fd);
    while (waitpid(launched->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    launched_fini(launched);
}

int ml_launcher_exit_code(int exec_errno) {
    return exec_errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}
