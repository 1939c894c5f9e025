#include "client/scripts/python.h"

#include <stddef.h>
#include <string.h>

#include "client/symbols/loaded.h"
#include "client/symbols/symbols.h"

/* Where CPython 3.11 keeps what, on machines of 64 bits; its cpython/pystate.h, cpython/code.h,
 * cpython/unicodeobject.h and internal/pycore_frame.h, held to them by
 * tests/e2e/python_frames_test.py. */
enum {
    VERSION = 0x030b, /* the upper half of Py_Version */
    STATE_CFRAME = 56,
    CFRAME_CURRENT = 8, /* the innermost function that this call of the evaluator runs */
    CFRAME_PREVIOUS = 16,
    FRAME_CODE = 32,
    FRAME_PREVIOUS = 48,
    FRAME_INSTRUCTION = 56,
    FRAME_IS_ENTRY = 68, /* the evaluator's call began with it */
    OBJECT_TYPE = 8,
    OBJECT_SIZE = 16,
    CODE_FIRST_LINE = 72,
    CODE_FILE = 112,
    CODE_FUNCTION = 128, /* the qualified name */
    CODE_LINES = 136,
    CODE_INSTRUCTIONS = 184,
    BYTES_DATA = 32,
    TEXT_LENGTH = 16,
    TEXT_HASH = 24,
    TEXT_STATE = 32,
    TEXT_ASCII_DATA = 48,
    TEXT_DATA = 72
};

/* Of a text's state. */
enum { KIND_SHIFT = 2, KIND_MASK = 7, IS_COMPACT = 1 << 5, IS_ASCII = 1 << 6, IS_READY = 1 << 7 };

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

static bool find_in(uintptr_t base, const ElfW(Dyn) * dynamic, struct ml_python *out_python) {
    const uintptr_t version = ml_symbol_data_in(base, dynamic, "Py_Version");
    const uintptr_t holder = ml_symbol_function_in(base, dynamic, "_PyThreadState_UncheckedGet");
    const uintptr_t own = ml_symbol_function_in(base, dynamic, "PyGILState_GetThisThreadState");
    const uintptr_t code_type = ml_symbol_data_in(base, dynamic, "PyCode_Type");
    if (version == 0 || holder == 0 || own == 0 || code_type == 0 ||
        half_at((const void *)version, 0) >> 16 != VERSION) {
        return false;
    }
    *out_python = (struct ml_python
    ){.holder = (const void *(*)(void))holder,
      .own = (const void *(*)(void))own,
      .code_type = code_type};
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
    const void *cframe;
    const void *frame; /* NULL: the way has ended */
};

/* Of the calling thread; its frame is NULL where nothing is known. */
static struct walk walk_begin(const struct ml_python *python) {
    struct walk walk = {.python = python};
    const void *state = python->holder != NULL ? python->holder() : NULL;
    if (state == NULL || state != python->own()) {
        return walk;
    }
    walk.cframe = pointer_at(state, STATE_CFRAME);
    walk.frame = walk.cframe != NULL ? pointer_at(walk.cframe, CFRAME_CURRENT) : NULL;
    return walk;
}

static bool is_code(const struct walk *walk, const void *code) {
    return code != NULL && (uint64_t)(uintptr_t)code % sizeof(uint64_t) == 0 &&
           word_at(code, OBJECT_TYPE) == walk->python->code_type;
}

/* On to the caller. False: what the evaluator's calls say does not agree. */
static bool walk_out(struct walk *walk) {
    const void *caller = pointer_at(walk->frame, FRAME_PREVIOUS);
    if (((const uint8_t *)walk->frame)[FRAME_IS_ENTRY] != 0) {
        walk->cframe = pointer_at(walk->cframe, CFRAME_PREVIOUS);
        if (walk->cframe == NULL ? caller != NULL
                                 : pointer_at(walk->cframe, CFRAME_CURRENT) != caller) {
            return false;
        }
    }
    walk->frame = caller;
    return true;
}

/* How many there are; 0: none, or not all is as it must be. */
static uint32_t depth_of(const struct ml_python *python) {
    struct walk walk = walk_begin(python);
    for (uint32_t depth = 0; depth < ML_PYTHON_DEPTH_MAX; depth++) {
        if (walk.frame == NULL) {
            return depth;
        }
        if (!is_code(&walk, pointer_at(walk.frame, FRAME_CODE)) || !walk_out(&walk)) {
            return 0;
        }
    }
    return 0;
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    return (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15) + (hash >> 29);
}

static uint64_t identity_of(const void *code) {
    const void *function = pointer_at(code, CODE_FUNCTION);
    const void *file = pointer_at(code, CODE_FILE);
    uint64_t hash = mix(half_at(code, CODE_FIRST_LINE), word_at(code, CODE_LINES));
    hash = mix(hash, word_at(function, TEXT_HASH));
    hash = mix(hash, word_at(file, TEXT_HASH));
    hash = mix(hash, (uintptr_t)function);
    return mix(hash, (uintptr_t)file);
}

