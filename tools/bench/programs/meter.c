/* bench-meter FILE [KEY=VALUE...] -- PROGRAM [ARGS...]: start PROGRAM with those added to its
 * environment, and write into FILE, as JSON, what the kernel says it cost: its own wall and CPU
 * time, its peak of resident memory, and what memory was its own when it ended: without the pages
 * of files, which somebody who reads the unwind tables of its libraries brings in, and which are
 * the kernel's all the same. Exit code: the program's. Room: tools (bench).
 *
 * One rule: the program is this process's only child, so a profiler that starts us (and keeps its
 * own helpers to itself) is not in the figures. */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_METER = 125, EXIT_SIGNAL = 128 };

static double seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double seconds_of(struct timeval time) {
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

/* Our environment and the settings; those replace what has the same key. NULL: no memory. */
static char **environment_with(char **settings, size_t settings_count) {
    size_t count = 0;
    while (environ[count] != NULL) {
        count++;
    }
    char **merged = calloc(count + settings_count + 1, sizeof(*merged));
    if (merged == NULL) {
        return NULL;
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        size_t key_count = strcspn(environ[i], "=") + 1;
        size_t same = 0;
        while (same < settings_count && strncmp(environ[i], settings[same], key_count) != 0) {
            same++;
        }
        if (same == settings_count) {
            merged[kept++] = environ[i];
        }
    }
    memcpy(merged + kept, settings, settings_count * sizeof(*settings));
    return merged;
}

/* Of /proc/PID/status, in KiB; -1: not there. */
static long status_kib(pid_t pid, const char *key) {
    char path[64];
    char line[256];
    long kib = -1;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *in = fopen(path, "r");
    if (in == NULL) {
        return -1;
    }
    const size_t key_bytes = strlen(key);
    while (kib < 0 && fgets(line, sizeof(line), in) != NULL) {
        if (strncmp(line, key, key_bytes) == 0) {
            kib = strtol(line + key_bytes, NULL, 10);
        }
    }
    (void)fclose(in);
    return kib;
}

/* The program stops: at its end, while its memory is still there, to be asked for it; before that
 * for signals, which it gets, and where it is stopped itself. */
static void go_on(pid_t pid, int status, long *own_kib) {
    const int event = status >> 16;
    const int signal = WSTOPSIG(status);
    if (event == PTRACE_EVENT_EXIT) {
        const long anonymous_kib = status_kib(pid, "RssAnon:");
        const long shared_kib = status_kib(pid, "RssShmem:");
        *own_kib = anonymous_kib < 0 || shared_kib < 0 ? -1 : anonymous_kib + shared_kib;
    }
    const bool stays = event == PTRACE_EVENT_STOP && signal != SIGTRAP;
    (void)ptrace(
        stays ? PTRACE_LISTEN : PTRACE_CONT, pid, NULL, (void *)(long)(event == 0 ? signal : 0)
    );
}

static int write_figures(
    const char *path, double wall_s, int status, const struct rusage *usage, long own_kib
) {
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        return -1;
    }
    fprintf(
        out,
        "{\"wall_s\": %.6f, \"user_s\": %.6f, \"system_s\": %.6f, \"peak_rss_bytes\": %ld, "
        "\"own_bytes\": %ld, \"exit_code\": %d, \"signal\": %d}\n",
        wall_s,
        seconds_of(usage->ru_utime),
        seconds_of(usage->ru_stime),
        usage->ru_maxrss * 1024,            /* the kernel's unit is KiB */
        own_kib < 0 ? -1L : own_kib * 1024, /* -1: not known */
        WIFEXITED(status) ? WEXITSTATUS(status) : -1,
        WIFSIGNALED(status) ? WTERMSIG(status) : 0
    );
    return fclose(out);
}

int main(int argc, char **argv) {
    int separator = 2;
    while (separator < argc && strcmp(argv[separator], "--") != 0) {
        separator++;
    }
    if (separator + 1 >= argc) {
        fprintf(stderr, "bench-meter FILE [KEY=VALUE...] -- PROGRAM [ARGS...]\n");
        return EXIT_METER;
    }
    char **program = argv + separator + 1;
    char **environment = environment_with(argv + 2, (size_t)(separator - 2));
    const double start_s = seconds();
    pid_t pid = 0;
    int error = environment == NULL
                    ? ENOMEM
                    : posix_spawnp(&pid, program[0], NULL, NULL, program, environment);
    free(environment);
    if (error != 0) {
        fprintf(stderr, "bench-meter: %s: %s\n", program[0], strerror(error));
        return EXIT_METER;
    }
    /* Where that is forbidden, or the program is over already, its own memory stays unknown. */
    (void)ptrace(PTRACE_SEIZE, pid, NULL, (void *)(long)PTRACE_O_TRACEEXIT);
    int status = 0;
    long own_kib = -1;
    struct rusage usage;
    for (;;) {
        if (wait4(pid, &status, 0, &usage) < 0) {
            if (errno == EINTR) {
                continue;
            }
            perror("bench-meter: wait4");
            return EXIT_METER;
        }
        if (!WIFSTOPPED(status)) {
            break;
        }
        go_on(pid, status, &own_kib);
    }
    if (write_figures(argv[1], seconds() - start_s, status, &usage, own_kib) != 0) {
        perror(argv[1]);
        return EXIT_METER;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNAL + WTERMSIG(status);
}
