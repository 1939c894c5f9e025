/* The files that the page is made of, embedded by host/page/web/assets.py. Room: host. Context:
 * constant. */
#ifndef MEMLOG_HOST_PAGE_ASSETS_H
#define MEMLOG_HOST_PAGE_ASSETS_H

#include <stddef.h>

struct ml_page_asset {
    const char *path; /* as a browser asks for it */
    const char *content_type;
    const char *bytes;
    size_t count;
};

/* Ended by a NULL path. */
extern const struct ml_page_asset ml_page_assets[];

#endif
