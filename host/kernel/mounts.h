/* What a path of another process leads through. Room: host. Context: any; only the kernel is asked,
 * and no file system.
 *
 * One rule: a file system in user space (FUSE) of another mount namespace or root is never asked.
 * It need not answer, and whoever asks it waits, for as long as it likes. */
#ifndef MEMLOG_HOST_KERNEL_MOUNTS_H
#define MEMLOG_HOST_KERNEL_MOUNTS_H

#include <stdbool.h>
#include <sys/types.h>

/* Its root or its mounts are other ones than ours: a path of ours is not its. */
bool ml_mounts_are_foreign(pid_t pid);

/* Whether that path of its, or what it lies in, is of a file system in user space. `path` is whole,
 * as its root has it, and links in it are not followed. True also where the kernel does not say. */
bool ml_mounts_are_in_user_space(pid_t pid, const char *path);

#endif
