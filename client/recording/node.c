/* From a stack to its node: by the memo, by a walk, and in the modes that want them by the scopes
 * that the program has open and by the functions that an interpreter runs. */
#include "client/recording/check.h"
#include "client/recording/notes.h"
#include "client/recording/past.h"
#include "client/recording/record.h"
#include "client/recording/scripts.h"
#include "client/stream/module_record.h"
#include "client/stream/stack_table.h"

enum { LOOKS_EACH = 64 /* events of a lane whose stacks are not walked */ };

/* Bounds of the section of functions that stand between the program and libc. */
extern const char __start_memlog_between[] __attribute__((visibility("hidden"), weak));
extern const char __stop_memlog_between[] __attribute__((visibility("hidden"), weak));

/* A frame that the program does not have without memlog. */
static bool is_between(const struct ml_unwind_thread *unwind, uint32_t frame) {
    return unwind->frames[frame].pc - (uintptr_t)__start_memlog_between <
           (uintptr_t)__stop_memlog_between - (uintptr_t)__start_memlog_between;
}

static uint64_t frame_key(const struct ml_unwind_thread *unwind, uint32_t frame) {
    const enum ml_frame_kind kind = ml_unwind_kind(unwind, frame);
    if (ml_likely(kind == ML_FRAME_ADDRESS)) {
        return ml_stack_key_address(
            ml_unwind_module(unwind, frame), ml_unwind_address(unwind, frame)
        );
    }
    return ml_stack_key_string(kind, 0);
}

/* Walk the stack, and count what was not whole. */
static struct ml_unwind_result walk(struct ml_lane *lane, const struct ml_unwind_entry *entry) {
    struct ml_unwind_thread *unwind = &lane->unwind;
    const struct ml_module_seen seen = {.function = ml_module_record, .context = lane};
    if (ml_unlikely((lane->use & ML_LANE_SECOND) != 0)) {
        ml_unwind_thread_clear(unwind);
    }
    const struct ml_unwind_result result = ml_unwind(ml_process.unwind, unwind, entry, &seen);
    if (ml_unlikely((result.flags & (ML_UNWIND_CUT | ML_UNWIND_BROKEN)) != 0)) {
        struct ml_staging_header *header = ml_process_staging_header();
        if ((result.flags & ML_UNWIND_CUT) != 0) {
            __atomic_fetch_add(&header->truncated_stacks, 1, __ATOMIC_RELAXED);
        }
        if ((result.flags & ML_UNWIND_BROKEN) != 0) {
            __atomic_fetch_add(&header->broken_stacks, 1, __ATOMIC_RELAXED);
        }
    }
    return result;
}

/* A stack's way from frame to frame. */
struct way {
    struct ml_lane *lane;
    uint32_t node;
    bool is_full; /* the table is: the event belongs to the last frame that found room */
};

/* On to a frame that has no node yet. */
static inline void step(struct way *way, uint32_t frame) {
    struct ml_unwind_thread *unwind = &way->lane->unwind;
    if (ml_likely(!is_between(unwind, frame))) {
        const uint32_t child = ml_stack_child(
            way->lane, way->node, frame_key(unwind, frame), ml_unwind_module(unwind, frame)
        );
        if (ml_unlikely(child == 0)) {
            ml_unwind_thread_clear(unwind);
            way->is_full = true;
            return;
        }
        way->node = child;
    }
    ml_unwind_set_node(unwind, frame, way->node);
}

/* Walk the stack and look its new frames up. */
static uint32_t native_node(struct ml_lane *lane, const struct ml_unwind_entry *entry) {
    const struct ml_unwind_result result = walk(lane, entry);
    struct way way = {
        .lane = lane,
        .node =
            result.kept == 0 ? lane->thread_node : ml_unwind_node(&lane->unwind, result.kept - 1)};
    for (uint32_t frame = result.kept; frame < result.count && !way.is_full; frame++) {
        step(&way, frame);
    }
    return way.node;
}

/* ---- scopes (ML_STACK_MIXED) and interpreters' functions (--frames) between the frames */

/* Whether the function of that frame has opened the scope. A frame lies between the return address
 * of the call that it makes and its own. The outermost is nobody's: it begins the thread. On
 * another stack (a signal's, a coroutine's) addresses begin anew. */
