/* The files that the page is made of, embedded by host/page/web/assets.py. Room: host. Context:
 * constant. */
#ifndef MEMLOG_HOST_PAGE_ASSETS_H
#define MEMLOG_HOST_PAGE_ASSETS_H

#include "host/http/asset.h"

/* Ended by a NULL path. */
extern const struct ml_http_asset ml_page_assets[];

#endif
