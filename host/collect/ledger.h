/* The reports that were accepted, and their bodies: the collector's memory of what it promised.
 * Room: host. Context: the loop's thread.
 *
 * One rule: a report is accepted when its body and its line are on the disk, and not before. Then
 * its sender may forget it. Bodies are the truth: what the store has can be made of them again. */
#ifndef MEMLOG_HOST_COLLECT_LEDGER_H
#define MEMLOG_HOST_COLLECT_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error_message.h"
#include "host/collect/team_figures.h"
#include "host/collect/tokens.h"
#include "ipc/wire/ml_status.h"

enum { ML_GUID_BYTES = 65, ML_HASH_BYTES = 32, ML_TEAM_KEY_BYTES = 32, ML_REASON_BYTES = 257 };

enum ml_entry_state {
    ML_ENTRY_ACCEPTED, /* the store has not heard of it, or may not have */
    ML_ENTRY_STORED,
    ML_ENTRY_REFUSED /* it is no report */
};

struct ml_entry {
    int64_t id; /* rises with the order of arrival */
    char team[ML_TEAM_BYTES];
    char guid[ML_GUID_BYTES]; /* of the team's: letters, digits, '-' and '_' */
    uint8_t hash[ML_HASH_BYTES];
    uint64_t bytes;
    uint64_t received_ms;     /* time of day */
    char host[ML_GUID_BYTES]; /* by a certificate; "": by its own word */
    enum ml_entry_state state;
    char reason[ML_REASON_BYTES]; /* of a refused one */
};

struct ml_db;
struct ml_ledger;

/* `folder` is made if it is missing, for its user alone. Errors: ML_ENV_SYSTEM; ML_ENV_REFUSED:
 * another collector works in it; with an error message. */
ML_NODISCARD enum ml_status
ml_ledger_open(const char *folder, struct ml_ledger **out_ledger, struct ml_error_message *error);
void ml_ledger_close(struct ml_ledger *take_ledger);

/* ---- a body that comes */

struct ml_body;

/* NULL: no file, errno says why. Owner: ml_ledger_accept or ml_body_drop. */
struct ml_body *ml_body_new(struct ml_ledger *ledger);

/* False: it cannot be written, errno says why. */
bool ml_body_add(struct ml_body *body, const void *bytes, size_t count);
uint64_t ml_body_bytes(const struct ml_body *body);

/* The hash of what came so far. False: no memory. */
bool ml_body_hash(const struct ml_body *body, uint8_t out_hash[ML_HASH_BYTES]);

/* Its file, borrowed. */
int ml_body_fd(const struct ml_body *body);

/* Make a file of it, which is on the disk then, on the ledger's file system. False: errno says why.
 */
bool ml_body_move(struct ml_body *take_body, const char *path);

/* NULL is allowed. */
void ml_body_drop(struct ml_body *take_body);

/* What became of it. */
enum ml_accepted { ML_ACCEPTED_NEW, ML_ACCEPTED_BEFORE, ML_ACCEPTED_CONFLICT, ML_ACCEPTED_NOT };

/* The body is whole. `guid` "": it is known by its hash. New: body and line are on the disk.
 * Before: the same body came under that guid already. Conflict: another one did. Not: the disk
 * refuses, errno says why; nothing stays. */
enum ml_accepted ml_ledger_accept(
    struct ml_ledger *ledger,
    struct ml_body *take_body,
    const char *team,
    const char *guid,
    const char *host,
    struct ml_entry *out_entry
);

/* ---- what is there */

/* The first entry behind `after` that is accepted only. False: there is none. */
bool ml_ledger_next(struct ml_ledger *ledger, int64_t after, struct ml_entry *out_entry);

/* The same of one team, by its number; how many there are. A team keeps its number. */
bool ml_ledger_next_of_team(
    struct ml_ledger *ledger, uint64_t team, int64_t after, struct ml_entry *out_entry
);
uint64_t ml_ledger_teams(const struct ml_ledger *ledger);

/* Its body; -1: it cannot be opened. Owner: the caller. */
int ml_ledger_body(const struct ml_ledger *ledger, const struct ml_entry *entry);

/* What became of it; `own_host`: of which host it says to be. Errors: ML_ENV_SYSTEM. */
ML_NODISCARD enum ml_status ml_ledger_settle(
    struct ml_ledger *ledger,
    const struct ml_entry *entry,
    enum ml_entry_state state,
    const char *reason,
    const char *own_host
);

/* What is settled in between is written to the disk together. */
void ml_ledger_begin(struct ml_ledger *ledger);
void ml_ledger_commit(struct ml_ledger *ledger);

/* All that was stored counts as accepted only: an empty store is filled again. */
ML_NODISCARD enum ml_status ml_ledger_forget_store(struct ml_ledger *ledger);

/* The entry of that guid. False: there is none. */
bool ml_ledger_find(
    struct ml_ledger *ledger, const char *team, const char *guid, struct ml_entry *out_entry
);

/* Remove entry and body. Errors: ML_ENV_SYSTEM: the entry is still there. */
ML_NODISCARD enum ml_status
ml_ledger_remove(struct ml_ledger *ledger, const struct ml_entry *entry);

/* The oldest entry; false: there is none. */
bool ml_ledger_oldest(struct ml_ledger *ledger, struct ml_entry *out_entry);

/* The first entry behind `after`, whatever its state. `out_is_hosts`: it is that host's, by its
 * certificate or else by its own word; `host` NULL: any is. False: there is none. */
bool ml_ledger_walk(
    struct ml_ledger *ledger,
    int64_t after,
    const char *host,
    struct ml_entry *out_entry,
    bool *out_is_hosts
);

/* For who keeps more beside the entries (host/collect/storing/remover.h). */
const struct ml_db *ml_ledger_db(const struct ml_ledger *ledger);

/* What a team has; NULL: what all have. */
struct ml_team_figures ml_ledger_figures(const struct ml_ledger *ledger, const char *team);

/* The team's key for ids of stacks; made when it is asked for first. Errors: ML_ENV_SYSTEM. */
ML_NODISCARD enum ml_status
ml_ledger_team_key(struct ml_ledger *ledger, const char *team, uint8_t out_key[ML_TEAM_KEY_BYTES]);

/* The folder that it was opened with. */
const char *ml_ledger_folder(const struct ml_ledger *ledger);

/* Bytes that the disk of the bodies has free. */
uint64_t ml_ledger_free_bytes(const struct ml_ledger *ledger);

#endif
