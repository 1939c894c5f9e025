#include "host/engine/list/judge.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/engine/list/identity.h"
#include "host/engine/list/known.h"
#include "host/engine/list/passed_on.h"
#include "host/process/clock.h"
#include "host/process/paths.h"

static const char unseen_text[] = "memlog has not looked at it yet";
static const char no_image_text[] = "it ended before memlog could look at it";
static const char given_text[] = "memlog was given to it, but it has not reported itself";
static const char loaded_text[] = "libmemlog.so is in it, but it has not reported itself";
static const char library_text[] =
    "libmemlog.so is not visible in its root directory; 'memlog start PID' attaches from outside";
static const char hidden_text[] =
    "its sandbox hides memlog's socket; 'memlog start PID' attaches from outside";
static const char no_library_text[] =
    "libmemlog.so is not in its LD_PRELOAD, so its loader did not load it: MEMLOG_SOCKET alone was "
    "passed on";
static const char no_socket_text[] = "MEMLOG_SOCKET, by which libmemlog.so finds memlog, is not in "
                                     "its environment: LD_PRELOAD alone "
                                     "was passed on";
static const char another_text[] =
    "it was started with the words of another memlog: a process has one profiler at a time";
static const char unreadable_text[] = "reason not known: its environment cannot be read";
static const char raw_text[] =
    "it was started without memlog's words in its environment, mostly by a system call that memlog "
    "cannot see";
static const char heir_text[] =
    "it was started by a program that ran without memlog: nothing passed memlog on to it";
static const char embedder_text[] =
    "the program that memlog is linked into has started it without memlog's words";
static const char orphan_text[] =
    "reason not known: memlog's words are not in its environment, and who started it was not seen";

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
    ml_list_set_reason(one, unseen_text);
}

/* A report comes just before the exec that it speaks of. Older ones speak of other processes. */
enum { REPORTS_LOOKED_AT = 256, LOOKS_FOR_STARTER = 3 };

/* Wherever the list is shown it says so itself. */
static const char *reason_in_list(const char *reason) {
    static const char said[] = "not recorded: ";
    return strncmp(reason, said, sizeof(said) - 1) == 0 ? reason + sizeof(said) - 1 : reason;
}

/* By a report of its parent's or its own, which may come behind its end. Of one in the middle of an
 * exec, which has no name yet, a report may speak of the program before. */
