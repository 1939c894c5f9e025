/* confine_exercise LINE EXERCISE [WORDS...]: what the analyzer does in its sandbox, where line
 * LINE of tools/analyzer/sandbox/policy ends the process (0: none does). An exercise is a
 * sub-command with its words, or something that happens now and then, done at once. `--lines` says
 * what lines there are, each with its call and its exercise. */
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/seccomp/policy.h"
#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/sandbox/confine.h"
#include "tools/analyzer/sandbox/confine_filter.h"
#include "tools/analyzer/sandbox/confine_policy.h"
#include "tools/analyzer/symbols/perf_map.h"

enum { UNKNOWN = 98, FAILED = 97 };

static uint32_t deadly_line;

/* Not optimised away. */
static void *volatile kept;

/* In the place of tools/analyzer/sandbox/confine.c. */
void ml_confine(const char *output_path, const char *second_path) {
    ml_confine_but(output_path, second_path, deadly_line);
}

void ml_confine_closed(void) {
    ml_confine_closed_but(deadly_line);
}

/* libelf reads a file by position where it may not map it. */
static int read_elf(const char *path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t count = 0;

    (void)elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    const int failed = elf == NULL || elf_getphdrnum(elf, &count) != 0;
    (void)elf_end(elf);
    (void)close(fd);
    return failed ? FAILED : 0;
}

static int read_perf_map(const char *path) {
    struct ml_perf_map map = {0};

    return ml_perf_map_read_file(&map, path, 0, UINT64_MAX) ? 0 : FAILED;
}

static int other_fstat(const char *path) {
    struct stat facts;

    (void)path;
    return syscall(SYS_fstat, STDIN_FILENO, &facts) == 0 ? 0 : FAILED;
}

static int ask_time(const char *path) {
    struct timespec now;

    (void)path;
    return syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) == 0 ? 0 : FAILED;
}

/* Whether progress would be in its user's way. */
/* As isatty() of libc does since 2.42; of 2.36 it asks by TCGETS. */
static int ask_terminal(const char *path) {
    struct termios2 answer;

    (void)path;
    (void)ioctl(STDIN_FILENO, TCGETS2, &answer); /* which may be no terminal */
    return errno != EPERM ? 0 : FAILED;
}

static int ask_front(const char *path) {
    pid_t front = 0;

    (void)path;
    (void)ioctl(STDIN_FILENO, TIOCGPGRP, &front); /* which may be no terminal */
    return errno != EPERM ? 0 : FAILED;
}

static int do_abort(const char *path) {
    (void)path;
    abort();
}

/* What malloc says of a heap that is broken. */
static int corrupt(const char *path) {
    static char no_block[64];

    (void)path;
    kept = no_block + 8;
    free(kept);
    return FAILED;
}

static int grow_block(const char *path) {
    (void)path;
    for (size_t i = 1; i < 64; i++) {
        kept = realloc(kept, i << 20);
    }
    return kept != NULL ? 0 : FAILED;
}

static const struct {
    const char *name;
    int (*do_it)(const char *path);
} exercises[] = {
    {"read_elf", read_elf},
    {"perf_map", read_perf_map},
    {"fstat", other_fstat},
    {"ask_time", ask_time},
    {"ask_terminal", ask_terminal},
    {"front", ask_front},
    {"abort", do_abort},
    {"corrupt", corrupt},
    {"grow_block", grow_block},
};

static const struct ml_command *const commands[] = {
    &ml_command_report, &ml_command_convert, &ml_command_symbolize};

static int list_lines(void) {
    for (size_t i = 0; i < ml_analyzer_policy.lines_count; i++) {
        const struct ml_seccomp_line *line = &ml_analyzer_policy.lines[i];
        if (line->number >= 0) {
            printf("%u %s %s\n", line->line, line->name, line->exercise);
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--lines") == 0) {
        return list_lines();
    }
    if (argc < 3) {
        return UNKNOWN;
    }
    deadly_line = (uint32_t)strtoul(argv[1], NULL, 10);
    for (size_t i = 0; i < sizeof exercises / sizeof exercises[0]; i++) {
        if (strcmp(argv[2], exercises[i].name) == 0) {
            ml_confine(NULL, NULL);
            return exercises[i].do_it(argc > 3 ? argv[3] : "");
        }
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(argv[2], commands[i]->table.name) == 0) {
            return commands[i]->run(commands[i], argv + 3);
        }
    }
    return UNKNOWN;
}
