/* How names of a contract become names in C. Room: mojom_like_idl (idlc). All texts are the pool's.
 *
 *   module memlog.client    memlog_client_          MEMLOG_CLIENT_
 *   struct ClientInfo       struct memlog_client_client_info
 *   enum Verdict.kRecord    MEMLOG_CLIENT_VERDICT_RECORD
 *   const kMaxPathBytes     MEMLOG_CLIENT_MAX_PATH_BYTES
 *   method AddClient        struct memlog_client_add_client_request, ..._reply */
#ifndef MEMLOG_MOJOM_LIKE_IDL_IDLC_NAMES_H
#define MEMLOG_MOJOM_LIKE_IDL_IDLC_NAMES_H

#include <stdbool.h>

#include "mojom_like_idl/idlc/syntax.h"

/* Is it written LikeThis, kLikeThis, like_this? */
bool names_is_camel(const char *name);
bool names_is_constant(const char *name);
bool names_is_snake(const char *name);

/* A word that C keeps for itself. */
bool names_is_reserved(const char *name);

/* LikeThis, kLikeThis -> like_this. */
const char *names_snake(struct pool *pool, const char *name);

/* like_this -> LIKE_THIS. */
const char *names_upper(struct pool *pool, const char *name);

/* The part of a generated name that stands for a type: "uint32", "string", "client_info",
 * "totals_array", "string_uint32_map". */
const char *names_type(struct pool *pool, const struct type *type);

#endif
