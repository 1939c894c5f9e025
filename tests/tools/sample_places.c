#include "tests/tools/sample_places.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A program that runs without a shell, as paths may hold any sign. */
struct running {
    pid_t pid;
    FILE *output;
};

enum { WORDS_MAX = 8 };

/* Start it in that folder (NULL: in this one); abort when there is none. */
static struct running start(const char *folder, const char *const words[]) {
    char *copies[WORDS_MAX] = {NULL};
    int ends[2] = {-1, -1};
    struct running running = {0};

    if (pipe(ends) != 0) {
        abort();
    }
    running.pid = fork();
    if (running.pid == 0) {
        for (size_t i = 0; words[i] && i + 1 < WORDS_MAX; i++) {
            copies[i] = strdup(words[i]);
        }
        if (dup2(ends[1], STDOUT_FILENO) >= 0 && (!folder || chdir(folder) == 0)) {
            close(ends[0]);
            close(ends[1]);
            execvp(copies[0], copies);
        }
        _exit(127);
    }
    close(ends[1]);
    running.output = fdopen(ends[0], "r");
    if (running.pid < 0 || !running.output) {
        abort();
    }
    return running;
}

static void finish(struct running running, const char *name) {
    int status = 1;

    fclose(running.output);
    if (waitpid(running.pid, &status, 0) != running.pid || status != 0) {
        fprintf(stderr, "failed: %s\n", name);
        abort();
    }
}

#define RUN_IN(folder_, ...)                                                                       \
    do {                                                                                           \
        const char *const words_[] = {__VA_ARGS__, NULL};                                          \
        finish(start(folder_, words_), words_[0]);                                                 \
    } while (0)

static void build_id_read(struct sample_places *places) {
    char line[PATH_MAX + 64];
    char hex[2 * sizeof places->build_id + 1] = "";
    const struct running readelf =
        start(NULL, (const char *const[]){"readelf", "-n", places->path, NULL});

    while (fgets(line, sizeof line, readelf.output)) {
        sscanf(line, " Build ID: %128[0-9a-f]", hex);
    }
    finish(readelf, "readelf");
    if (!hex[0]) {
        abort();
    }
    for (size_t i = 0; hex[2 * i]; i++) {
        unsigned byte = 0;
        sscanf(hex + 2 * i, "%2x", &byte);
        places->build_id[places->build_id_bytes++] = (uint8_t)byte;
    }
}

static void places_read(struct sample_places *places) {
    const struct running program = start(NULL, (const char *const[]){places->path, NULL});

    while (places->places_count < SAMPLE_PLACES_MAX &&
           fscanf(
               program.output,
               "%15s %" SCNx64,
               places->places[places->places_count].name,
               &places->places[places->places_count].offset
           ) == 2) {
        places->places_count++;
    }
    finish(program, places->path);
}

/* DEBUG_ROOT/.build-id/xx/yyy.debug, where debuggers look for it. */
static void debug_file_make(const struct sample_places *places) {
    char hex[2 * sizeof places->build_id + 1] = "";
    char path[PATH_MAX];
    int count = 0;

    for (size_t i = 0; i < places->build_id_bytes; i++) {
        snprintf(hex + 2 * i, 3, "%02x", places->build_id[i]);
    }
    count = snprintf(path, sizeof path, "%.4000s/.build-id/%.2s", places->debug_root, hex);
    RUN_IN(places->folder, "mkdir", "-p", path);
    snprintf(path + count, sizeof path - (size_t)count, "/%.70s.debug", hex + 2);
    RUN_IN(places->folder, "cp", "linked.debug", path);
}

static void copies_make(struct sample_places *places) {
    char folder[] = "/tmp/memlog-test.XXXXXX";
    char *made = mkdtemp(folder);

    if (!made) {
        abort();
    }
    snprintf(places->folder, sizeof places->folder, "%s", made);
    snprintf(places->linked_path, sizeof places->linked_path, "%s/linked", made);
    snprintf(places->stripped_path, sizeof places->stripped_path, "%s/stripped", made);
    snprintf(places->no_dwarf_path, sizeof places->no_dwarf_path, "%s/no-dwarf", made);
    snprintf(places->debug_root, sizeof places->debug_root, "%s/debug", made);
    RUN_IN(made, "objcopy", "--strip-debug", places->path, places->no_dwarf_path);
    RUN_IN(made, "objcopy", "--strip-all", places->path, places->stripped_path);
    RUN_IN(made, "objcopy", "--only-keep-debug", places->path, "linked.debug");
    RUN_IN(
        made, "objcopy", "--strip-all", "--add-gnu-debuglink=linked.debug", places->path, "linked"
    );
    debug_file_make(places);
}

void sample_places_find(struct sample_places *out_places, const char *program) {
    char self[PATH_MAX] = "";
    ssize_t count = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = count > 0 ? strrchr(self, '/') : NULL;

    memset(out_places, 0, sizeof *out_places);
    if (!slash) {
        abort();
    }
    *slash = '\0';
    snprintf(out_places->path, sizeof out_places->path, "%.4000s/%.80s", self, program);
    places_read(out_places);
    build_id_read(out_places);
    copies_make(out_places);
}

void sample_places_clean(const struct sample_places *places) {
    if (strncmp(places->folder, "/tmp/memlog-test.", 17) == 0) {
        RUN_IN("/", "rm", "-rf", places->folder);
    }
}

uint64_t sample_place(const struct sample_places *places, const char *name) {
    for (size_t i = 0; i < places->places_count; i++) {
        if (strcmp(places->places[i].name, name) == 0) {
            return places->places[i].offset;
        }
    }
    abort();
}