static bool take_told_reason(struct ml_engine *engine, struct ml_unrecorded *one, bool is_over) {
    const bool goes_on = !is_over && one->state == ML_MEMBER_RUNNING;
    if (goes_on && !ml_unrecorded_is_fork(one) && !ml_list_has_name(one)) {
        return false;
    }
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

/* The newest of that id, or NULL. */
static const struct ml_unrecorded *find_listed(const struct ml_engine *engine, uint32_t id) {
    const struct ml_unrecorded_table *table = &engine->unrecorded;
    for (uint32_t i = table->count; i > 0; i--) {
        if (table->items[i - 1]->id == id) {
            return table->items[i - 1];
        }
    }
    return NULL;
}

/* Where the list is made by walks, a process may be older than its entry. */
static bool is_heard_since_birth(
    struct ml_engine *engine, const struct ml_not_profiled *item, const struct ml_unrecorded *one
) {
    const struct memlog_service_moment now = ml_clock_timestamp(engine->clock);
    const uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
    const uint64_t heard_since_boot_ns = item->heard_ns + (now.boottime_ns - now.monotonic_ns);
    return item->heard_ns >= one->born_ns ||
           (one->start_ticks != 0 && heard_since_boot_ns >= one->start_ticks * tick_ns);
}

/* Whether the same process ran another program first that could not take memlog, too short for the
 * list: a report speaks of it, or it was the first one of the run. */
static bool was_another(struct ml_engine *engine, const struct ml_unrecorded *one) {
    const uint32_t count = engine->not_profiled_count;
    const uint32_t oldest = count > REPORTS_LOOKED_AT ? count - REPORTS_LOOKED_AT : 0;
    bool found = one->pid == engine->root && engine->root_image != ML_IMAGE_PRELOADABLE;
    for (uint32_t i = count; i > oldest && !found; i--) {
        const struct ml_not_profiled *item = &engine->not_profiled[i - 1];
        found = item->pid == one->pid && item->told_of == ML_TOLD_OF_PROGRAM &&
                is_heard_since_birth(engine, item, one);
    }
    return found;
}

/* Whether its parent ran without memlog. An idle or lost fork has memlog loaded. */
static bool is_of_unrecorded(struct ml_engine *engine, const struct ml_unrecorded *one) {
    const struct ml_member *parent = ml_members_find(&engine->members, one->parent_id);
    if (parent != NULL && parent->birth != ML_BIRTH_FORK &&
        ml_recording_is_lost(parent->recording)) {
        return true; /* its client left at the start */
    }
    const struct ml_unrecorded *other = find_listed(engine, one->parent_id);
    return (other != NULL && other != one && other->kind != ML_UNRECORDED_IDLE_FORK &&
            other->kind != ML_UNRECORDED_LOST_FORK) ||
           was_another(engine, one);
}

/* The member whose image started it: of a fork that is none the one above. */
static const struct ml_member *
starter_of(struct ml_engine *engine, const struct ml_unrecorded *one) {
    enum { FORKS_MAX = 16 };
    uint32_t id = one->parent_id;
    for (int i = 0; i < FORKS_MAX && id != 0; i++) {
        const struct ml_member *member = ml_members_find(&engine->members, id);
        const struct ml_unrecorded *other = member == NULL ? find_listed(engine, id) : NULL;
        if (member != NULL || other == NULL || !ml_unrecorded_is_fork(other)) {
            return member;
        }
        id = other->parent_id;
    }
    return NULL;
}

/* What the starter has left in its staging: NULL if it speaks of another process. Filters stay, and
 * so does a closed connection: of those its own word holds for all that it starts. */
static const char *left_out_text(const struct ml_member *starter, const struct ml_unrecorded *one) {
    uint32_t pid = 0;
    uint32_t reason = 0;
    const uint64_t word = starter->state == ML_MEMBER_RUNNING
                              ? ml_endpoint_left_out(&starter->endpoint)
                              : starter->last_left_out;
    if (!ml_left_out_read(word, &pid, &reason) ||
        reason > MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_ROOM_FOR_WORDS) {
        return NULL;
    }
    const bool stays = reason == MEMLOG_CLIENT_NOT_PROFILED_REASON_FILTER ||
                       reason == MEMLOG_CLIENT_NOT_PROFILED_REASON_CONNECTION_CLOSED;
    const bool is_of_it = pid != 0 && pid == ml_passed_on_own_pid(one->pid);
    const bool is_of_all =
        stays && starter->state == ML_MEMBER_RUNNING && pid == ml_passed_on_own_pid(starter->pid);
    const bool is_nobodys = stays && pid == 0; /* a filter forbids to ask for the number */
    return is_of_it || is_of_all || is_nobodys
               ? ml_engine_not_profiled_text((enum memlog_client_not_profiled_reason)reason)
               : NULL;
}

/* It has what it needs to come to the host. */
static void judge_given(
    struct ml_engine *engine, struct ml_unrecorded *one, const struct ml_passed_on *passed
) {
    const char *so_far = ml_process_maps(one->pid, ML_PRELOAD_FILE) ? loaded_text : given_text;
    const unsigned filters = ml_passed_on_filters(one->pid);
    if (ml_passed_on_misses(one->pid, engine->preload_path)) {
        ml_list_set_reason(one, library_text);
    } else if (!passed->has_connection && ml_process_misses(one->pid, engine->directory.client_path)) {
        ml_list_set_reason(one, hidden_text);
    } else if (filters > 0) {
        (void)snprintf(
            one->reason,
            sizeof(one->reason),
            "%s; it runs under %u system call filter%s of its own, which may stop that",
            so_far,
            filters,
            filters == 1 ? "" : "s"
        );
    } else {
        ml_list_set_reason(one, so_far);
    }
}

static const char *text_of_not_given(
    struct ml_engine *engine, const struct ml_unrecorded *one, const struct ml_passed_on *passed
) {
    const struct ml_member *starter = starter_of(engine, one);
    const char *left_out = starter != NULL ? left_out_text(starter, one) : NULL;
    if (passed->has_another && passed->has_library) {
        return another_text;
    }
    if (passed->has_socket) {
        return no_library_text;
    }
    if (passed->has_library) {
        return no_socket_text;
    }
    if (!passed->is_known) {
        return unreadable_text;
    }
    if (left_out != NULL) {
        return left_out;
    }
    if (is_of_unrecorded(engine, one)) {
        return heir_text;
    }
    if (starter != NULL) {
        return raw_text;
    }
    return one->parent_pid == getpid() && engine->root == getpid() ? embedder_text : orphan_text;
}

/* The client takes its words out of the environment once it is loaded. */
static void judge_passed_on(struct ml_engine *engine, struct ml_unrecorded *one) {
    const struct ml_passed_on passed = ml_passed_on_look(one->pid, engine->directory.client_path);
    if ((passed.has_socket && passed.has_library) || ml_process_maps(one->pid, ML_PRELOAD_FILE)) {
        judge_given(engine, one, &passed);
    } else {
        ml_list_set_reason(one, text_of_not_given(engine, one, &passed));
    }
}

/* Whether an exec is on its way, or was since its identity was read: what is seen is of the next
 * image, or of the one before, and neither its own. Who may read mappings may read the mark. */
static bool is_between_images(
    const struct ml_unrecorded *one, const struct ml_process_facts *facts, enum ml_image_kind kind
) {
    const bool is_by_mappings = kind != ML_IMAGE_GONE && kind != ML_IMAGE_UNREADABLE;
    return ml_image_mark_differs(&one->image, &facts->image) ||
           (is_by_mappings && !ml_image_mark_is_known(&facts->image));
}

/* Judge it by its image. */
static void judge_image(struct ml_engine *engine, struct ml_unrecorded *one) {
    const struct ml_process_facts facts = ml_process_facts(one->pid);
    const bool is_there = !facts.has_ended && facts.start_ticks == one->start_ticks;
    enum ml_image_kind kind = is_there ? ml_image_peek(one->pid) : ML_IMAGE_GONE;
    if (is_there && is_between_images(one, &facts, kind)) {
        return;
    }
    if (is_there && !ml_image_mark_is_known(&one->image)) {
        one->image = facts.image; /* what it is judged by: the next one is judged anew */
    }
    if (kind == ML_IMAGE_GONE && one->pid == engine->root &&
        engine->root_image != ML_IMAGE_PRELOADABLE) {
        kind = engine->root_image; /* as the probe judged the file before the start */
    }
    const struct ml_member *parent = ml_members_find(&engine->members, one->parent_id);
    if (parent != NULL && ml_list_is_from_before(one, parent)) {
        ml_list_set_reason(one, ml_list_before_text);
    } else if (kind == ML_IMAGE_PRELOADABLE) {
        judge_passed_on(engine, one);
    } else if (kind != ML_IMAGE_GONE) {
        ml_list_set_reason(one, ml_image_text(kind));
    }
}

static void judge(struct ml_engine *engine, struct ml_unrecorded *one, bool is_over) {
    if ((one->kind != ML_UNRECORDED_IDLE_FORK && one->kind != ML_UNRECORDED_PROGRAM) ||
        one->folded_processes > 0) {
        return;
    }
    /* Whose fork it was may be heard of behind its exec, and what that fork has left. */
    const bool is_open = strcmp(one->reason, raw_text) == 0 && one->looks < LOOKS_FOR_STARTER;
    const bool is_judged = strcmp(one->reason, unseen_text) != 0 && !is_open;
    if (take_told_reason(engine, one, is_over)) {
        ml_unrecorded_set_kind(one, ML_UNRECORDED_TELL);
    } else if (one->kind == ML_UNRECORDED_PROGRAM && !is_judged && one->state == ML_MEMBER_RUNNING) {
        judge_image(engine, one);
    }
}

void ml_list_judge(struct ml_engine *engine, struct ml_unrecorded *one) {
    judge(engine, one, false);
}

void ml_list_judge_at_end(struct ml_engine *engine, struct ml_unrecorded *one) {
    judge(engine, one, true);
    if (strcmp(one->reason, unseen_text) == 0) {
        ml_list_set_reason(one, no_image_text);
    }
}

void ml_list_root_told(struct ml_engine *engine, const struct ml_not_profiled *item) {
    struct ml_unrecorded *one = ml_unrecorded_newest(&engine->unrecorded, item->pid);
    if (one != NULL && !ml_unrecorded_is_told(one) && ml_list_told_of(item, one)) {
        ml_list_set_reason(one, item->reason);
        ml_unrecorded_set_kind(one, ML_UNRECORDED_TELL);
    }
}
