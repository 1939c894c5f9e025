#include "host/collect/server/folders.h"

#include <stdlib.h>
#include <unistd.h>

#include "host/collect/forms/inbox.h"

enum { PIECE_BYTES = 64 << 10 };

struct folder {
    struct ml_folders *folders;
    const char *team;
    struct ml_inbox *inbox;
};

struct ml_folders {
    struct ml_folders_setup setup;
    struct folder list[ML_COLLECT_FOLDERS_MAX];
};

/* NULL: the disk refuses, or the file is another one than it was. */
static struct ml_body *body_of(struct ml_ledger *ledger, int fd, uint64_t bytes) {
    uint8_t piece[PIECE_BYTES];
    ssize_t count = 1;
    struct ml_body *body = ml_body_new(ledger);
    while (body != NULL && count > 0) {
        count = read(fd, piece, sizeof(piece));
        if (count < 0 || ml_body_bytes(body) + (uint64_t)count > bytes ||
            !ml_body_add(body, piece, (size_t)count)) {
            ml_body_drop(body);
            return NULL;
        }
    }
    if (body != NULL && ml_body_bytes(body) != bytes) {
        ml_body_drop(body);
        return NULL;
    }
    return body;
}

static enum ml_inbox_verdict on_file(void *context, int fd, uint64_t bytes, const char *guid) {
    struct folder *folder = context;
    const struct ml_folders_setup *setup = &folder->folders->setup;
    struct ml_entry entry;
    if (bytes == 0 || bytes > setup->body_max_bytes) {
        return ML_INBOX_REFUSED;
    }
    if (ml_ledger_free_bytes(setup->ledger) < setup->free_min_bytes + bytes ||
        ml_ledger_figures(setup->ledger, NULL).counts[ML_ENTRY_ACCEPTED] > setup->waiting_max) {
        return ML_INBOX_LATER;
    }
    struct ml_body *body = body_of(setup->ledger, fd, bytes);
    if (body == NULL) {
        return ML_INBOX_LATER;
    }
    switch (ml_ledger_accept(setup->ledger, body, folder->team, guid, "", &entry)) {
    case ML_ACCEPTED_NEW:
        ml_collector_wake(setup->collector);
        return ML_INBOX_TAKEN;
    case ML_ACCEPTED_BEFORE:
        return ML_INBOX_TAKEN;
    case ML_ACCEPTED_CONFLICT:
        return ML_INBOX_REFUSED;
    case ML_ACCEPTED_NOT:
        break;
    }
    return ML_INBOX_LATER;
}

enum ml_status ml_folders_open(
    const struct ml_folders_setup *setup,
    struct ml_folders **out_folders,
    struct ml_error_message *error
) {
    struct ml_folders *folders = calloc(1, sizeof(*folders));
    if (folders == NULL) {
        return ML_ENV_MEMORY;
    }
    folders->setup = *setup;
    for (size_t i = 0; i < setup->folders_count; i++) {
        struct folder *folder = &folders->list[i];
        folder->folders = folders;
        folder->team = setup->folders[i].team;
        const struct ml_inbox_setup inbox = {
            .loop = setup->loop,
            .folder = setup->folders[i].path,
            .on_file = on_file,
            .on_trouble = setup->on_trouble,
            .context = folder,
        };
        folder->inbox = ml_inbox_new(&inbox, error);
        if (folder->inbox == NULL) {
            ml_folders_close(folders);
            return ML_ENV_REFUSED;
        }
    }
    *out_folders = folders;
    return ML_OK;
}

void ml_folders_close(struct ml_folders *take_folders) {
    struct ml_folders *folders = take_folders;
    if (folders == NULL) {
        return;
    }
    for (size_t i = 0; i < folders->setup.folders_count; i++) {
        ml_inbox_free(folders->list[i].inbox);
    }
    free(folders);
}
