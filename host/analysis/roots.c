#include "host/analysis/roots.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/descriptor.h"

/* The number of a namespace by the text of its link, "mnt:[4026531841]". 0: it may not be read. */
static uint64_t space_number(const char *link) {
    char text[64];
    uint64_t number = 0;
    const ssize_t count = readlink(link, text, sizeof(text) - 1);
    if (count <= 0) {
        return 0;
    }
    text[count] = '\0';
    return sscanf(text, "mnt:[%" SCNu64 "]", &number) == 1 ? number : 0;
}

static void close_space(struct ml_root_space *space) {
    ml_descriptor_close(&space->fd);
    space->number = 0;
}

static void free_root(struct ml_roots *roots, struct ml_root *root) {
    struct ml_root_space *space = root->space;
    free(root->path);
    *root = (struct ml_root){.id = 0};
    for (size_t i = 0; space != NULL && i < ML_ROOTS_MAX; i++) {
        if (roots->items[i].space == space) {
            return;
        }
    }
    if (space != NULL) {
        close_space(space);
    }
}

/* Make room: the oldest root whose processes have all ended goes. `of_space`: it must be the last
 * of a namespace. NULL: each has one that runs. */
static bool forget_oldest(struct ml_roots *roots, bool of_space) {
    struct ml_root *oldest = NULL;
    for (size_t i = 0; i < ML_ROOTS_MAX; i++) {
        struct ml_root *root = &roots->items[i];
        if (root->id != 0 && root->users == 0 && (!of_space || root->space != NULL) &&
            (oldest == NULL || root->id < oldest->id)) {
            oldest = root;
        }
    }
    if (oldest != NULL) {
        roots->left_out++;
        free_root(roots, oldest);
    }
    return oldest != NULL;
}

static struct ml_root_space *find_space(struct ml_roots *roots, uint64_t number) {
    for (size_t i = 0; i < ML_ROOT_SPACES_MAX; i++) {
        if (roots->spaces[i].number == number) {
            return &roots->spaces[i];
        }
    }
    return NULL;
}

/* Room for a namespace. NULL: there is none. */
static struct ml_root_space *empty_space(struct ml_roots *roots) {
    struct ml_root_space *space = find_space(roots, 0);
    while (space == NULL && forget_oldest(roots, true)) {
        space = find_space(roots, 0);
    }
    return space;
}

