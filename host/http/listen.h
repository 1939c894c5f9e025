/* The socket that an HTTP server listens at. Room: host. Context: the host's one thread. */
#ifndef MEMLOG_HOST_HTTP_LISTEN_H
#define MEMLOG_HOST_HTTP_LISTEN_H

#include "host/policy/page_place.h"

/* Make it; `place` gets the real port. A socket file that nobody listens at any more is replaced,
 * anything else at its path is not.
 *
 * Errors: ML_ENV_SYSTEM, ML_ENV_REFUSED, with an error message. Owner: close it; ml_page_unlisten.
 */
ML_NODISCARD enum ml_status
ml_page_listen(struct ml_page_place *place, int *out_fd, struct ml_error_message *error);

/* Remove its file, if it has one. */
void ml_page_unlisten(const struct ml_page_place *place);

#endif
