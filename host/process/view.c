#include "host/process/view.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No mapping has come yet. */
#define NO_MAPPING UINT32_MAX

/* ---- threads */

static int order_threads(const void *left, const void *right) {
    const struct ml_process_thread *a = left;
    const struct ml_process_thread *b = right;
    return (a->tid > b->tid) - (a->tid < b->tid);
}

static void read_thread(struct ml_process_view *view, pid_t pid, const char *number) {
    char path[64];
    struct ml_process_thread *thread = &view->threads[view->threads_count];
    char *end = NULL;
    const unsigned long tid = strtoul(number, &end, 10);
    if (end == number || *end != '\0' || tid > INT32_MAX) {
        return; /* "." and ".." */
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%lu/comm", (int)pid, tid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return;
    }
    if (fgets(thread->name, sizeof(thread->name), file) != NULL) {
        thread->name[strcspn(thread->name, "\n")] = '\0';
        thread->tid = (uint32_t)tid;
        view->threads_count++;
    }
    (void)fclose(file);
}

static void read_threads(struct ml_process_view *view, pid_t pid) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(folder);
         entry != NULL && view->threads_count < ML_PROCESS_VIEW_THREADS;
         entry = readdir(folder)) {
        read_thread(view, pid, entry->d_name);
    }
    (void)closedir(folder);
    qsort(view->threads, view->threads_count, sizeof(*view->threads), order_threads);
}

/* ---- mappings */

/* The mapping of that name; a new one if there is none and room. */
static uint32_t mapping_of(struct ml_process_view *view, const char *name, size_t name_bytes) {
    static const char others[] = "[others]";
    for (uint32_t i = view->mappings_count; i > 0; i--) { /* neighbours are of one file, mostly */
        const char *known = view->mappings[i - 1].name;
        if (strncmp(known, name, name_bytes) == 0 && known[name_bytes] == '\0') {
            return i - 1;
        }
    }
    /* The last place is theirs. */
    if (view->mappings_count >= ML_PROCESS_VIEW_MAPPINGS - 1 &&
        (name_bytes != sizeof(others) - 1 || memcmp(name, others, name_bytes) != 0)) {
        return mapping_of(view, others, sizeof(others) - 1);
    }
    char *copy = view->mappings_count < ML_PROCESS_VIEW_MAPPINGS ? strndup(name, name_bytes) : NULL;
    if (copy == NULL) {
        return NO_MAPPING;
    }
    view->mappings[view->mappings_count] = (struct ml_process_mapping){.name = copy};
    return view->mappings_count++;
}

/* Whether the line begins a mapping: "START-END FLAGS OFFSET DEVICE INODE    NAME", in hex but for
 * the inode; a key's line begins with a capital letter, and no hex number here has one. */
static bool is_mapping(const char *line) {
    return line[strspn(line, "0123456789abcdef")] == '-' && line[0] != '-';
}

/* Whether a file of that name is glibc's libc: "libc.so.6", before 2.34 also "libc-2.31.so". */
static bool is_libc(const char *name, size_t name_bytes) {
    static const char now[] = "/libc.so.6";
    static const char before[] = "/libc-2.";
    const char *slash = memrchr(name, '/', name_bytes);
    const size_t count = slash != NULL ? name_bytes - (size_t)(slash - name) : 0;
    return (count == sizeof(now) - 1 && memcmp(slash, now, count) == 0) ||
           (count > sizeof(before) - 1 && memcmp(slash, before, sizeof(before) - 1) == 0);
}

/* "START-END r-xp ...": programs that only read the file do not execute it. */
static bool is_executable(const char *line) {
    const char *flags = strchr(line, ' ');
    return flags != NULL && strnlen(flags, 4) == 4 && flags[3] == 'x';
}

static void begin_mapping(struct ml_process_view *view, const char *line) {
    enum { FIELDS_BEFORE_NAME = 5, NAME_MAX_BYTES = 1024 };
    static const char nameless[] = "[anon]";
    const bool executable = is_executable(line);
    for (int i = 0; i < FIELDS_BEFORE_NAME; i++) {
        line += strcspn(line, " \n");
        line += strspn(line, " ");
    }
    size_t count = strcspn(line, "\n");
    if (count == 0) {
        line = nameless;
        count = sizeof(nameless) - 1;
    }
    view->libcs_count += executable && is_libc(line, count) ? 1 : 0;
    view->current = mapping_of(view, line, count < NAME_MAX_BYTES ? count : NAME_MAX_BYTES);
}

void ml_process_view_line(struct ml_process_view *view, const char *line) {
    static const char *const keys[ML_MAPPING_FIGURES] = {
        [ML_MAPPING_SIZE] = "Size:",
        [ML_MAPPING_PRIVATE_CLEAN] = "Private_Clean:",
        [ML_MAPPING_PRIVATE_DIRTY] = "Private_Dirty:",
        [ML_MAPPING_SHARED_CLEAN] = "Shared_Clean:",
        [ML_MAPPING_SHARED_DIRTY] = "Shared_Dirty:",
        [ML_MAPPING_PROPORTIONAL] = "Pss:",
        [ML_MAPPING_SWAP] = "Swap:",
    };
    if (view->mappings == NULL) {
        return;
    }
    if (is_mapping(line)) {
        begin_mapping(view, line);
        return;
    }
    for (int i = 0; i < ML_MAPPING_FIGURES && view->current < view->mappings_count; i++) {
        const size_t key_bytes = strlen(keys[i]);
        uint64_t kib = 0;
        if (strncmp(line, keys[i], key_bytes) == 0 &&
            sscanf(line + key_bytes, "%" SCNu64, &kib) == 1) {
            view->mappings[view->current].figures_kb[i] += kib;
            return;
        }
    }
}

static void read_mappings(struct ml_process_view *view, pid_t pid) {
    char path[64];
    char *line = NULL;
    size_t room = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return;
    }
    while (getline(&line, &room, file) > 0) {
        ml_process_view_line(view, line);
    }
    free(line);
    (void)fclose(file);
}

void ml_process_view_init(struct ml_process_view *view, pid_t pid) {
    *view = (struct ml_process_view){
        .threads = calloc(ML_PROCESS_VIEW_THREADS, sizeof(*view->threads)),
        .mappings = calloc(ML_PROCESS_VIEW_MAPPINGS, sizeof(*view->mappings)),
        .current = NO_MAPPING,
    };
    if (view->threads == NULL || view->mappings == NULL) {
        ml_process_view_fini(view);
        return;
    }
    if (pid > 0) {
        read_threads(view, pid);
        read_mappings(view, pid);
    }
}

void ml_process_view_fini(struct ml_process_view *view) {
    for (uint32_t i = 0; view->mappings != NULL && i < view->mappings_count; i++) {
        free(view->mappings[i].name);
    }
    free(view->mappings);
    free(view->threads);
    *view = (struct ml_process_view){.current = NO_MAPPING};
}
