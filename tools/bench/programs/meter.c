/* bench-meter FILE [KEY=VALUE...] -- PROGRAM [ARGS...]: start PROGRAM with those added to its
 * environment, and write into FILE, as JSON, what the kernel says it cost: its own wall and CPU
 * time, and its peak of resident memory. Exit code: the program's. Room: tools (bench).
 *
 * One rule: the program is this process's only child, so a profiler that starts us (and keeps its
 * own helpers to itself) is not in the figures. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static int write_figures(const char *path, double wall_s, int status, const struct rusage *usage) {
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        return -1;
    }
    fprintf(
        out,
        "{\"wall_s\": %.6f, \"user_s\": %.6f, \"system_s\": %.6f, \"peak_rss_bytes\": %ld, "
        "\"exit_code\": %d, \"signal\": %d}\n",
        wall_s,
        seconds_of(usage->ru_utime),
        seconds_of(usage->ru_stime),
        usage->ru_maxrss * 1024, /* the kernel's unit is KiB */
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
    int status = 0;
    struct rusage usage;
    while (wait4(pid, &status, 0, &usage) < 0) {
        if (errno != EINTR) {
            perror("bench-meter: wait4");
            return EXIT_METER;
        }
    }
    if (write_figures(argv[1], seconds() - start_s, status, &usage) != 0) {
        perror(argv[1]);
        return EXIT_METER;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNAL + WTERMSIG(status);
}
