#include "client/scripts/python.h"

#include <stddef.h>
#include <string.h>

#include "client/symbols/loaded.h"
#include "client/symbols/symbols.h"

enum {
    CALL_CURRENT = 8, /* of ML_PYTHON_CALLS_APART: the innermost function that the call runs */
    CALL_PREVIOUS = 16,
    LAST_FUNCTION = 2, /* of ML_PYTHON_CALLS_AMONG: who owns a function's record; more: nobody */
    NO_FUNCTION = 3,   /* the record that a call begins with */
    UNIT_BYTES = 2     /* of instructions */
};

/* Of a text's state. */
enum { KIND_SHIFT = 2, KIND_MASK = 7, IS_ASCII = 1 << 6 };

static uint64_t word_at(const void *object, size_t offset) {
    uint64_t word;
    memcpy(&word, (const uint8_t *)object + offset, sizeof(word));
    return word;
}

static uint32_t half_at(const void *object, size_t offset) {
    uint32_t half;
    memcpy(&half, (const uint8_t *)object + offset, sizeof(half));
    return half;
}

static const void *pointer_at(const void *object, size_t offset) {
    const void *pointer;
    memcpy(&pointer, (const uint8_t *)object + offset, sizeof(pointer));
    return pointer;
}

/* ---- the interpreter */

static uintptr_t holder_in(uintptr_t base, const ElfW(Dyn) * dynamic) {
    const uintptr_t holder = ml_symbol_function_in(base, dynamic, "PyThreadState_GetUnchecked");
    return holder != 0 ? holder
                       : ml_symbol_function_in(base, dynamic, "_PyThreadState_UncheckedGet");
}

static bool find_in(uintptr_t base, const ElfW(Dyn) * dynamic, struct ml_python *out_python) {
    const uintptr_t version = ml_symbol_data_in(base, dynamic, "Py_Version");
    const uintptr_t holder = version != 0 ? holder_in(base, dynamic) : 0;
    const uintptr_t own = ml_symbol_function_in(base, dynamic, "PyGILState_GetThisThreadState");
    const uintptr_t code_type = ml_symbol_data_in(base, dynamic, "PyCode_Type");
    const uintptr_t runtime = ml_symbol_data_in(base, dynamic, "_PyRuntime");
    const bool compiles = ml_symbol_function_in(base, dynamic, "_Py_Executors_InvalidateAll") != 0;
    struct ml_python_layout layout;
    if (holder == 0 || own == 0 || code_type == 0 ||
        !ml_python_layout_of(
            half_at((const void *)version, 0), (const void *)runtime, compiles, &layout
        )) {
        return false;
    }
    *out_python = (struct ml_python
    ){.holder = (const void *(*)(void))holder,
      .own = (const void *(*)(void))own,
      .code_type = code_type,
      .layout = layout};
    return true;
}

bool ml_python_find(struct ml_python *out_python) {
    const struct link_map *program = ml_loaded_first();
    for (const struct link_map *map = program; map != NULL; map = map->l_next) {
        const bool stays = map == program || ml_symbol_is_linked(map->l_name);
        if (stays && map->l_ld != NULL && find_in(map->l_addr, map->l_ld, out_python)) {
            return true;
        }
    }
    *out_python = (struct ml_python){0};
    return false;
}

/* ---- its stack */

/* From the innermost function outwards. */
struct walk {
    const struct ml_python *python;
    const void *frame;  /* NULL: the way has ended */
    const void *call;   /* the evaluator's: ML_PYTHON_CALLS_APART: the one that runs the function;
                         * else the last one that was passed */
    const void *passed; /* ML_PYTHON_CALLS_AMONG: the one that ran the functions before; or NULL */
    const void *nobody; /* what the records that are no function's have for code */
    bool is_compiled;   /* the innermost call runs machine code */
    uint32_t steps;
};

