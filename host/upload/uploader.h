/* Sends pruned dumps: the analyzer writes each body, the spool keeps it, and libcurl sends one at a
 * time on the host's loop. Room: host. Context: the host's one thread.
 *
 * One rule: only what ml_uploader_submit was given leaves, and only to the address that --upload
 * named then. The host sends the body as it is and reads no byte of it. */
#ifndef MEMLOG_HOST_UPLOAD_UPLOADER_H
#define MEMLOG_HOST_UPLOAD_UPLOADER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error_message.h"
#include "host/policy/options.h"
#include "host/process/launcher.h"
#include "ipc/wire/ml_status.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"

struct ev_loop;
struct ml_uploader;

struct ml_uploader_setup {
    struct ev_loop *loop;
    const struct ml_options *options;            /* outlive the uploader */
    const struct ml_inherited *inherited;        /* for the analyzer */
    void (*on_helper)(void *context, pid_t pid); /* no part of the program; NULL: nobody cares */
    void (*on_notice)(void *context, const char *text);
    void *context;
};

/* Errors: ML_ENV_* with an error message: no libcurl, no spool, a file that cannot be read. */
ML_NODISCARD enum ml_status ml_uploader_open(
    const struct ml_uploader_setup *setup,
    struct ml_uploader **out_uploader,
    struct ml_error_message *error
);

/* Unsent reports stay in the spool. NULL is allowed. */
void ml_uploader_close(struct ml_uploader *take_uploader);

/* How one upload went: "" if it arrived, else why not. Called once, unless the uploader is closed
 * before. */
typedef void ml_upload_done(void *context, const char *trouble);

/* Send this dump. `on_done` may be NULL. */
void ml_uploader_submit(
    struct ml_uploader *uploader, const char *dump_path, ml_upload_done *on_done, void *context
);

/* Call back when everything that can be sent now is sent, after `seconds` at the latest. */
void ml_uploader_settle(
    struct ml_uploader *uploader, double seconds, void (*on_settled)(void *context), void *context
);

/* For ps, the page and /metrics; borrowed until the loop goes on. */
struct memlog_host_uploads ml_uploader_figures(struct ml_uploader *uploader);

/* How many lines its history has ever had. */
uint64_t ml_uploader_told(const struct ml_uploader *uploader);

#endif