/* NULL: it may not be looked at, or there is no room. */
static struct ml_root_space *open_space(struct ml_roots *roots, pid_t pid, uint64_t number) {
    char path[64];
    struct ml_root_space *space = find_space(roots, number);
    if (space != NULL) {
        return space;
    }
    space = empty_space(roots);
    if (space == NULL) {
        roots->left_out++;
        return NULL;
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
    space->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (space->fd < 0) {
        return NULL;
    }
    space->number = number;
    return space;
}

static struct ml_root *
find_root(struct ml_roots *roots, const struct ml_root_space *space, const char *path) {
    for (size_t i = 0; i < ML_ROOTS_MAX; i++) {
        struct ml_root *root = &roots->items[i];
        if (root->id != 0 && root->space == space && strcmp(root->path, path) == 0) {
            return root;
        }
    }
    return NULL;
}

static struct ml_root *
add_root(struct ml_roots *roots, struct ml_root_space *space, const char *path) {
    struct ml_root *root = NULL;
    do {
        for (size_t i = 0; root == NULL && i < ML_ROOTS_MAX; i++) {
            root = roots->items[i].id == 0 ? &roots->items[i] : NULL;
        }
    } while (root == NULL && forget_oldest(roots, false));
    char *copy = root != NULL ? strdup(path) : NULL;
    if (copy == NULL) {
        roots->left_out++;
        return NULL;
    }
    *root = (struct ml_root){.id = ++roots->last_id, .space = space, .path = copy};
    return root;
}

uint32_t ml_roots_join(struct ml_roots *roots, pid_t pid) {
    char link[64];
    char path[PATH_MAX];
    struct ml_root_space *space = NULL;
    if (roots->own_space == 0) {
        roots->own_space = space_number("/proc/self/ns/mnt");
    }
    (void)snprintf(link, sizeof(link), "/proc/%d/ns/mnt", (int)pid);
    const uint64_t number = space_number(link);
    (void)snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
    const ssize_t count = readlink(link, path, sizeof(path) - 1);
    if (number == 0 || count <= 0 || path[0] != '/') {
        return 0;
    }
    path[count] = '\0';
    if (number == roots->own_space && strcmp(path, "/") == 0) {
        return 0;
    }
    if (number != roots->own_space) {
        space = open_space(roots, pid, number);
        if (space == NULL) {
            return 0;
        }
    }
    struct ml_root *root = find_root(roots, space, path);
    if (root == NULL) {
        root = add_root(roots, space, path);
    }
    if (root == NULL) {
        return 0;
    }
    if (root->users == 0) {
        root->id = ++roots->last_id; /* who would let go of it does not know of this one */
    }
    root->users++;
    return root->id;
}

static struct ml_root *root_of(struct ml_roots *roots, uint32_t id) {
    for (size_t i = 0; id != 0 && i < ML_ROOTS_MAX; i++) {
        if (roots->items[i].id == id) {
            return &roots->items[i];
        }
    }
    return NULL;
}

void ml_roots_leave(struct ml_roots *roots, uint32_t id) {
    struct ml_root *root = root_of(roots, id);
    if (root != NULL && root->users > 0) {
        root->users--;
    }
}

bool ml_roots_are_any(const struct ml_roots *roots) {
    for (size_t i = 0; i < ML_ROOTS_MAX; i++) {
        if (roots->items[i].id != 0) {
            return true;
        }
    }
    return false;
}

void ml_roots_unused(const struct ml_roots *roots, uint32_t out_ids[ML_ROOTS_MAX]) {
    for (size_t i = 0; i < ML_ROOTS_MAX; i++) {
        out_ids[i] = roots->items[i].users == 0 ? roots->items[i].id : 0;
    }
}

void ml_roots_forget(struct ml_roots *roots, const uint32_t ids[ML_ROOTS_MAX]) {
    for (size_t i = 0; i < ML_ROOTS_MAX; i++) {
        struct ml_root *root = root_of(roots, ids[i]);
        if (root != NULL && root->users == 0) {
            free_root(roots, root);
        }
    }
}

static int newer_first(const void *left, const void *right) {
    const struct ml_root *const *one = left;
    const struct ml_root *const *other = right;
    return ((*one)->id < (*other)->id) - ((*one)->id > (*other)->id);
}

int ml_roots_table(
    const struct ml_roots *roots, int out_space_fds[ML_ROOT_SPACES_MAX], size_t *out_spaces_count
) {
    const struct ml_root *order[ML_ROOTS_MAX];
    int numbers[ML_ROOT_SPACES_MAX];
    size_t count = 0;
    *out_spaces_count = 0;
    for (size_t i = 0; i < ML_ROOT_SPACES_MAX; i++) {
        numbers[i] = (int)*out_spaces_count;
        if (roots->spaces[i].number != 0) {
            out_space_fds[(*out_spaces_count)++] = roots->spaces[i].fd;
        }
    }
    for (size_t i = 0; i < ML_ROOTS_MAX; i++) {
        if (roots->items[i].id != 0) {
            order[count++] = &roots->items[i];
        }
    }
    qsort(order, count, sizeof(order[0]), newer_first);
    const int fd = memfd_create("memlog-roots", MFD_CLOEXEC);
    bool fine = fd >= 0;
    for (size_t i = 0; fine && i < count; i++) {
        const struct ml_root_space *space = order[i]->space;
        fine = dprintf(
                   fd, "%d %s", space != NULL ? numbers[space - roots->spaces] : -1, order[i]->path
               ) > 0 &&
               write(fd, "", 1) == 1;
    }
    if (fd >= 0 && !fine) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

void ml_roots_fini(struct ml_roots *roots) {
    for (size_t i = 0; i < ML_ROOTS_MAX; i++) {
        if (roots->items[i].id != 0) {
            free_root(roots, &roots->items[i]);
        }
    }
    for (size_t i = 0; i < ML_ROOT_SPACES_MAX; i++) {
        if (roots->spaces[i].number != 0) {
            close_space(&roots->spaces[i]);
        }
    }
}