static bool is_code(const struct walk *walk, const void *code) {
    return code != NULL && (uint64_t)(uintptr_t)code % sizeof(uint64_t) == 0 &&
           word_at(code, walk->python->layout.object_type) == walk->python->code_type;
}

static const void *code_of(const struct walk *walk) {
    const struct ml_python_layout *layout = &walk->python->layout;
    return (const void *)((uintptr_t)pointer_at(walk->frame, layout->frame_code) & ~layout->tags);
}

static uint8_t owner_of(const struct walk *walk) {
    return ((const uint8_t *)walk->frame)[walk->python->layout.frame_owner];
}

/* The record of a call of the evaluator, which lies on the stack as its caller's does. False: it is
 * not as it must be. */
static bool pass_call(struct walk *walk) {
    const void *nobody = code_of(walk);
    if (owner_of(walk) != NO_FUNCTION || nobody == NULL ||
        (uintptr_t)walk->frame <= (uintptr_t)walk->call ||
        (walk->nobody != NULL && walk->nobody != nobody)) {
        return false;
    }
    walk->nobody = nobody;
    walk->call = walk->frame;
    walk->passed = walk->passed != NULL ? walk->passed : walk->frame;
    return true;
}

/* Code whose first instruction that belongs to a function is none of its own: the interpreter's,
 * which waits for an __init__ to return. Python leaves it out of its stacks, too. */
static bool is_interpreters(const struct walk *walk, const void *code) {
    const struct ml_python_layout *layout = &walk->python->layout;
    return half_at(code, layout->code_first_traceable) >= word_at(code, layout->object_size);
}

static bool runs_within(const struct walk *walk, const void *code) {
    const struct ml_python_layout *layout = &walk->python->layout;
    const uintptr_t at = (uintptr_t)pointer_at(walk->frame, layout->frame_instruction);
    const uintptr_t first = (uintptr_t)code + layout->code_instructions;
    return at >= first && (at - first) / UNIT_BYTES < word_at(code, layout->object_size);
}

/* On to the next function, if this record is none's. False: something is not as it must be. */
static bool find_function(struct walk *walk) {
    walk->passed = NULL;
    if (walk->python->layout.calls == ML_PYTHON_CALLS_APART) {
        return walk->frame == NULL || is_code(walk, code_of(walk));
    }
    for (bool is_call = false; walk->frame != NULL;) {
        if ((uintptr_t)walk->frame % sizeof(uint64_t) != 0 || ++walk->steps > ML_PYTHON_STEPS_MAX) {
            return false;
        }
        is_call = owner_of(walk) > LAST_FUNCTION;
        if (is_call) {
            if (!pass_call(walk)) {
                return false;
            }
        } else if (!is_code(walk, code_of(walk)) || !runs_within(walk, code_of(walk))) {
            return false;
        } else if (!is_interpreters(walk, code_of(walk))) {
            return true;
        }
        walk->frame = pointer_at(walk->frame, walk->python->layout.frame_previous);
        if (walk->frame == NULL) {
            return is_call; /* the outermost function has a call, too */
        }
    }
    return true;
}

/* Of the calling thread; its frame is NULL where nothing is known. */
static struct walk walk_begin(const struct ml_python *python) {
    struct walk walk = {.python = python};
    const void *own = python->own != NULL ? python->own() : NULL;
    if (own == NULL || own != python->holder()) {
        return walk;
    }
    const void *current = pointer_at(own, python->layout.state_current);
    if (python->layout.calls == ML_PYTHON_CALLS_APART) {
        walk.call = current;
        walk.frame = current != NULL ? pointer_at(current, CALL_CURRENT) : NULL;
    } else {
        walk.frame = current;
    }
    walk.is_compiled = python->layout.state_compiled != 0 &&
                       pointer_at(own, python->layout.state_compiled) != NULL;
    walk.frame = find_function(&walk) ? walk.frame : NULL;
    return walk;
}

