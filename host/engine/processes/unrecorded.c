#include "host/engine/processes/unrecorded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Beyond what is kept so many are folded at once. */
enum { FOLDED_AT_ONCE = ML_UNRECORDED_KEPT / 4 };

static const char others[] = "other programs";

static const uint8_t next_kind[ML_UNRECORDED_KIND_COUNT][ML_UNRECORDED_EVENT_COUNT] = {
    [ML_UNRECORDED_FORK] = {[ML_UNRECORDED_EXEC] = ML_UNRECORDED_PROGRAM},
    [ML_UNRECORDED_IDLE_FORK] =
        {[ML_UNRECORDED_EXEC] = ML_UNRECORDED_PROGRAM,
         [ML_UNRECORDED_TELL] = ML_UNRECORDED_LOST_FORK},
    [ML_UNRECORDED_PROGRAM] = {[ML_UNRECORDED_TELL] = ML_UNRECORDED_TOLD_PROGRAM},
};

void ml_unrecorded_set_kind(struct ml_unrecorded *one, enum ml_unrecorded_event event) {
    const enum ml_unrecorded_kind next = (enum ml_unrecorded_kind)next_kind[one->kind][event];
    one->kind = next != ML_UNRECORDED_FORBIDDEN ? next : one->kind;
}

static struct ml_unrecorded **bucket_of(struct ml_unrecorded_table *table, pid_t pid) {
    return &table->by_pid[(uint32_t)pid % ML_UNRECORDED_BUCKETS];
}

static void free_one(struct ml_unrecorded *take_one) {
    ml_command_line_fini(&take_one->line);
    free(take_one->executable);
    ml_memory_history_fini(&take_one->memory);
    free(take_one);
}

static void unlink_pid(struct ml_unrecorded_table *table, const struct ml_unrecorded *one) {
    for (struct ml_unrecorded **at = bucket_of(table, one->pid); *at != NULL;
         at = &(*at)->next_by_pid) {
        if (*at == one) {
            *at = one->next_by_pid;
            return;
        }
    }
}

void ml_unrecorded_init(struct ml_unrecorded_table *table) {
    *table = (struct ml_unrecorded_table){.last_id = ML_MEMBERS_MAX};
}

void ml_unrecorded_fini(struct ml_unrecorded_table *table) {
    for (uint32_t i = 0; i < table->count; i++) {
        free_one(table->items[i]);
    }
    free(table->items);
    ml_unrecorded_init(table);
    table->items = NULL;
}

/* Room for one more. */
static bool grow(struct ml_unrecorded_table *table) {
    if (table->count < table->capacity) {
        return true;
    }
    const uint32_t capacity = table->capacity == 0 ? 64 : table->capacity * 2;
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers is meant */
    struct ml_unrecorded **items =
        reallocarray(table->items, capacity, sizeof(struct ml_unrecorded *));
    if (items == NULL) {
        return false;
    }
    table->items = items;
    table->capacity = capacity;
    return true;
}

struct ml_unrecorded *ml_unrecorded_add(struct ml_unrecorded_table *table, pid_t pid) {
    struct ml_unrecorded *one = NULL;
    if (table->running_count < ML_UNRECORDED_RUNNING_MAX && table->last_id < UINT32_MAX &&
        grow(table)) {
        one = calloc(1, sizeof(*one));
    }
    if (one == NULL) {
        table->left_out++;
        return NULL;
    }
    one->id = ++table->last_id;
    one->pid = pid;
    one->state = ML_MEMBER_RUNNING;
    one->role = MEMLOG_SERVICE_ROLE_OTHER;
    one->kind = ML_UNRECORDED_PROGRAM;
    one->next_by_pid = *bucket_of(table, pid);
    *bucket_of(table, pid) = one;
    table->items[table->count++] = one;
    table->running_count++;
    return one;
}

struct ml_unrecorded *ml_unrecorded_newest(const struct ml_unrecorded_table *table, pid_t pid) {
    struct ml_unrecorded *one = table->by_pid[(uint32_t)pid % ML_UNRECORDED_BUCKETS];
    while (one != NULL && one->pid != pid) {
        one = one->next_by_pid;
    }
    return one;
}

struct ml_unrecorded *ml_unrecorded_running(const struct ml_unrecorded_table *table, pid_t pid) {
    struct ml_unrecorded *one = ml_unrecorded_newest(table, pid);
    return one != NULL && one->state == ML_MEMBER_RUNNING ? one : NULL;
}

