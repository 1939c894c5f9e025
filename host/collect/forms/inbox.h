/* A folder into which others put reports: finds what is whole in it. Room: host. Context: the
 * loop's thread.
 *
 * One rule: what lies there is anybody's. Nothing but a plain file of its own is opened, through no
 * link; it leaves the folder when it was taken for good, and never before.
 *
 * Shape: a file under a name of memlog's, memlog-GUID.trace.json.gz, is whole, as it was renamed
 *        into place. Any other is whole when it has not changed for ML_INBOX_STILL_S. What was
 * taken goes into the folder `taken` in it, what cannot be a report into `refused`. Names with a
 *        dot in front count for nothing. */
#ifndef MEMLOG_HOST_COLLECT_FORMS_INBOX_H
#define MEMLOG_HOST_COLLECT_FORMS_INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error_message.h"

struct ev_loop;
struct ml_inbox;

enum { ML_INBOX_STILL_S = 10, ML_INBOX_GUID_BYTES = 65 };

enum ml_inbox_verdict {
    ML_INBOX_TAKEN,
    ML_INBOX_REFUSED, /* for ever */
    ML_INBOX_LATER    /* nothing more is taken for a while */
};

struct ml_inbox_setup {
    struct ev_loop *loop;
    const char *folder; /* borrowed */
    /* A file that is whole. `guid`: of its name, or "". The descriptor is borrowed. */
    enum ml_inbox_verdict (*on_file)(void *context, int fd, uint64_t bytes, const char *guid);
    /* For people: something went wrong. */
    void (*on_trouble)(void *context, const char *text);
    void *context;
};

/* NULL: the folder cannot be opened and written, with an error message. */
struct ml_inbox *ml_inbox_new(const struct ml_inbox_setup *setup, struct ml_error_message *error);

/* NULL is allowed. */
void ml_inbox_free(struct ml_inbox *take_inbox);

/* The guid in a name of memlog's, which may have folders in front. False: it is no such name. */
bool ml_inbox_guid(const char *name, char out_guid[ML_INBOX_GUID_BYTES]);

#endif
