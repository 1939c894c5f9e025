#include "client/recording/scripts.h"

#include "client/recording/names.h"
#include "client/scripts/python.h"
#include "client/stream/arena.h"
#include "client/stream/stack_table.h"

/* One function, and behind which native frame it stands. */
struct script {
    struct ml_python_frame frame;
    struct ml_name *name; /* NULL: frames are left out, or there is no room for a name */
    uint32_t behind;
};

/* A lane's, in the arena. */
struct ml_scripts {
    uint32_t count;
    struct script scripts[ML_PYTHON_FRAMES_MAX]; /* outermost first */
    struct ml_python_frame now[ML_PYTHON_FRAMES_MAX];
};

static struct ml_python python; /* written before the stream begins, and inherited by forks */

void ml_scripts_find(void) {
    if (ml_process.control->frames == ML_FRAMES_PYTHON) {
        (void)ml_python_find(&python);
    }
}

bool ml_scripts_wanted(void) {
    return python.holder != NULL && ml_process.control->frames == ML_FRAMES_PYTHON;
}

/* Whether the native frame is that of the function that runs the script: it lies between the return
 * address of the call that it makes and its own. The outermost begins the thread. On another stack
 * addresses begin anew. */
static bool runs(const struct ml_unwind_thread *unwind, uint32_t frame, uintptr_t place) {
    const uintptr_t inner = unwind->frames[frame].slot;
    const uintptr_t outer = frame != 0 ? unwind->frames[frame - 1].slot : 0;
    return inner != 0 && place > inner && frame != 0 && (outer < inner || place <= outer);
}

/* Where native frames are left out, those of the scripts are, too: they stand in their place. */
static bool is_left_out(const struct ml_unwind_thread *unwind, uint32_t frame, uintptr_t place) {
    return ml_unwind_kind(unwind, frame) == ML_FRAME_CUT && place > unwind->frames[frame].slot;
}

static bool is_same(const struct script *script, const struct ml_python_frame *frame) {
    return script->frame.code == frame->code && script->frame.at == frame->at &&
           script->frame.identity == frame->identity && script->frame.place == frame->place;
}

static struct ml_name *name_of(const struct ml_python_frame *frame) {
    char text[ML_PYTHON_TEXT_BYTES];
    if (frame->code == NULL) {
        return NULL;
    }
    ml_python_text(&python, frame, text);
    return ml_name_get(ML_NAMES_TEXTS, text, 0);
}

/* Let script `number` be that one, behind that native frame. Returns the native frames whose nodes
 * it leaves as they are. */
static uint32_t
set(struct ml_scripts *scripts,
    uint32_t number,
    const struct ml_python_frame *frame,
    uint32_t behind) {
    struct script *script = &scripts->scripts[number];
    const bool was = number < scripts->count;
    if (was && script->behind == behind && is_same(script, frame)) {
        return UINT32_MAX;
    }
    const uint32_t before = was && script->behind < behind ? script->behind : behind;
    if (!was || !is_same(script, frame)) {
        *script = (struct script){.frame = *frame, .name = name_of(frame)};
    }
    script->behind = behind;
    return before == ML_SCRIPTS_INNERMOST ? UINT32_MAX : before + 1;
}

/* The lane's; NULL: there is no memory. */
static struct ml_scripts *scripts_of(struct ml_lane *lane) {
    if (lane->scripts == NULL) {
        lane->scripts = ml_arena_take(sizeof(*lane->scripts), _Alignof(struct ml_scripts));
    }
    return lane->scripts;
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

uint32_t ml_scripts_now(struct ml_lane *lane, uint32_t frames, struct ml_scripts **out_scripts) {
    const struct ml_unwind_thread *unwind = &lane->unwind;
    struct ml_scripts *scripts = scripts_of(lane);
    *out_scripts = scripts;
    if (scripts == NULL) {
        return UINT32_MAX;
    }
    const uint32_t count = ml_python_stack(&python, scripts->now);
    uint32_t kept = UINT32_MAX;
    uint32_t next = 0;
    for (uint32_t frame = 0; frame < frames && next < count; frame++) {
        while (next < count && (runs(unwind, frame, scripts->now[next].place) ||
                                is_left_out(unwind, frame, scripts->now[next].place))) {
            kept = least(kept, set(scripts, next, &scripts->now[next], frame));
            next++;
        }
    }
    for (; next < count; next++) {
        kept = least(kept, set(scripts, next, &scripts->now[next], ML_SCRIPTS_INNERMOST));
    }
    for (; next < scripts->count; next++) { /* those that have returned */
        const uint32_t behind = scripts->scripts[next].behind;
        kept = behind == ML_SCRIPTS_INNERMOST ? kept : least(kept, behind + 1);
    }
    scripts->count = count;
    return kept;
}

/* The node of a script below `parent`; `parent` itself, where there is no room. */
static uint32_t node_of(struct ml_lane *lane, const struct script *script, uint32_t parent) {
    uint64_t key = ml_stack_key_string(ML_FRAME_CUT, 0);
    if (script->frame.code != NULL) {
        const uint32_t string = script->name != NULL ? ml_name_string(lane, script->name) : 0;
        if (string == 0) {
            return parent;
        }
        key = ml_stack_key_string(ML_FRAME_SCRIPT, string);
    }
    const uint32_t node = ml_stack_child(lane, parent, key, 0);
    return node != 0 ? node : parent;
}

uint32_t ml_scripts_behind(
    struct ml_lane *lane,
    struct ml_scripts *scripts,
    uint32_t frame,
    bool looks,
    uint32_t *next,
    uint32_t parent
) {
    for (; scripts != NULL && *next < scripts->count && scripts->scripts[*next].behind == frame;
         ++*next) {
        if (looks) {
            parent = node_of(lane, &scripts->scripts[*next], parent);
        }
    }
    return parent;
}
