/* A program with a host and its page inside that watches what becomes of its own things: `stranger
 * SERVICE DIR [ignore]`. It prints the page's address, then answers orders on stdin, a line each:
 * "look", "fork" (from now on it forks all the time), "end". With `ignore` it ignores SIGCHLD. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/lib/memlog_host.h"

enum { STATE_BYTES = 1 << 18, PATH_BYTES = 4096, PAUSE_US = 200 };

static atomic_int signals, forks, own_forks, foreign_children;
static atomic_bool is_forking, is_ending, is_ignoring;

static void on_child(int signal) {
    (void)signal;
    signals++;
}

static void on_fork(void) {
    forks++;
}

/* ---- its own things, as text */

struct state {
    size_t count;
    char text[STATE_BYTES];
};

__attribute__((format(printf, 2, 3))) static void
put(struct state *state, const char *format, ...) {
    va_list values;
    va_start(values, format);
    const int count =
        vsnprintf(state->text + state->count, STATE_BYTES - state->count, format, values);
    va_end(values);
    state->count += count > 0 ? (size_t)count : 0;
    if (state->count >= STATE_BYTES) {
        abort();
    }
}

static void put_descriptors(struct state *state) {
    char target[PATH_BYTES];
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        const ssize_t count = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);
        target[count > 0 ? count : 0] = '\0';
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder)) {
            put(state, "fd %s: %s\n", entry->d_name, target);
        }
    }
    (void)closedir(folder);
}

static void put_signals(struct state *state) {
    sigset_t mask;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    for (int signal = 1; signal < NSIG; signal++) {
        struct sigaction action;
        if (sigaction(signal, NULL, &action) == 0) {
            put(state,
                "signal %d: %p %d %d\n",
                signal,
                (void *)(uintptr_t)action.sa_handler,
                action.sa_flags,
                sigismember(&mask, signal));
        }
    }
}

static void take_state(struct state *state) {
    char folder[PATH_BYTES];
    struct rlimit limit;
    *state = (struct state){.count = 0};
    put_descriptors(state);
    put_signals(state);
    for (char **entry = environ; *entry != NULL; entry++) {
        put(state, "%p %s\n", (void *)*entry, *entry);
    }
    const mode_t mask = umask(0);
    (void)umask(mask);
    put(state, "umask %o folder %s\n", mask, getcwd(folder, sizeof(folder)));
    for (int resource = 0; resource < (int)RLIM_NLIMITS; resource++) {
        (void)getrlimit((__rlimit_resource_t)resource, &limit);
        put(state, "limit %d %ld\n", resource, (long)limit.rlim_cur);
    }
}

/* ---- its family */

/* Whoever this meets that it has not forked itself is none of its. */
static void *live(void *context) {
    while (!is_ending) {
        if (is_forking) {
            const pid_t child = fork();
            if (child == 0) {
                _exit(0);
            }
            own_forks++;
            /* Where it ignores their ends, the kernel takes them itself, and none is left. */
            const pid_t ended = waitpid(-1, NULL, 0);
            foreign_children += is_ignoring ? ended != -1 : ended != child;
        }
        const pid_t other = waitpid(-1, NULL, WNOHANG | WUNTRACED);
        foreign_children += other != -1 || errno != ECHILD;
        (void)usleep(PAUSE_US);
    }
    return context;
}

static void answer(void) {
    (void)printf(
        "{\"signals\": %d, \"forks\": %d, \"own_forks\": %d, \"foreign_children\": %d}\n",
        (int)signals,
        (int)forks,
        (int)own_forks,
        (int)foreign_children
    );
    (void)fflush(stdout);
}

static void obey(void) {
    char line[16];
    while (fgets(line, sizeof(line), stdin) != NULL && strcmp(line, "end\n") != 0) {
        is_forking = is_forking || strcmp(line, "fork\n") == 0;
        answer();
    }
}

static struct memlog_host *start(char *argv[]) {
    char error[PATH_BYTES] = "";
    char url[PATH_BYTES] = "";
    char output[] = "-o";
    char *options[] = {output, argv[2], NULL};
    const struct memlog_host_settings settings = {
        .options = options, .program = "stranger", .service_path = argv[1]};
    struct memlog_host *host = memlog_host_start(&settings, error, sizeof(error));
    if (host == NULL || memlog_host_page(host, NULL, url, sizeof(url)) != 0) {
        (void)fprintf(stderr, "no host or no page: %s%s\n", error, url);
        exit(1);
    }
    (void)printf("%s\n", url);
    (void)fflush(stdout);
    return host;
}

int main(int argc, char *argv[]) {
    static struct state before, after;
    char path[PATH_BYTES] = "";
    pthread_t family;
    is_ignoring = argc == 4;
    if (argc < 3 || signal(SIGCHLD, is_ignoring ? SIG_IGN : on_child) == SIG_ERR ||
        pthread_atfork(on_fork, NULL, NULL) != 0 || fgetc(stdin) != '\n') {
        return 1;
    }
    (void)umask(027);
    take_state(&before);
    struct memlog_host *host = start(argv);
    if (pthread_create(&family, NULL, live, NULL) != 0) {
        return 1;
    }
    obey();
    is_ending = true;
    (void)pthread_join(family, NULL);
    if (memlog_host_stop(host, path, sizeof(path)) != 0) {
        (void)fprintf(stderr, "no dump: %s\n", path);
        return 1;
    }
    take_state(&after);
    answer();
    if (strcmp(before.text, after.text) != 0) {
        (void)fprintf(stderr, "before:\n%s\nafter:\n%s", before.text, after.text);
        return 1;
    }
    return 0;
}
