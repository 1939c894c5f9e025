/* The collector's page: files without anything of a team in them. Room: host. Context: the loop's
 * thread.
 *
 * One rule: whoever comes may have these files. What is shown in them the page asks for itself,
 * with the token of whoever looks at it. */
#ifndef MEMLOG_HOST_COLLECT_SERVER_PAGES_H
#define MEMLOG_HOST_COLLECT_SERVER_PAGES_H

#include <stdbool.h>

#include "host/http/asset.h"

/* host/collect/web, ended by a NULL path. */
extern const struct ml_http_asset ml_collect_assets[];

/* False: its path is none of the page's, and nothing was answered. */
bool ml_collect_pages_answer(struct ml_http_request *request);

#endif
