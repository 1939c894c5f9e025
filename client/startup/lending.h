/* The connection to the host, left open for a program that does not see the host's socket: its
 * sandbox mounts another folder over /tmp, or has a root of its own. Room: client (private).
 * Context: before an exec, also between vfork and exec: stack memory and system calls alone; then
 * the constructor of the new image.
 *
 * One rule: nothing is ever read on a connection that was left. The new image sends one message
 * on it, by which it gets one of its own, and closes it before the program's first instruction. */
#ifndef MEMLOG_CLIENT_STARTUP_LENDING_H
#define MEMLOG_CLIENT_STARTUP_LENDING_H

#include <stdbool.h>
#include <stddef.h>

#include "client/state/process.h"

enum {
    ML_LENDING_NOT_NEEDED = -1, /* the new program sees the host's socket */
    ML_LENDING_IMPOSSIBLE = -2,
    /* "FD.DEVICE.INODE:" with a NUL */
    ML_LENDING_WORD_BYTES = 64
};

/* What to leave to a program that is started from here: the number of the connection, or one of the
 * above. */
int ml_lending_find(const char *socket_path);

/* `fd`, from ml_lending_find, stays open in the exec that follows; a negative one: nothing of ours
 * does. That exec has failed. */
void ml_lending_begin(int fd);
void ml_lending_end(int fd);

/* The same for programs that libc starts by itself, as long as there is a call that does so. Not
 * between vfork and exec. */
void ml_lending_to_shells(int fd, bool are_started);

/* The word in front of the socket's path that tells the new image. "" where nothing is left.
 * Returns its length. */
size_t ml_lending_word(int fd, char out_word[ML_LENDING_WORD_BYTES]);

/* The path behind such a word, or `value` where there is none. *out_fd: the connection that was
 * left, if it is still the file that it was; -1: there is none. */
const char *ml_lending_read(const char *value, int *out_fd);

#endif