/* On to the caller. False: what the evaluator's calls say does not agree. */
static bool walk_out(struct walk *walk) {
    const void *caller = pointer_at(walk->frame, walk->python->layout.frame_previous);
    walk->is_compiled = false;
    if (walk->python->layout.calls == ML_PYTHON_CALLS_APART && owner_of(walk) != 0) {
        walk->call = pointer_at(walk->call, CALL_PREVIOUS);
        if (walk->call == NULL ? caller != NULL : pointer_at(walk->call, CALL_CURRENT) != caller) {
            return false;
        }
    }
    walk->frame = caller;
    if (caller == NULL) { /* the outermost one has a call's record for its caller */
        return walk->python->layout.calls == ML_PYTHON_CALLS_APART;
    }
    return find_function(walk);
}

/* How many there are; 0: none, or not all is as it must be. */
static uint32_t depth_of(const struct ml_python *python) {
    struct walk walk = walk_begin(python);
    for (uint32_t depth = 0; depth < ML_PYTHON_DEPTH_MAX; depth++) {
        if (walk.frame == NULL) {
            return depth;
        }
        if (!walk_out(&walk)) {
            return 0;
        }
    }
    return 0;
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    return (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15) + (hash >> 29);
}

static uint64_t identity_of(const struct ml_python_layout *layout, const void *code) {
    const void *function = pointer_at(code, layout->code_function);
    const void *file = pointer_at(code, layout->code_file);
    uint64_t hash = mix(half_at(code, layout->code_first_line), word_at(code, layout->code_lines));
    hash = mix(hash, word_at(function, layout->text_hash));
    hash = mix(hash, word_at(file, layout->text_hash));
    hash = mix(hash, (uintptr_t)function);
    return mix(hash, (uintptr_t)file);
}

/* Its place is not known yet where the call's record lies behind. Machine code does not keep the
 * innermost function's instruction up to date. */
static struct ml_python_frame frame_of(const struct walk *walk) {
    const struct ml_python_layout *layout = &walk->python->layout;
    const void *code = code_of(walk);
    return (struct ml_python_frame
    ){.code = code,
      .at = walk->is_compiled ? NULL : pointer_at(walk->frame, layout->frame_instruction),
      .identity = identity_of(layout, code),
      .place = layout->calls == ML_PYTHON_CALLS_APART ? (uintptr_t)walk->call : 0};
}

/* The number, among all, of the first one behind those left out; ML_PYTHON_OUTER: none are. */
static uint32_t inner_from(uint32_t depth) {
    return depth < ML_PYTHON_FRAMES_MAX
               ? (uint32_t)ML_PYTHON_OUTER
               : (depth - ML_PYTHON_INNER_MIN) / ML_PYTHON_STEP * ML_PYTHON_STEP;
}

/* Gives those from `from` to `end` their place. Returns the new end. */
static uint32_t
put_place(struct ml_python_frame frames[], uint32_t from, uint32_t end, uintptr_t place) {
    for (uint32_t i = from; i < end; i++) {
        frames[i].place = place;
    }
    return from < end ? from : end;
}

uint32_t ml_python_stack(
    const struct ml_python *python, struct ml_python_frame out_frames[ML_PYTHON_FRAMES_MAX]
) {
    const uint32_t depth = depth_of(python);
    const uint32_t inner = inner_from(depth);
    const uint32_t mark = inner > ML_PYTHON_OUTER ? 1 : 0;
    const uint32_t left_out = inner > ML_PYTHON_OUTER ? inner - ML_PYTHON_OUTER : 0;
    const uint32_t count = depth - left_out + mark;
    uint32_t placed = count; /* those from there on have their place */
    struct walk walk = walk_begin(python);
    for (uint32_t number = depth; walk.frame != NULL && number-- > 0;) {
        const bool is_inner = number >= inner;
        const uint32_t slot = is_inner ? number - left_out + mark : number;
        if (is_inner || number < ML_PYTHON_OUTER) {
            out_frames[slot] = frame_of(&walk);
        }
        (void)walk_out(&walk);
        if (walk.passed != NULL) {
            const uint32_t from = is_inner || number < ML_PYTHON_OUTER ? slot : ML_PYTHON_OUTER + 1;
            placed = put_place(out_frames, from, placed, (uintptr_t)walk.passed);
        }
    }
    if (mark != 0) {
        out_frames[ML_PYTHON_OUTER] =
            (struct ml_python_frame){.place = out_frames[ML_PYTHON_OUTER + 1].place};
    }
    return count;
}

