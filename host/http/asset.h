/* Files of a page that are part of the program, embedded by host/page/web/assets.py. Room: host.
 * Context: constant.
 *
 * One rule: what is asked for is looked up by its whole path among those that were built in; no
 * file is opened. */
#ifndef MEMLOG_HOST_HTTP_ASSET_H
#define MEMLOG_HOST_HTTP_ASSET_H

#include <stddef.h>

struct ml_http_request;

struct ml_http_asset {
    const char *path; /* as a browser asks for it */
    const char *content_type;
    const char *bytes;
    size_t count;
};

/* The one of that path in a table that a NULL path ends. NULL: there is none. */
const struct ml_http_asset *ml_http_asset_find(const struct ml_http_asset *table, const char *path);

/* Answer with it; `cookie`: Set-Cookie, NULL: none. */
void ml_http_asset_answer(
    struct ml_http_request *request, const struct ml_http_asset *asset, const char *cookie
);

#endif
