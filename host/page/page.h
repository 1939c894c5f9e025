/* The live page and its HTTP interface, over a running engine or over dumps of ended runs. Room:
 * host. Context: the host's one thread.
 *
 * One rule: GET changes nothing. A request costs the profiled programs at most what a dump costs.
 * Only the analyzer reads a profile. */
#ifndef MEMLOG_HOST_PAGE_PAGE_H
#define MEMLOG_HOST_PAGE_PAGE_H

#include <sys/types.h>

#include "base/error_message.h"
#include "host/policy/page_place.h"
#include "host/process/launcher.h"
#include "ipc/wire/ml_status.h"

struct ev_loop;
struct ml_engine;
struct ml_page;

struct ml_page_setup {
    struct ev_loop *loop;
    struct ml_engine *engine; /* NULL: over the dumps in `folder` alone */
    const char *folder;       /* borrowed for the page's life; NULL: the engine's */
    const struct ml_page_place *place;
    const char *analyzer_path; /* borrowed likewise */
    const struct ml_inherited *inherited;
    /* A process that is no part of the program was started. May be NULL. */
    void (*on_helper)(void *context, pid_t pid);
    void *context;
};

/* Errors: ML_ENV_* with an error message. Owner: ml_page_close, then ml_page_free. */
ML_NODISCARD enum ml_status ml_page_open(
    const struct ml_page_setup *setup, struct ml_page **out_page, struct ml_error_message *error
);

/* Close the server. Requests that still wait get an answer. NULL is allowed. */
void ml_page_close(struct ml_page *page);

/* Call after ml_engine_close, which still calls the page back. NULL is allowed. */
void ml_page_free(struct ml_page *take_page);

/* What people open: the address with its token. */
const char *ml_page_url(const struct ml_page *page);

#endif
