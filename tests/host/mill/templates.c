/* Programs of a fleet: read from templates, or made up. Room: tests. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/mill/dice.h"
#include "tests/host/mill/fleet.h"

enum { FIELDS_MAX = 8 };

static struct ml_string kept(const char *text) {
    char *copy = text[0] != '\0' ? strdup(text) : NULL;
    return copy != NULL ? ml_string_of(copy) : ml_string_of("");
}

/* One more at the end of a list. NULL: no memory. */
static void *more(void **list, size_t *count, size_t size) {
    void *grown = reallocarray(*list, *count + 1, size);
    if (grown == NULL) {
        return NULL;
    }
    *list = grown;
    (*count)++;
    return (char *)grown + (*count - 1) * size;
}
#define MORE(list, count) more((void **)&(list), &(count), sizeof(*(list)))

static int by_live(const void *a, const void *b) {
    const uint64_t one = ((const struct memlog_fleet_row *)a)->figures.live_bytes;
    const uint64_t other = ((const struct memlog_fleet_row *)b)->figures.live_bytes;
    return one > other ? -1 : one < other;
}

/* What each row of a program says beside its figures. */
static struct memlog_fleet_row
row_of(const struct fleet_program *program, uint32_t stack, struct memlog_fleet_figures figures) {
    return (struct memlog_fleet_row
    ){.role = ml_string_of("main"),
      .process = ml_string_of(program->name),
      .heap = ml_string_of("malloc"),
      .type = ml_string_of(""),
      .stack = stack,
      .figures = figures};
}

static bool add_frame(struct fleet_program *program, char *const *fields) {
    struct memlog_fleet_frame *frame = MORE(program->frames, program->frames_count);
    if (frame == NULL) {
        return false;
    }
    *frame = (struct memlog_fleet_frame
    ){.function = kept(fields[1]),
      .module = kept(fields[2]),
      .build_id = kept(fields[3]),
      .offset = strtoull(fields[4], NULL, 10)};
    return true;
}

static bool add_stack(struct fleet_program *program, uint32_t parent, uint32_t frame) {
    if (frame == 0 || frame > program->frames_count || parent > program->stacks_count) {
        return false;
    }
    struct memlog_fleet_stack *stack = MORE(program->stacks, program->stacks_count);
    if (stack == NULL) {
        return false;
    }
    *stack = (struct memlog_fleet_stack){.parent = parent, .frame = frame};
    return true;
}

static bool
add_row(struct fleet_program *program, uint32_t stack, struct memlog_fleet_figures figures) {
    if (stack > program->stacks_count) {
        return false;
    }
    struct memlog_fleet_row *row = MORE(program->rows, program->rows_count);
    if (row == NULL) {
        return false;
    }
    *row = row_of(program, stack, figures);
    return true;
}

/* False: it is no line of a template. */
static bool take_line(struct fleet_program *program, char *line) {
    char *fields[FIELDS_MAX];
    uint64_t numbers[FIELDS_MAX] = {0};
    size_t count = 0;
    line[strcspn(line, "\n")] = '\0';
    while (line != NULL && count < FIELDS_MAX) {
        fields[count] = strsep(&line, "\t");
        numbers[count] = strtoull(fields[count], NULL, 10);
        count++;
    }
    if (count == 3 && strcmp(fields[0], "program") == 0 && program->name == NULL) {
        program->name = strdup(fields[1]);
        program->module = strdup(fields[2]);
        return program->name != NULL && program->module != NULL;
    }
    if (program->name == NULL) {
        return false;
    }
    if (count == 5 && strcmp(fields[0], "frame") == 0) {
        return add_frame(program, fields);
    }
    if (count == 3 && strcmp(fields[0], "stack") == 0) {
        return add_stack(program, (uint32_t)numbers[1], (uint32_t)numbers[2]);
    }
    return count == FIELDS_MAX && strcmp(fields[0], "row") == 0 &&
           add_row(
               program,
               (uint32_t)numbers[1],
               (struct memlog_fleet_figures
               ){numbers[2], numbers[3], numbers[4], numbers[5], numbers[6], numbers[7]}
           );
}

