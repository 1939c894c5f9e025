/* Takes in the reports that machines put into folders, a shared one, say. Room: host. Context: the
 * loop's thread.
 *
 * One rule: a file is moved away when its report is in the ledger, and not before. Taken twice, it
 * is one report: its name, or else its hash, says so. */
#ifndef MEMLOG_HOST_COLLECT_SERVER_FOLDERS_H
#define MEMLOG_HOST_COLLECT_SERVER_FOLDERS_H

#include "base/error_message.h"
#include "host/collect/storing/collector.h"
#include "host/collect/options.h"

struct ml_folders;

struct ml_folders_setup {
    struct ev_loop *loop;
    const struct ml_collect_folder *folders; /* borrowed */
    size_t folders_count;
    struct ml_ledger *ledger;
    struct ml_collector *collector;
    uint64_t body_max_bytes, waiting_max, free_min_bytes; /* as the receiver's */
    /* For people: something went wrong. */
    void (*on_trouble)(void *context, const char *text);
};

/* Errors: ML_ENV_MEMORY; ML_ENV_REFUSED: one of them cannot be read and written; with an error
 * message. */
ML_NODISCARD enum ml_status ml_folders_open(
    const struct ml_folders_setup *setup,
    struct ml_folders **out_folders,
    struct ml_error_message *error
);

/* NULL is allowed. */
void ml_folders_close(struct ml_folders *take_folders);

#endif
