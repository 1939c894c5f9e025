#include "host/process/threads.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int order_threads(const void *left, const void *right) {
    const struct ml_process_thread *a = left;
    const struct ml_process_thread *b = right;
    return (a->tid > b->tid) - (a->tid < b->tid);
}

static void read_thread(struct ml_process_threads *threads, pid_t pid, const char *number) {
    char path[64];
    struct ml_process_thread *thread = &threads->items[threads->count];
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
        threads->count++;
    }
    (void)fclose(file);
}

void ml_process_threads_init(struct ml_process_threads *threads, pid_t pid) {
    char path[64];
    *threads = (struct ml_process_threads){0};
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return;
    }
    threads->items = calloc(ML_PROCESS_THREADS_MAX, sizeof(*threads->items));
    for (const struct dirent *entry = readdir(folder);
         threads->items != NULL && entry != NULL && threads->count < ML_PROCESS_THREADS_MAX;
         entry = readdir(folder)) {
        read_thread(threads, pid, entry->d_name);
    }
    (void)closedir(folder);
    if (threads->items != NULL) {
        qsort(threads->items, threads->count, sizeof(*threads->items), order_threads);
    }
}

void ml_process_threads_fini(struct ml_process_threads *threads) {
    free(threads->items);
    *threads = (struct ml_process_threads){0};
}
