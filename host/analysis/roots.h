/* The roots of processes that see other files than the host does: containers, sandboxes, chroots.
 * Room: host. Context: the host's one thread.
 *
 * One rule: a program finds its mounts as free as without memlog. Of another mount namespace the
 * handle is held, so that its mounts stay joined, and no mount of it: whoever unmounts or pivots
 * there finds nothing busy. Of the host's own namespace nothing is held: there a root is a path. No
 * file is opened here: that may hang, and is for memlog-analyzer's helper, which may be ended. */
#ifndef MEMLOG_HOST_ANALYSIS_ROOTS_H
#define MEMLOG_HOST_ANALYSIS_ROOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A namespace takes a descriptor. A run that makes more of them has the latest. */
enum { ML_ROOT_SPACES_MAX = 32, ML_ROOTS_MAX = 128 };

/* A mount namespace that is not the host's. */
struct ml_root_space {
    uint64_t number; /* the kernel's; 0: here is none */
    int fd;
};

struct ml_root {
    uint32_t id;                 /* 0: here is none */
    uint32_t users;              /* processes that run */
    struct ml_root_space *space; /* NULL: the host's own namespace */
    char *path;                  /* from the namespace's top */
};

/* All zero to begin with. */
struct ml_roots {
    struct ml_root_space spaces[ML_ROOT_SPACES_MAX];
    struct ml_root items[ML_ROOTS_MAX];
    uint32_t last_id;
    uint64_t own_space; /* the host's namespace; 0: not looked at */
    uint64_t left_out;  /* roots for which there was no room */
};

/* Look at a process that begins. Answers its root's number for ml_roots_leave; 0: it sees what the
 * host sees, may not be looked at, or there is no room. */
uint32_t ml_roots_join(struct ml_roots *roots, pid_t pid);

/* The process has ended. Its root stays until ml_roots_forget. */
void ml_roots_leave(struct ml_roots *roots, uint32_t id);

/* Whether there is any. */
bool ml_roots_are_any(const struct ml_roots *roots);

/* The numbers of those that no process has; 0: none stands here. */
void ml_roots_unused(const struct ml_roots *roots, uint32_t out_ids[ML_ROOTS_MAX]);

/* Let go of these, once the names of their files are kept, but for those that a process has
 * again. */
void ml_roots_forget(struct ml_roots *roots, const uint32_t ids[ML_ROOTS_MAX]);

/* What tools/analyzer/helpers/process_files.h reads: of each root, the newest first, the number of
 * its namespace among out_space_fds (-1: the host's), a blank, its path, NUL. A descriptor of
 * memory; -1: there is none. Owner: the caller; the namespaces are borrowed. */
int ml_roots_table(
    const struct ml_roots *roots, int out_space_fds[ML_ROOT_SPACES_MAX], size_t *out_spaces_count
);

void ml_roots_fini(struct ml_roots *roots);

#endif
