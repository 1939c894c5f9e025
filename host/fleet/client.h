/* Speaks to a collector, and to a webhook: one HTTP request at a time. Room: host. Context: one
 * thread; the loop runs meanwhile.
 *
 * One rule: tokens come out of files that nobody else may read, go into one header, and are in no
 * message. */
#ifndef MEMLOG_HOST_FLEET_CLIENT_H
#define MEMLOG_HOST_FLEET_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"

struct ev_loop;
struct ml_fleet_client;

/* A larger answer is refused: the question can be narrowed. */
enum { ML_FLEET_ANSWER_BYTES_MAX = 256 << 20, ML_FLEET_TOKEN_BYTES = 1024 };

/* Where it is, and who may ask there. Everything is borrowed for the client's life. */
struct ml_fleet_address {
    const char *url;   /* without a "/" at its end; a webhook's whole address */
    const char *ca;    /* NULL: the system's authorities */
    const char *token; /* "": none */
};

/* Read a token: the first line of a file, or the one that may read of a collector's own tokens.
 * Errors: ML_ENV_SYSTEM, ML_ENV_REFUSED (others may read the file), ML_ENV_MISSING, with an error
 * message that names the file. Owner: the caller wipes it. */
ML_NODISCARD enum ml_status ml_fleet_token_read(
    const char *path, char out_token[ML_FLEET_TOKEN_BYTES], struct ml_error_message *error
);

/* `stopped` becomes true when a signal ends the program: requests fail then. NULL: there is no
 * libcurl, or no memory, with an error message. */
struct ml_fleet_client *ml_fleet_client_new(
    struct ev_loop *loop,
    const struct ml_fleet_address *place,
    const bool *stopped,
    struct ml_error_message *error
);
void ml_fleet_client_free(struct ml_fleet_client *take_client);

/* GET `path`, from "/" on, with its arguments. The answer is NUL-terminated and belongs to the
 * client until its next request. Errors: ML_ENV_SYSTEM, with an error message that names the
 * collector, what it said and what to do. */
ML_NODISCARD enum ml_status ml_fleet_client_ask(
    struct ml_fleet_client *client,
    const char *path,
    const char **out_answer,
    size_t *out_count,
    struct ml_error_message *error
);

/* POST JSON to the place itself. `id` names the message, the same at each try. Errors: likewise. */
ML_NODISCARD enum ml_status ml_fleet_client_tell(
    struct ml_fleet_client *client, const char *json, const char *id, struct ml_error_message *error
);

/* Append "name=value" in a URL's letters to `path`, behind "?" or "&", where there is a value.
 * False: it is too long. */
bool ml_fleet_path_add(char *path, size_t path_bytes, const char *name, const char *value);

#endif