static bool
has_opened(const struct ml_unwind_thread *unwind, uint32_t frame, const struct ml_scope *scope) {
    const uintptr_t inner = unwind->frames[frame].slot;
    const uintptr_t outer = frame != 0 ? unwind->frames[frame - 1].slot : 0;
    return inner != 0 && scope->sp > inner && frame != 0 && (outer < inner || scope->sp <= outer);
}

/* Which frames have opened the scopes, as a number that tells one answer from another. */
static uint32_t places_of(
    const struct ml_unwind_thread *unwind, uint32_t frames, const struct ml_thread_notes *notes
) {
    const uint32_t shown = ml_notes_shown(notes);
    uint32_t next = 0;
    uint32_t places = shown;
    for (uint32_t frame = 0; frame < frames && next < shown; frame++) {
        for (; next < shown && has_opened(unwind, frame, &notes->open[next]); next++) {
            places = places * 31 + frame;
        }
    }
    return places;
}

/* What stands between the frames. */
struct between {
    const struct ml_thread_notes *notes;
    uint32_t shown; /* scopes */
    struct ml_scripts *scripts;
    uint32_t kept; /* frames that have their nodes still */
};

/* Find it, once the stack is walked. */
static struct between find_between(struct ml_lane *lane, const struct ml_unwind_result *result) {
    struct between between = {.kept = result->kept};
    if ((lane->use & ML_LANE_MIXED) != 0) {
        between.notes = ml_this_thread()->notes;
        between.shown = ml_notes_shown(between.notes);
        const uint32_t places =
            between.shown != 0 ? places_of(&lane->unwind, result->count, between.notes) : 0;
        between.kept = places == lane->notes_places ? between.kept : 0;
        lane->notes_places = places;
    }
    if ((lane->use & ML_LANE_SCRIPTS) != 0) {
        const uint32_t kept = ml_scripts_now(lane, result->count, &between.scripts);
        between.kept = kept < between.kept ? kept : between.kept;
    }
    return between;
}

/* Walk the stack, and look up its frames and what stands between them. What no frame has opened or
 * runs is innermost. */
static uint32_t mixed_node(struct ml_lane *lane, const struct ml_unwind_entry *entry) {
    struct ml_unwind_thread *unwind = &lane->unwind;
    const struct ml_unwind_result result = walk(lane, entry);
    const struct between between = find_between(lane, &result);
    const struct ml_thread_notes *notes = between.notes;
    const uint32_t shown = between.shown;
    const uint32_t kept = between.kept;
    struct way way = {.lane = lane, .node = lane->thread_node};
    uint32_t next = 0;
    uint32_t next_script = 0;
    for (uint32_t frame = 0; frame < result.count && !way.is_full; frame++) {
        if (frame < kept) {
            way.node = ml_unwind_node(unwind, frame);
        } else {
            step(&way, frame);
        }
        for (; next < shown && has_opened(unwind, frame, &notes->open[next]); next++) {
            if (frame + 1 >= kept) {
                way.node = ml_notes_node(lane, notes, next, way.node);
            }
        }
        way.node = ml_scripts_behind(
            lane, between.scripts, frame, frame + 1 >= kept, &next_script, way.node
        );
    }
    for (; next < shown && !way.is_full; next++) {
        way.node = ml_notes_node(lane, notes, next, way.node);
    }
    return ml_scripts_behind(
        lane, between.scripts, ML_SCRIPTS_INNERMOST, !way.is_full, &next_script, way.node
    );
}

/* Nodes that were found with other scopes open say nothing any more. */
static void follow_scopes(struct ml_lane *lane) {
    const struct ml_thread_notes *notes = ml_this_thread()->notes;
    const uint32_t version = notes != NULL ? notes->version : 0;
    if (lane->notes_version != version) {
        ml_unwind_forget_nodes(&lane->unwind);
        lane->notes_version = version;
    }
}

uint32_t
ml_record_call(struct ml_lane *lane, const struct ml_unwind_entry *entry, const void *function) {
    const struct ml_module_seen seen = {.function = ml_module_record, .context = lane};
    const uint32_t caller = ml_record_node(lane, entry);
    struct ml_image image;
    uint32_t module = 0;
    if ((lane->use & ML_LANE_PSEUDO) != 0) {
        return caller; /* its stacks have no functions */
    }
    if (ml_image_find((uintptr_t)function, &image)) {
        module = ml_modules_id(&ml_process.unwind->modules, &image, &seen);
        ml_module_define(lane, module, (uintptr_t)function);
    }
    const uint64_t key = ml_stack_key_address(module, (uintptr_t)function);
    const uint32_t node = ml_stack_child(lane, caller, key, module);
    return node != 0 ? node : caller;
}

