#include "host/engine/list/judge.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/engine/list/known.h"

static const char no_image_text[] = "it ended before memlog could look at it";
static const char given_text[] = "memlog was given to it, but it has not reported itself";
static const char hidden_text[] =
    "its sandbox hides memlog's socket; 'memlog start PID' attaches from outside";
static const char raw_text[] = "it was started by a system call that memlog cannot see: its "
                               "environment did not carry memlog on";
static const char heir_text[] =
    "it was started by a program that ran without memlog, which had none to pass on";

const char ml_list_before_text[] =
    "it ran already when memlog attached to its parent; 'memlog start PID' attaches to it";

/* The kernel tells of its start in ticks. */
bool ml_list_is_from_before(const struct ml_unrecorded *one, const struct ml_member *parent) {
    const uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
    return parent->attachment != ML_ATTACHMENT_NONE && parent->birth != ML_BIRTH_FORK &&
           one->start_ticks != 0 && (one->start_ticks + 1) * tick_ns <= parent->start.boottime_ns;
}

void ml_list_set_reason(struct ml_unrecorded *one, const char *reason) {
    (void)snprintf(one->reason, sizeof(one->reason), "%s", reason);
}

void ml_list_forget_reason(struct ml_unrecorded *one) {
    ml_list_set_reason(one, no_image_text);
}

/* A report comes just before the exec that it speaks of. Older ones speak of other processes. */
enum { REPORTS_LOOKED_AT = 256 };

/* Wherever the list is shown it says so itself. */
static const char *reason_in_list(const char *reason) {
    static const char said[] = "not recorded: ";
    return strncmp(reason, said, sizeof(said) - 1) == 0 ? reason + sizeof(said) - 1 : reason;
}

/* By a report of its parent's or its own. */
static bool take_told_reason(struct ml_engine *engine, struct ml_unrecorded *one) {
    const uint32_t count = engine->not_profiled_count;
    const uint32_t oldest = count > REPORTS_LOOKED_AT ? count - REPORTS_LOOKED_AT : 0;
    for (uint32_t i = count; i > oldest; i--) {
        struct ml_not_profiled *item = &engine->not_profiled[i - 1];
        if (ml_list_told_of(item, one)) {
            item->is_listed = true;
            ml_list_set_reason(one, reason_in_list(item->reason));
            if (!ml_list_has_name(one) && item->path != NULL && item->path[0] != '\0') {
                ml_list_copy_identity(one, basename(item->path), item->path, NULL);
            }
            return true;
        }
    }
    return false;
}

/* Whether its parent ran without memlog. An idle or lost fork has memlog loaded. */
static bool is_of_unrecorded(struct ml_engine *engine, const struct ml_unrecorded *one) {
    const struct ml_unrecorded_table *table = &engine->unrecorded;
    const struct ml_member *parent = ml_members_find(&engine->members, one->parent_id);
    if (parent != NULL && parent->birth != ML_BIRTH_FORK &&
        ml_recording_is_lost(parent->recording)) {
        return true; /* its client left at the start */
    }
    for (uint32_t i = table->count; i > 0; i--) {
        const struct ml_unrecorded *other = table->items[i - 1];
        if (other->id == one->parent_id && other != one) {
            return other->kind != ML_UNRECORDED_IDLE_FORK && other->kind != ML_UNRECORDED_LOST_FORK;
        }
    }
    return false;
}

/* Whether who started it has passed memlog on. The client takes its words out of the environment.
 */
static bool was_given(pid_t pid) {
    return ml_process_was_given(pid, "MEMLOG_SOCKET") || ml_process_maps(pid, "libmemlog.so");
}

/* Judge it by its image. */
static void judge_image(struct ml_engine *engine, struct ml_unrecorded *one) {
    const struct ml_process_facts facts = ml_process_facts(one->pid);
    const bool is_there = !facts.has_ended && facts.start_ticks == one->start_ticks;
    enum ml_image_kind kind = is_there ? ml_image_peek(one->pid) : ML_IMAGE_GONE;
    if (kind == ML_IMAGE_GONE && one->pid == engine->root &&
        engine->root_image != ML_IMAGE_PRELOADABLE) {
        kind = engine->root_image; /* as the probe judged the file before the start */
    }
    const struct ml_member *parent = ml_members_find(&engine->members, one->parent_id);
    if (parent != NULL && ml_list_is_from_before(one, parent)) {
        ml_list_set_reason(one, ml_list_before_text);
    } else if (kind == ML_IMAGE_PRELOADABLE && was_given(one->pid)) {
        const bool is_hidden = ml_process_misses(one->pid, engine->directory.client_path);
        ml_list_set_reason(one, is_hidden ? hidden_text : given_text);
    } else if (kind == ML_IMAGE_PRELOADABLE) {
        ml_list_set_reason(one, is_of_unrecorded(engine, one) ? heir_text : raw_text);
    } else if (kind != ML_IMAGE_GONE) {
        ml_list_set_reason(one, ml_image_text(kind));
    }
}

void ml_list_judge(struct ml_engine *engine, struct ml_unrecorded *one) {
    if ((one->kind != ML_UNRECORDED_IDLE_FORK && one->kind != ML_UNRECORDED_PROGRAM) ||
        one->folded_processes > 0) {
        return;
    }
    const bool is_judged = strcmp(one->reason, no_image_text) != 0;
    if (take_told_reason(engine, one)) {
        ml_unrecorded_set_kind(one, ML_UNRECORDED_TELL);
    } else if (one->kind == ML_UNRECORDED_PROGRAM && !is_judged && one->state == ML_MEMBER_RUNNING) {
        judge_image(engine, one);
    }
}

void ml_list_root_told(struct ml_engine *engine, const struct ml_not_profiled *item) {
    struct ml_unrecorded *one = ml_unrecorded_newest(&engine->unrecorded, item->pid);
    if (one != NULL && !ml_unrecorded_is_told(one) && ml_list_told_of(item, one)) {
        ml_list_set_reason(one, item->reason);
        ml_unrecorded_set_kind(one, ML_UNRECORDED_TELL);
    }
}
