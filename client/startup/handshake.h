/* The handshake with the host, and descriptors that stay ours. Room: client (private). Context: the
 * constructor and a forked child's first event: one thread, no lock held by us.
 *
 * One rule: inherited sockets are never read. The constructor makes its own connection and reads
 * its one answer there; a forked child only sends. */
#ifndef MEMLOG_CLIENT_STARTUP_HANDSHAKE_H
#define MEMLOG_CLIENT_STARTUP_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/staging.h"
#include "mojom_like_idl/contracts/heap_client_mojom.h"

enum {
    ML_FD_LOWEST = 900, /* our descriptors lie in [900, 1023], or just under a lower limit */
    ML_FD_HIGHEST = 1023,
    ML_HANDSHAKE_WAIT_MS = 2000 /* a host that takes longer for a message counts as dead */
};

/* The result of a handshake; missing descriptors are -1. */
struct ml_handshake {
    struct memlog_client_params params;
    int pipe_fd;    /* write end */
    int staging_fd; /* memfd, sealed */
    int control_fd; /* memfd, sealed */
    int lease_fd;   /* memfd, sealed; a forked child has its parent's mapping */
    bool told;      /* where there is no handshake: the host knows that, and why */
};

/* Connect; *out_socket_fd has a high number already, unless the program has no other descriptor
 * left. False: no host there, or none that accepts within ML_HANDSHAKE_WAIT_MS. */
bool ml_handshake_connect(const char *path, int *out_socket_fd);

/* The same by a connection that was left to this image (client/startup/lending.h). It stays open.
 */
bool ml_handshake_connect_by(int left_fd, int *out_socket_fd);

/* Make a connection one that stays: it gets a high number, unless the program has no other
 * descriptor left. Its number from now on. */
int ml_handshake_lift(int take_fd);

/* Make both ends of a connection: for a host that can take one of them from outside, and has then
 * to see that sends end (SO_SNDTIMEO). */
bool ml_handshake_pair(int out_pair[2]);

enum ml_answer {
    ML_ANSWER_GOOD = 0,
    ML_ANSWER_NONE,    /* in time: the host has no time, or is no more */
    ML_ANSWER_UNUSABLE /* a wrong one, or too few free descriptors for it (the host is told) */
};

/* Send hello and wait for the answer. Where that is not good, nothing is open. */
enum ml_answer ml_handshake_ask(int socket_fd, struct ml_handshake *out_handshake);

/* Where this process keeps its arguments, cut to what a message takes; programs write their titles
 * there. Empty if /proc does not tell. For the start of the process: it opens a file. */
struct ml_bytes ml_handshake_title(void);

/* A forked child: make its pipe, staging and control page (a copy of `control`, enabled as that
 * says), and send them. If `patient`, it waits for room in the socket, within ML_HANDSHAKE_WAIT_MS.
 * False: it failed; then nothing is open, and out_handshake->told says whether the host was
 * told. */
bool ml_handshake_forked(
    int socket_fd,
    bool patient,
    uint64_t fork_serial,
    uint32_t slots,
    const struct ml_control_page *control,
    struct ml_bytes title,
    struct ml_handshake *out_handshake
);

/* Tell the host about a program image that will run unrecorded. `patient` as above. False: the host
 * does not know. */
bool ml_handshake_not_profiled(
    int socket_fd, bool patient, enum memlog_client_not_profiled_reason reason, const char *path
);

/* End a connection: wait until the host has read everything and closes its end, or for
 * ML_HANDSHAKE_WAIT_MS. Closes it. */
void ml_handshake_finish(int socket_fd);

/* Tell the host that this process, which said hello or was forked by one that did, runs unrecorded:
 * else it would look like one that never allocates. Never waits. False: the host does not know. */
bool ml_handshake_cannot_use(int socket_fd, enum memlog_client_not_profiled_reason reason);

/* The same where there is no room for our memory: by its limits, or as its kernel lacks what that
 * needs. */
bool ml_handshake_no_room(int socket_fd);

/* Ask the host for a dump, in the program's words, which are cut to what a message takes. Never
 * waits. False: the socket has no room. */
bool ml_handshake_ask_dump(
    int socket_fd, struct ml_bytes role, struct ml_bytes reason, uint32_t passed_over
);

#endif