struct ml_unrecorded *
ml_unrecorded_next_running(const struct ml_unrecorded_table *table, uint32_t id) {
    uint32_t low = table->folds_count;
    uint32_t high = table->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (table->items[middle]->id <= id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while (low < table->count && table->items[low]->state != ML_MEMBER_RUNNING) {
        low++;
    }
    return low < table->count ? table->items[low] : NULL;
}

void ml_unrecorded_executable(struct ml_unrecorded *one, const char *path) {
    free(one->executable);
    one->executable = path[0] != '\0' ? strdup(path) : NULL;
}

static void take_out(struct ml_unrecorded_table *table, uint32_t at) {
    memmove(
        &table->items[at],
        &table->items[at + 1],
        (table->count - at - 1) * sizeof(struct ml_unrecorded *)
    );
    table->count--;
}

void ml_unrecorded_remove(struct ml_unrecorded_table *table, struct ml_unrecorded *take_one) {
    for (uint32_t i = table->count; i > 0; i--) {
        if (table->items[i - 1] == take_one) {
            take_out(table, i - 1);
            break;
        }
    }
    table->running_count -= take_one->state == ML_MEMBER_RUNNING;
    unlink_pid(table, take_one);
    free_one(take_one);
}

static const char *path_of(const struct ml_unrecorded *one) {
    return one->executable != NULL ? one->executable : "";
}

static bool is_idle(const struct ml_unrecorded *one) {
    return one->kind == ML_UNRECORDED_IDLE_FORK;
}

static bool
is_fold_for(const struct ml_unrecorded *fold, const struct ml_unrecorded *one, const char *name) {
    return fold->state == one->state && is_idle(fold) == is_idle(one) &&
           strcmp(fold->name, name) == 0 &&
           (name == others ||
            (strcmp(path_of(fold), path_of(one)) == 0 && strcmp(fold->reason, one->reason) == 0));
}

/* The entry that it goes into; NULL: there is none yet. */
static struct ml_unrecorded *find_fold(
    const struct ml_unrecorded_table *table, const struct ml_unrecorded *one, const char *name
) {
    for (uint32_t i = 0; i < table->folds_count; i++) {
        if (is_fold_for(table->items[i], one, name)) {
            return table->items[i];
        }
    }
    return NULL;
}

static bool has_failed(const struct ml_unrecorded *one) {
    return one->state == ML_MEMBER_KILLED || (one->ending.known && one->ending.exit_code != 0);
}

static void add_to_fold(struct ml_unrecorded *fold, const struct ml_unrecorded *one) {
    fold->folded_processes++;
    fold->folded_failed += has_failed(one);
    fold->end = one->end;
    if (one->footprint_bytes > fold->footprint_bytes) {
        fold->footprint_bytes = one->footprint_bytes;
        fold->resident_bytes = one->resident_bytes;
    }
    if (!one->ending.known || one->ending.exit_code != fold->ending.exit_code) {
        fold->ending.exit_code = -1;
    }
    if (one->ending.signal != fold->ending.signal) {
        fold->ending.signal = 0;
    }
}

/* The entry itself becomes one that stands for several, the first of those. */
static void become_fold(struct ml_unrecorded_table *table, uint32_t at, const char *name) {
    struct ml_unrecorded *one = table->items[at];
    const struct ml_unrecorded before = *one;
    unlink_pid(table, one);
    if (name == others) {
        ml_unrecorded_executable(one, "");
        (void)snprintf(one->reason, sizeof(one->reason), "for different reasons");
    }
    (void)snprintf(one->name, sizeof(one->name), "%s", name);
    ml_command_line_fini(&one->line);
    ml_memory_history_fini(&one->memory);
    add_to_fold(one, &before);
    memmove(
        &table->items[table->folds_count + 1],
        &table->items[table->folds_count],
        (at - table->folds_count) * sizeof(struct ml_unrecorded *)
    );
    table->items[table->folds_count++] = one;
}

/* Into the entry for its program: true; or it becomes that. */
static bool fold_one(struct ml_unrecorded_table *table, uint32_t at) {
    struct ml_unrecorded *one = table->items[at];
    char name[ML_PROCESS_NAME_BYTES];
    (void)snprintf(name, sizeof(name), "%s", one->name);
    struct ml_unrecorded *fold = find_fold(table, one, name);
    const bool is_full = table->folds_count >= ML_UNRECORDED_FOLDS_MAX;
    if (fold == NULL && is_full) {
        fold = find_fold(table, one, others);
    }
    if (fold == NULL) {
        become_fold(table, at, is_full ? others : name);
        return false;
    }
    add_to_fold(fold, one);
    take_out(table, at);
    unlink_pid(table, one);
    free_one(one);
    return true;
}

static void fold_oldest(struct ml_unrecorded_table *table) {
    uint32_t left = FOLDED_AT_ONCE;
    for (uint32_t i = table->folds_count; i < table->count && left > 0;) {
        const bool is_running = table->items[i]->state == ML_MEMBER_RUNNING;
        /* One that became an entry for several has gone to the front: i is where it was. */
        i += is_running || !fold_one(table, i);
        left -= !is_running;
    }
}

void ml_unrecorded_end(
    struct ml_unrecorded_table *table,
    struct ml_unrecorded *one,
    enum ml_member_event event,
    const struct ml_ending *ending,
    struct memlog_service_moment now
) {
    const enum ml_member_state next = ml_member_next(one->state, event);
    if (next == ML_MEMBER_DEAD) {
        return;
    }
    one->state = next;
    one->ending = *ending;
    if (!ending->known && event != ML_MEMBER_EVENT_EXEC) {
        one->ending.exit_code = -1;
    }
    one->end = now;
    table->running_count--;
    const uint32_t ended = table->count - table->folds_count - table->running_count;
    if (ended > ML_UNRECORDED_KEPT) {
        fold_oldest(table);
    }
}