/* ---- what a function is called */

/* A text that grows, with room for its 0. */
struct text {
    char *bytes;
    uint32_t count, most;
};

static bool add_byte(struct text *text, uint32_t byte) {
    if (text->count + 1 >= text->most) {
        return false;
    }
    text->bytes[text->count++] = (char)byte;
    return true;
}

/* In UTF-8, whole or not at all. */
static bool add_character(struct text *text, uint32_t character) {
    enum { SIX_BITS = 0x3f, MORE = 0x80 };
    const uint32_t more = character < 0x80      ? 0
                          : character < 0x800   ? 1
                          : character < 0x10000 ? 2
                                                : 3;
    static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0};
    if (text->count + more + 1 >= text->most) {
        return false;
    }
    (void)add_byte(text, first[more] | character >> 6 * more);
    for (uint32_t rest = more; rest-- > 0;) {
        (void)add_byte(text, MORE | (character >> 6 * rest & SIX_BITS));
    }
    return true;
}

/* A str's characters. */
struct characters {
    const uint8_t *data;
    uint64_t count;
    uint32_t bytes_each;
    bool is_ascii;
};

static struct characters characters_of(const struct ml_python_layout *layout, const void *object) {
    const uint32_t state = half_at(object, layout->text_state);
    const uint32_t kind = state >> KIND_SHIFT & KIND_MASK;
    const bool is_ascii = (state & IS_ASCII) != 0;
    if ((state & layout->text_bits) != layout->text_bits || (kind != 1 && kind != 2 && kind != 4)) {
        return (struct characters){.data = NULL};
    }
    return (struct characters
    ){.data = (const uint8_t *)object + (is_ascii ? layout->text_ascii_data : layout->text_data),
      .count = word_at(object, layout->text_length),
      .bytes_each = kind,
      .is_ascii = is_ascii};
}

static uint32_t character_at(const struct characters *characters, uint64_t number) {
    uint32_t character = 0; /* the machine's lowest byte comes first */
    memcpy(&character, characters->data + number * characters->bytes_each, characters->bytes_each);
    return character;
}

/* Those from `first` on, while there is room. The name ends at a colon, so it has none itself. */
static void add_str(struct text *text, const struct characters *characters, uint64_t first) {
    for (uint64_t i = first; i < characters->count; i++) {
        if (!add_character(text, character_at(characters, i))) {
            return;
        }
    }
}

static void add_function(struct text *text, const struct characters *characters) {
    for (uint64_t i = 0; i < characters->count; i++) {
        const uint32_t character = character_at(characters, i);
        if (!add_character(text, character == ':' ? '.' : character)) {
            return;
        }
    }
}

/* The end of a path that is too long says more than its beginning. */
static void add_file(struct text *text, const struct characters *characters) {
    const uint64_t fits = (text->most - text->count - 1) / (characters->is_ascii ? 1 : 4);
    add_str(text, characters, characters->count > fits ? characters->count - fits : 0);
}

static void add_number(struct text *text, uint32_t number) {
    char digits[10];
    uint32_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count-- > 0 && add_byte(text, (uint8_t)digits[count])) {
    }
}

/* A code object's table of lines: an entry for some instructions, one after the other. */
struct lines {
    const uint8_t *bytes;
    uint64_t count, next;
};

static uint8_t lines_byte(struct lines *lines) {
    return lines->next < lines->count ? lines->bytes[lines->next++] : 0;
}