static uint32_t walked_node(struct ml_lane *lane, const struct ml_unwind_entry *entry) {
    return ml_unlikely((lane->use & (ML_LANE_MIXED | ML_LANE_SCRIPTS)) != 0)
               ? mixed_node(lane, entry)
               : native_node(lane, entry);
}

static uint32_t new_node(struct ml_lane *lane, const struct ml_unwind_entry *entry) {
    const uint32_t node = walked_node(lane, entry);
    if ((lane->use & ML_LANE_SECOND) == 0 && node != 0) {
        ml_unwind_memo_keep(&lane->unwind, ml_process.unwind, entry, node);
        ml_past_step(entry->pc);
    }
    return node;
}

/* --unwind-check: walk each time, and compare the memo's answer with the walk's. No stack is left
 * expected, so every event comes here. */
static __attribute__((noinline)) uint32_t
checked_node(struct ml_lane *lane, const struct ml_unwind_entry *entry) {
    const struct ml_unwind_process *process = ml_process.unwind;
    struct ml_unwind_memo *memo = &lane->unwind.memo;
    uint32_t found = 0;
    if ((lane->use & ML_LANE_SECOND) == 0) {
        ml_unwind_memo_expect_again(memo, &process->memos);
        found = ml_unwind_memo_find(
            memo,
            &process->memos,
            atomic_load_explicit(&process->unloads, memory_order_relaxed),
            entry
        );
    }
    const uint32_t node = found == 0 ? new_node(lane, entry) : walked_node(lane, entry);
    ml_check_stack(lane, entry, found == 0 || ml_stack_same_path(found, node));
    memo->expected = NULL;
    return node;
}

/* No memo knows which functions an interpreter runs, and none is asked. */
static uint32_t scripts_node(struct ml_lane *lane, const struct ml_unwind_entry *entry) {
    const uint32_t node = mixed_node(lane, entry);
    if ((lane->use & ML_LANE_SECOND) == 0 && lane->header->produced % LOOKS_EACH == 0) {
        ml_past_step(entry->pc);
    }
    if (ml_process.check_every != 0) {
        ml_check_stack(lane, entry, true);
    }
    return node;
}

/* The stack of a lane with a use of its own; 0: walk it. */
static uint32_t used_node(struct ml_lane *lane, const struct ml_unwind_entry *entry) {
    if ((lane->use & ML_LANE_PSEUDO) != 0) {
        if ((lane->use & ML_LANE_SECOND) == 0 && lane->header->produced % LOOKS_EACH == 0) {
            ml_past_step(entry->pc); /* whether a stack is new is not known here */
        }
        return ml_notes_scopes_node(lane, ml_this_thread()->notes);
    }
    if ((lane->use & ML_LANE_MIXED) != 0) {
        follow_scopes(lane);
    }
    if ((lane->use & ML_LANE_SCRIPTS) != 0) {
        return scripts_node(lane, entry);
    }
    return 0;
}

__attribute__((noinline)) uint32_t
ml_record_node_slow(struct ml_lane *lane, struct ml_unwind_entry entry) {
    const struct ml_unwind_process *process = ml_process.unwind;
    uint32_t node = 0;
    if (ml_unlikely(lane->use != 0)) {
        node = used_node(lane, &entry);
        if ((lane->use & (ML_LANE_PSEUDO | ML_LANE_DECOY | ML_LANE_SCRIPTS)) != 0) {
            return node; /* nobody reads what is defined in a decoy */
        }
    }
    if (ml_unlikely(ml_process.check_every != 0)) {
        return checked_node(lane, &entry);
    }
    if (ml_likely((lane->use & ML_LANE_SECOND) == 0)) {
        node = ml_unwind_memo_search(
            &lane->unwind.memo,
            &process->memos,
            atomic_load_explicit(&process->unloads, memory_order_relaxed),
            &entry
        );
    }
    return ml_likely(node != 0) ? node : new_node(lane, &entry);
}