static struct ml_python_frame frame_of(const struct walk *walk) {
    const void *code = pointer_at(walk->frame, FRAME_CODE);
    return (struct ml_python_frame
    ){.code = code,
      .at = pointer_at(walk->frame, FRAME_INSTRUCTION),
      .identity = identity_of(code),
      .place = (uintptr_t)walk->cframe};
}

/* The number, among all, of the first one behind those left out; ML_PYTHON_OUTER: none are. */
static uint32_t inner_from(uint32_t depth) {
    return depth < ML_PYTHON_FRAMES_MAX
               ? (uint32_t)ML_PYTHON_OUTER
               : (depth - ML_PYTHON_INNER_MIN) / ML_PYTHON_STEP * ML_PYTHON_STEP;
}

uint32_t ml_python_stack(
    const struct ml_python *python, struct ml_python_frame out_frames[ML_PYTHON_FRAMES_MAX]
) {
    const uint32_t depth = depth_of(python);
    const uint32_t inner = inner_from(depth);
    const uint32_t mark = inner > ML_PYTHON_OUTER ? 1 : 0;
    const uint32_t left_out = inner > ML_PYTHON_OUTER ? inner - ML_PYTHON_OUTER : 0;
    struct walk walk = walk_begin(python);
    for (uint32_t number = depth; walk.frame != NULL && number-- > 0; (void)walk_out(&walk)) {
        if (number < ML_PYTHON_OUTER) {
            out_frames[number] = frame_of(&walk);
        } else if (number >= inner) {
            out_frames[number - left_out + mark] = frame_of(&walk);
        }
    }
    if (mark != 0) {
        out_frames[ML_PYTHON_OUTER] =
            (struct ml_python_frame){.place = out_frames[ML_PYTHON_OUTER + 1].place};
    }
    return depth - left_out + mark;
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
};

static struct characters characters_of(const void *object) {
    const uint32_t state = half_at(object, TEXT_STATE);
    const uint32_t kind = state >> KIND_SHIFT & KIND_MASK;
    if ((state & IS_COMPACT) == 0 || (state & IS_READY) == 0 ||
        (kind != 1 && kind != 2 && kind != 4)) {
        return (struct characters){.data = NULL};
    }
    return (struct characters
    ){.data = (const uint8_t *)object + ((state & IS_ASCII) != 0 ? TEXT_ASCII_DATA : TEXT_DATA),
      .count = word_at(object, TEXT_LENGTH),
      .bytes_each = kind};
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

static void add_function(struct text *text, const void *object) {
    const struct characters characters = characters_of(object);
    for (uint64_t i = 0; i < characters.count; i++) {
        const uint32_t character = character_at(&characters, i);
        if (!add_character(text, character == ':' ? '.' : character)) {
            return;
        }
    }
}

/* The end of a path that is too long says more than its beginning. */
static void add_file(struct text *text, const void *object) {
    const struct characters characters = characters_of(object);
    const uint64_t each_bytes = (half_at(object, TEXT_STATE) & IS_ASCII) != 0 ? 1 : 4;
    const uint64_t fits = (text->most - text->count - 1) / each_bytes;
    add_str(text, &characters, characters.count > fits ? characters.count - fits : 0);
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
static uint32_t line_of(const struct ml_python_frame *frame) {
    enum {
        IS_ENTRY = 0x80,
        UNIT_BYTES = 2,
        NO_LINE = 15,
        LONG = 14,
        NO_COLUMN = 13,
        NEAR_LINES = 10, /* and the same line, the next one, the one behind that */
        FORM_SHIFT = 3,
        FORM_MASK = 15,
        UNITS_MASK = 7
    };
    const uint64_t first = (uintptr_t)frame->code + CODE_INSTRUCTIONS;
    const void *table = pointer_at(frame->code, CODE_LINES);
    struct lines lines = {
        .bytes = (const uint8_t *)table + BYTES_DATA, .count = word_at(table, OBJECT_SIZE)};
    int64_t line = (int32_t)half_at(frame->code, CODE_FIRST_LINE);
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

void ml_python_text(const struct ml_python_frame *frame, char out_text[ML_PYTHON_TEXT_BYTES]) {
    enum { FUNCTION_MOST = 400, LINE_MOST = sizeof ":4294967295" };
    struct text text = {.bytes = out_text, .most = FUNCTION_MOST};
    static const char begin[] = "py::";
    for (uint32_t i = 0; i < sizeof(begin) - 1; i++) {
        (void)add_byte(&text, (uint8_t)begin[i]);
    }
    add_function(&text, pointer_at(frame->code, CODE_FUNCTION));
    text.most = ML_PYTHON_TEXT_BYTES - LINE_MOST;
    (void)add_byte(&text, ':');
    add_file(&text, pointer_at(frame->code, CODE_FILE));
    text.most = ML_PYTHON_TEXT_BYTES;
    const uint32_t line = line_of(frame);
    if (line != 0) {
        (void)add_byte(&text, ':');
        add_number(&text, line);
    }
    out_text[text.count] = 0;
}
