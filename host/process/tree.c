#include "host/process/tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum ml_status ml_process_tree_init(struct ml_process_tree *tree, struct ml_error_message *error) {
    *tree = (struct ml_process_tree){.helpers = {0}};
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
        ml_error_set(error, "cannot follow daemons: %s", strerror(errno));
        return ML_ENV_SYSTEM;
    }
    return ML_OK;
}

void ml_process_tree_add_helper(struct ml_process_tree *tree, pid_t pid) {
    for (size_t i = 0; i < ML_TREE_HELPERS_MAX; i++) {
        if (tree->helpers[i] == 0) {
            tree->helpers[i] = pid;
            return;
        }
    }
}

static bool is_helper(const struct ml_process_tree *tree, pid_t pid) {
    for (size_t i = 0; i < ML_TREE_HELPERS_MAX; i++) {
        if (tree->helpers[i] == pid) {
            return true;
        }
    }
    return false;
}

bool ml_process_tree_next(struct ml_process_tree *tree, struct ml_process_tree_event *out_event) {
    int status = 0;
    pid_t pid = -1;
    do {
        pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
    } while (pid < 0 && errno == EINTR);
    if (pid <= 0) {
        return false;
    }
    *out_event = (struct ml_process_tree_event){.pid = pid, .helper = is_helper(tree, pid)};
    if (WIFSTOPPED(status)) {
        out_event->stopped = true;
        out_event->stop_signal = WSTOPSIG(status);
        return true;
    }
    out_event->ending = ml_ending_from_wait(status);
    for (size_t i = 0; i < ML_TREE_HELPERS_MAX; i++) {
        if (tree->helpers[i] == pid) {
            tree->helpers[i] = 0;
        }
    }
    return true;
}

struct list {
    const struct ml_process_tree *tree;
    pid_t *pids;
    size_t capacity;
    size_t count;
};

static void list_add(struct list *list, pid_t pid) {
    if (is_helper(list->tree, pid)) {
        return;
    }
    if (list->count < list->capacity) {
        list->pids[list->count] = pid;
    }
    list->count++;
}

/* The kernel's own list. False: this kernel keeps none. */
static bool list_children(struct list *list) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    long pid = 0;
    while (fscanf(file, "%ld", &pid) == 1) {
        list_add(list, (pid_t)pid);
    }
    (void)fclose(file);
    return true;
}

static void list_by_parent(struct list *list) {
    DIR *proc = opendir("/proc");
    if (proc == NULL) {
        return;
    }
    pid_t self = getpid();
    for (struct dirent *entry = readdir(proc); entry != NULL; entry = readdir(proc)) {
        pid_t pid = (pid_t)atol(entry->d_name); /* 0 for the entries that are no processes */
        if (pid > 0 && ml_process_parent(pid) == self) {
            list_add(list, pid);
        }
    }
    (void)closedir(proc);
}

size_t ml_process_tree_left(const struct ml_process_tree *tree, pid_t *out_pids, size_t capacity) {
    struct list list = {.tree = tree, .pids = out_pids, .capacity = capacity};
    if (!list_children(&list)) {
        list_by_parent(&list);
    }
    return list.count;
}
