/* Uploads in parts, as S3 has them, until they are whole: a folder for each, a file for each part.
 * Room: host. Context: the loop's thread.
 *
 * One rule: a part that was answered is on the disk, and stays over restarts for a day. An upload
 * is its team's and its key's: nobody else finds it. */
#ifndef MEMLOG_HOST_COLLECT_FORMS_PARTS_H
#define MEMLOG_HOST_COLLECT_FORMS_PARTS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ML_PARTS_ID_BYTES = 33,
    ML_PARTS_NUMBER_MAX = 10000, /* S3's own */
    ML_PARTS_UPLOADS_MAX = 64,   /* of a team: no team uses up another's */
    ML_PARTS_LIFE_S = 86400
};

struct ml_parts {
    char folder[PATH_MAX / 2];
};

/* `folder` is made if it is missing. False: errno says why. */
bool ml_parts_open(struct ml_parts *parts, const char *folder);

/* Begin one. False: the disk refuses, or the team has too many (errno EDQUOT). */
bool ml_parts_begin(
    const struct ml_parts *parts, const char *team, const char *key, char out_id[ML_PARTS_ID_BYTES]
);

/* Whether there is such an upload of that team and key. */
bool ml_parts_is(const struct ml_parts *parts, const char *id, const char *team, const char *key);

/* Bytes of all parts but the one of that number. */
uint64_t ml_parts_bytes(const struct ml_parts *parts, const char *id, unsigned but_number);

/* Say of each upload whose it is and what its parts have, once the old ones are gone. */
void ml_parts_count(
    const struct ml_parts *parts,
    void (*take)(void *context, const char *team, uint64_t bytes),
    void *context
);

/* Where a part is to be renamed to, and its folder. */
void ml_parts_path(
    const struct ml_parts *parts, const char *id, unsigned number, char out_path[PATH_MAX]
);

/* A part for reading; -1: there is none. Owner: the caller. */
int ml_parts_fd(const struct ml_parts *parts, const char *id, unsigned number);

/* Remove it with its parts. */
void ml_parts_remove(const struct ml_parts *parts, const char *id);

/* The next part of a document that lists them: <Part> with <PartNumber> and <ETag>, in any order,
 * from *at on. False: there is none, or it is none. `out_etag` has no quotes. */
bool ml_parts_next(const char **at, unsigned *out_number, char *out_etag, size_t etag_bytes);

#endif
