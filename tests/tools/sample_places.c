#include "tests/tools/sample_places.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Run a shell line made like printf's; abort when it fails. */
__attribute__((format(printf, 1, 2))) static void shell(const char *form, ...) {
    char line[8 * PATH_MAX];
    va_list arguments;

    va_start(arguments, form);
    vsnprintf(line, sizeof line, form, arguments);
    va_end(arguments);
    if (system(line) != 0) {
        fprintf(stderr, "failed: %s\n", line);
        abort();
    }
}

static void build_id_read(struct sample_places *places) {
    char line[PATH_MAX + 64];
    char hex[2 * sizeof places->build_id + 1] = "";
    FILE *pipe = NULL;

    snprintf(line, sizeof line, "readelf -n '%s' 2>/dev/null", places->path);
    pipe = popen(line, "r");
    while (pipe && fgets(line, sizeof line, pipe)) {
        sscanf(line, " Build ID: %128[0-9a-f]", hex);
    }
    if (!pipe || pclose(pipe) != 0 || !hex[0]) {
        abort();
    }
    for (size_t i = 0; hex[2 * i]; i++) {
        unsigned byte = 0;
        sscanf(hex + 2 * i, "%2x", &byte);
        places->build_id[places->build_id_bytes++] = (uint8_t)byte;
    }
}

static void places_read(struct sample_places *places) {
    FILE *pipe = popen(places->path, "r");

    while (pipe && places->places_count < SAMPLE_PLACES_MAX &&
           fscanf(
               pipe,
               "%15s %" SCNx64,
               places->places[places->places_count].name,
               &places->places[places->places_count].offset
           ) == 2) {
        places->places_count++;
    }
    if (!pipe || pclose(pipe) != 0) {
        abort();
    }
}

static void copies_make(struct sample_places *places) {
    char folder[] = "/tmp/memlog-test.XXXXXX";
    char *made = mkdtemp(folder);
    char hex[2 * sizeof places->build_id + 1] = "";

    if (!made) {
        abort();
    }
    snprintf(places->folder, sizeof places->folder, "%s", made);
    snprintf(places->linked_path, sizeof places->linked_path, "%s/linked", made);
    snprintf(places->stripped_path, sizeof places->stripped_path, "%s/stripped", made);
    snprintf(places->no_dwarf_path, sizeof places->no_dwarf_path, "%s/no-dwarf", made);
    snprintf(places->debug_root, sizeof places->debug_root, "%s/debug", made);
    for (size_t i = 0; i < places->build_id_bytes; i++) {
        snprintf(hex + 2 * i, 3, "%02x", places->build_id[i]);
    }
    shell("objcopy --strip-debug '%s' '%s'", places->path, places->no_dwarf_path);
    shell("objcopy --strip-all '%s' '%s'", places->path, places->stripped_path);
    shell("objcopy --only-keep-debug '%s' '%s/linked.debug'", places->path, made);
    shell(
        "cd '%s' && objcopy --strip-all --add-gnu-debuglink=linked.debug '%s' linked",
        made,
        places->path
    );
    shell(
        "mkdir -p '%s/.build-id/%.2s' && cp '%s/linked.debug' '%s/.build-id/%.2s/%s.debug'",
        places->debug_root,
        hex,
        made,
        places->debug_root,
        hex,
        hex + 2
    );
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
        shell("rm -rf '%s'", places->folder);
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
