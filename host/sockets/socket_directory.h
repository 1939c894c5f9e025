/* Where the processes of the run, and commands such as `memlog ps`, find this host. Room: host.
 * Context: the host's one thread.
 *
 * One rule: a socket whose name nobody guesses, in a folder that others can walk through (workers
 * that have dropped their user must still connect) but not list, for the processes: its name, in
 * the environment of the run's processes alone, is the secret that makes one of the run. A folder
 * of the user's own, closed to all others, for the commands; where somebody else has taken its name
 * there is another one, and nothing is ever looked for in one that is not the user's. Who connects
 * is told by the kernel. */
#ifndef MEMLOG_HOST_SOCKETS_SOCKET_DIRECTORY_H
#define MEMLOG_HOST_SOCKETS_SOCKET_DIRECTORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"

/* SO_PASSPIDFD of Linux 6.5, younger than some systems' headers. */
enum { ML_SO_PASSPIDFD = 76 };

enum { ML_SOCKET_DIRECTORY_PATH_BYTES = sizeof(((struct sockaddr_un *)0)->sun_path) };

struct ml_socket_directory {
    char folder[ML_SOCKET_DIRECTORY_PATH_BYTES];      /* "": none */
    char client_path[ML_SOCKET_DIRECTORY_PATH_BYTES]; /* of the control socket, in it */
    char alias_path[ML_SOCKET_DIRECTORY_PATH_BYTES];  /* "": none */
    char command_path[ML_SOCKET_DIRECTORY_PATH_BYTES];
    int client_fd;  /* listening; -1: none */
    int command_fd; /* listening; -1: none */
    pid_t owner;    /* who made them; a forked copy of the host removes nothing */
};

/* Make both sockets.
 *
 * Errors: ML_ENV_SYSTEM, ML_ENV_REFUSED (a path that is too long) with an error message.
 * Owner:  ml_socket_directory_close closes and removes them. */
ML_NODISCARD enum ml_status
ml_socket_directory_open(struct ml_socket_directory *out_directory, struct ml_error_message *error);
void ml_socket_directory_close(struct ml_socket_directory *directory);

/* Give `target` another name, in the folder of the control socket, without blanks and colons: the
 * loader takes no preload whose path has one. It goes when the directory is closed.
 *
 * Errors: ML_ENV_SYSTEM with an error message. */
ML_NODISCARD enum ml_status ml_socket_directory_alias(
    struct ml_socket_directory *directory, const char *target, struct ml_error_message *error
);

/* Other hosts of this user that run now, as far as their command sockets tell. */
uint32_t ml_socket_directory_others(void);

/* A path of a command socket. */
struct ml_command_socket {
    char path[ML_SOCKET_DIRECTORY_PATH_BYTES];
};

/* The command sockets of this user's hosts, the newest first; nobody may listen at them any more.
 *
 * Errors: 0: there are none, or no memory.
 * Owner:  free *out_sockets. */
size_t ml_socket_directory_list(struct ml_command_socket **out_sockets);

/* Connect to the command socket at `path`, or, when it is NULL, to that of the newest host of this
 * user; sockets that nobody listens at any more are removed on the way.
 *
 * Errors: ML_ENV_MISSING: none runs; ML_ENV_AGAIN: the one at `path` stands still and its queue is
 *         full; ML_ENV_SYSTEM; each with an error message. */
ML_NODISCARD enum ml_status
ml_socket_directory_connect(const char *path, int *out_fd, struct ml_error_message *error);

#endif