static bool read_one(struct fleet_program *program, const char *path) {
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0;
    bool done = file != NULL;
    while (done && getline(&line, &capacity, file) > 0) {
        done = take_line(program, line);
        errno = done ? 0 : EINVAL;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    free(line);
    if (done && program->rows_count == 0) {
        errno = EINVAL;
        return false;
    }
    qsort(program->rows, program->rows_count, sizeof(*program->rows), by_live);
    return done;
}

static int is_template(const struct dirent *entry) {
    const char *dot = strrchr(entry->d_name, '.');
    return dot != NULL && strcmp(dot, ".template") == 0;
}

bool fleet_read(struct fleet *fleet, const char *folder) {
    struct dirent **names = NULL;
    const int count = scandir(folder, &names, is_template, alphasort);
    bool done = count > 0;
    for (int i = 0; i < count; i++) {
        char *path = NULL;
        done = done && fleet->count < FLEET_PROGRAMS_MAX &&
               asprintf(&path, "%s/%s", folder, names[i]->d_name) > 0 &&
               read_one(&fleet->programs[fleet->count++], path);
        free(path);
        free(names[i]);
    }
    free((void *)names);
    if (count == 0) {
        errno = ENOENT;
    }
    return done;
}

/* ---- made up */

static bool pretend_frame(struct fleet_program *program, size_t number) {
    enum { WITHOUT_NAME = 7 }; /* each seventh has a place alone */
    char function[FLEET_WORD_BYTES] = "";
    char offset[FLEET_WORD_BYTES] = "0";
    const bool has_name = number % WITHOUT_NAME != WITHOUT_NAME - 1;
    (void)snprintf(
        has_name ? function : offset, FLEET_WORD_BYTES, has_name ? "function_%zu" : "%zu000", number
    );
    return add_frame(
        program,
        (char *[]){"frame", function, has_name ? "" : program->module, has_name ? "" : "0", offset}
    );
}

bool fleet_pretend(struct fleet *fleet, uint64_t seed, size_t programs, size_t stacks) {
    const double spread = 1.5; /* of the stacks' sizes: most of a heap lies in few of them */
    const double mean = 100000;
    bool done = programs > 0 && programs <= FLEET_PROGRAMS_MAX && stacks > 0;
    for (size_t p = 0; done && p < programs; p++) {
        struct fleet_program *program = &fleet->programs[fleet->count++];
        uint64_t dice = dice_mix(seed + p);
        done = asprintf(&program->name, "program-%zu", p) > 0 &&
               asprintf(&program->module, "module-%zu", p) > 0;
        for (size_t i = 0; done && i < stacks; i++) {
            const uint64_t live = (uint64_t)(mean * dice_factor(&dice, spread)) + 1024;
            const uint32_t parent = (uint32_t)(dice_next(&dice) % (i + 1));
            const struct memlog_fleet_figures figures = {
                live, live / 100, live + live / 2, live / 50, live * 20, live / 5};
            done = pretend_frame(program, i) && add_stack(program, parent, (uint32_t)i + 1) &&
                   add_row(program, (uint32_t)i + 1, figures);
        }
        qsort(program->rows, program->rows_count, sizeof(*program->rows), by_live);
    }
    return done;
}

static void release(struct ml_string string) {
    if (string.count_bytes > 0) {
        free((void *)(uintptr_t)string.data);
    }
}

void fleet_fini(struct fleet *fleet) {
    for (size_t i = 0; i < fleet->count; i++) {
        struct fleet_program *program = &fleet->programs[i];
        for (size_t k = 0; k < program->frames_count; k++) {
            release(program->frames[k].function);
            release(program->frames[k].module);
            release(program->frames[k].build_id);
        }
        free(program->frames);
        free(program->stacks);
        free(program->rows);
        free(program->name);
        free(program->module);
    }
    fleet->count = 0;
}