/* Six bits a byte, the lowest first; bit 6 says that more follow. */
static uint32_t lines_number(struct lines *lines) {
    enum { BITS = 6, MORE = 1 << BITS, LAST_SHIFT = 24 };
    uint32_t number = 0;
    for (uint32_t shift = 0;; shift += BITS) {
        const uint32_t byte = lines_byte(lines);
        number |= (byte & (MORE - 1)) << shift;
        if ((byte & MORE) == 0 || shift >= LAST_SHIFT) {
            return number;
        }
    }
}

/* The sign is the lowest bit. */
static int32_t lines_difference(struct lines *lines) {
    const uint32_t number = lines_number(lines);
    return (number & 1) != 0 ? -(int32_t)(number >> 1) : (int32_t)(number >> 1);
}

/* The line of the instruction; 0: none. */
static uint32_t
line_of(const struct ml_python_layout *layout, const struct ml_python_frame *frame) {
    enum {
        IS_ENTRY = 0x80,
        NO_LINE = 15,
        LONG = 14,
        NO_COLUMN = 13,
        NEAR_LINES = 10, /* and the same line, the next one, the one behind that */
        FORM_SHIFT = 3,
        FORM_MASK = 15,
        UNITS_MASK = 7
    };
    const uint64_t first = (uintptr_t)frame->code + layout->code_instructions;
    const void *table = pointer_at(frame->code, layout->code_lines);
    struct lines lines = {
        .bytes = (const uint8_t *)table + layout->bytes_data,
        .count = word_at(table, layout->object_size)};
    int64_t line = (int32_t)half_at(frame->code, layout->code_first_line);
    if (frame->at == NULL) {
        return 0;
    }
    if ((uintptr_t)frame->at < first) {
        return line > 0 ? (uint32_t)line : 0; /* none has run yet */
    }
    uint64_t left = ((uintptr_t)frame->at - first) / UNIT_BYTES;
    while (lines.next < lines.count) {
        const uint8_t head = lines_byte(&lines);
        const uint32_t form = head >> FORM_SHIFT & FORM_MASK;
        const uint64_t units = (head & UNITS_MASK) + UINT64_C(1);
        line += form == LONG || form == NO_COLUMN        ? lines_difference(&lines)
                : form >= NEAR_LINES && form < NO_COLUMN ? (int32_t)form - NEAR_LINES
                                                         : 0;
        if (left < units) {
            return form == NO_LINE || line <= 0 ? 0 : (uint32_t)line;
        }
        left -= units;
        while (lines.next < lines.count && (lines.bytes[lines.next] & IS_ENTRY) == 0) {
            lines.next++; /* columns */
        }
    }
    return 0;
}

void ml_python_text(
    const struct ml_python *python,
    const struct ml_python_frame *frame,
    char out_text[ML_PYTHON_TEXT_BYTES]
) {
    const struct ml_python_layout *layout = &python->layout;
    const struct characters function =
        characters_of(layout, pointer_at(frame->code, layout->code_function));
    const struct characters file =
        characters_of(layout, pointer_at(frame->code, layout->code_file));
    enum { FUNCTION_MOST = 400, LINE_MOST = sizeof ":4294967295" };
    struct text text = {.bytes = out_text, .most = FUNCTION_MOST};
    static const char begin[] = "py::";
    for (uint32_t i = 0; i < sizeof(begin) - 1; i++) {
        (void)add_byte(&text, (uint8_t)begin[i]);
    }
    add_function(&text, &function);
    text.most = ML_PYTHON_TEXT_BYTES - LINE_MOST;
    (void)add_byte(&text, ':');
    add_file(&text, &file);
    text.most = ML_PYTHON_TEXT_BYTES;
    const uint32_t line = line_of(layout, frame);
    if (line != 0) {
        (void)add_byte(&text, ':');
        add_number(&text, line);
    }
    out_text[text.count] = 0;
}
