#include "client/scripts/python_layout.h"

#include <string.h>

/* ---- CPython 3.11, on machines of 64 bits: its cpython/pystate.h, cpython/code.h,
 * cpython/unicodeobject.h and internal/pycore_frame.h, held to them by
 * tests/e2e/python_frames_test.py, as all that stands here. */
enum {
    STATE_CFRAME = 56,
    FRAME_CODE = 32,
    FRAME_PREVIOUS = 48,
    FRAME_INSTRUCTION = 56,
    FRAME_IS_ENTRY = 68, /* the evaluator's call began with it */
    OBJECT_TYPE = 8,
    OBJECT_SIZE = 16,
    CODE_FIRST_LINE = 72,
    CODE_FILE = 112,
    CODE_FUNCTION = 128,
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
enum { IS_COMPACT = 1 << 5, IS_READY = 1 << 7 };

static const struct ml_python_layout layout_3_11 = {
    .calls = ML_PYTHON_CALLS_APART,
    .state_current = STATE_CFRAME,
    .frame_code = FRAME_CODE,
    .frame_previous = FRAME_PREVIOUS,
    .frame_instruction = FRAME_INSTRUCTION,
    .frame_owner = FRAME_IS_ENTRY,
    .object_type = OBJECT_TYPE,
    .object_size = OBJECT_SIZE,
    .code_first_line = CODE_FIRST_LINE,
    .code_file = CODE_FILE,
    .code_function = CODE_FUNCTION,
    .code_lines = CODE_LINES,
    .code_instructions = CODE_INSTRUCTIONS,
    .bytes_data = BYTES_DATA,
    .text_length = TEXT_LENGTH,
    .text_hash = TEXT_HASH,
    .text_state = TEXT_STATE,
    .text_ascii_data = TEXT_ASCII_DATA,
    .text_data = TEXT_DATA,
    .text_bits = IS_COMPACT | IS_READY,
};

/* ---- CPython 3.13 and later: internal/pycore_runtime.h, internal/pycore_debug_offsets.h */

/* What is read of the table. */
enum entry {
    STATE_SIZE,
    STATE_FRAME,
    FRAME_SIZE,
    FRAME_CALLER,
    FRAME_EXECUTABLE,
    FRAME_AT,
    FRAME_LOCALS,
    FRAME_OWNER,
    CODE_SIZE,
    CODE_FILE_NAME,
    CODE_NAME,
    CODE_QUALIFIED_NAME,
    CODE_LINE_TABLE,
    CODE_LINE,
    CODE_ADAPTIVE,
    TYPE,
    BYTES_SIZE,
    BYTES_COUNT,
    BYTES_BYTES,
    UNICODE_SIZE,
    UNICODE_STATE,
    UNICODE_LENGTH,
    UNICODE_ASCII_SIZE,
    ENTRIES
};

/* Each one's place in the table, in words. */
static const uint8_t places_3_13[ENTRIES] = {
    [STATE_SIZE] = 19,         [STATE_FRAME] = 23,
    [FRAME_SIZE] = 28,         [FRAME_CALLER] = 29,
    [FRAME_EXECUTABLE] = 30,   [FRAME_AT] = 31,
    [FRAME_LOCALS] = 32,       [FRAME_OWNER] = 33,
    [CODE_SIZE] = 34,          [CODE_FILE_NAME] = 35,
    [CODE_NAME] = 36,          [CODE_QUALIFIED_NAME] = 37,
    [CODE_LINE_TABLE] = 38,    [CODE_LINE] = 39,
    [CODE_ADAPTIVE] = 43,      [TYPE] = 45,
    [BYTES_SIZE] = 64,         [BYTES_COUNT] = 65,
    [BYTES_BYTES] = 66,        [UNICODE_SIZE] = 67,
    [UNICODE_STATE] = 68,      [UNICODE_LENGTH] = 69,
    [UNICODE_ASCII_SIZE] = 70,
};

static const uint8_t places_3_14[ENTRIES] = {
    [STATE_SIZE] = 22,         [STATE_FRAME] = 26,
    [FRAME_SIZE] = 31,         [FRAME_CALLER] = 32,
    [FRAME_EXECUTABLE] = 33,   [FRAME_AT] = 34,
    [FRAME_LOCALS] = 35,       [FRAME_OWNER] = 36,
    [CODE_SIZE] = 39,          [CODE_FILE_NAME] = 40,
    [CODE_NAME] = 41,          [CODE_QUALIFIED_NAME] = 42,
    [CODE_LINE_TABLE] = 43,    [CODE_LINE] = 44,
    [CODE_ADAPTIVE] = 48,      [TYPE] = 51,
    [BYTES_SIZE] = 74,         [BYTES_COUNT] = 75,
    [BYTES_BYTES] = 76,        [UNICODE_SIZE] = 77,
    [UNICODE_STATE] = 78,      [UNICODE_LENGTH] = 79,
    [UNICODE_ASCII_SIZE] = 80,
};

/* What is not in the table. */
enum {
    STATE_EXECUTOR_3_14 = 272, /* the machine code that the thread's innermost call runs */
    TAGS_3_14 = 3,
    FIRST_TRACEABLE_BEHIND = 16, /* before the instructions */
    UTF8_BYTES = 16              /* of a text that is not ASCII, between its state and its data */
};

enum { TABLE_VERSION = 1, TABLE_FREE_THREADED = 2, WORD = sizeof(uint64_t) };

static uint64_t table_word(const void *offsets, uint32_t number) {
    uint64_t word;
    memcpy(&word, (const uint8_t *)offsets + (size_t)number * WORD, sizeof(word));
    return word;
}

/* The table is of that version, with the lock that the reading relies on. */
static bool is_table(const void *offsets, uint32_t version) {
    static const char cookie[WORD] = {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'};
    return memcmp(offsets, cookie, sizeof(cookie)) == 0 &&
           table_word(offsets, TABLE_VERSION) == version &&
           table_word(offsets, TABLE_FREE_THREADED) == 0;
}

/* A member of `bytes` bytes, on their multiple, of an object of `size`. */
static bool is_member(uint64_t offset, uint64_t bytes, uint64_t size) {
    return offset % bytes == 0 && offset < size && size - offset >= bytes;
}

static bool are_frames(const uint64_t at[ENTRIES]) {
    enum { FRAME_MOST = 256, STATE_MOST = 4096 };
    const uint64_t size = at[FRAME_SIZE];
    return at[STATE_SIZE] <= STATE_MOST && is_member(at[STATE_FRAME], WORD, at[STATE_SIZE]) &&
           size <= FRAME_MOST && is_member(at[FRAME_LOCALS], WORD, size) &&
           is_member(at[FRAME_CALLER], WORD, at[FRAME_LOCALS]) &&
           is_member(at[FRAME_EXECUTABLE], WORD, at[FRAME_LOCALS]) &&
           is_member(at[FRAME_AT], WORD, at[FRAME_LOCALS]) &&
           is_member(at[FRAME_OWNER], 1, at[FRAME_LOCALS]) &&
           at[FRAME_CALLER] != at[FRAME_EXECUTABLE] && at[FRAME_CALLER] != at[FRAME_AT] &&
           at[FRAME_EXECUTABLE] != at[FRAME_AT] && at[FRAME_OWNER] > at[FRAME_AT];
}

/* The names lie side by side; the instructions are an object's last member. */
static bool are_codes(const uint64_t at[ENTRIES]) {
    enum { CODE_MOST = 512 };
    const uint64_t end = at[CODE_ADAPTIVE];
    return at[CODE_SIZE] <= CODE_MOST && end % WORD == 0 && end < at[CODE_SIZE] &&
           at[CODE_SIZE] - end <= WORD && is_member(at[CODE_FILE_NAME], WORD, end) &&
           at[CODE_NAME] == at[CODE_FILE_NAME] + WORD &&
           at[CODE_QUALIFIED_NAME] == at[CODE_NAME] + WORD &&
           at[CODE_LINE_TABLE] == at[CODE_QUALIFIED_NAME] + WORD &&
           at[CODE_LINE_TABLE] + WORD <= end - FIRST_TRACEABLE_BEHIND &&
           is_member(at[CODE_LINE], WORD / 2, at[CODE_FILE_NAME]) && at[CODE_LINE] > OBJECT_SIZE;
}

/* Objects begin as those of 3.11 do. A text has lost a word since. */
static bool are_objects(const uint64_t at[ENTRIES]) {
    return at[TYPE] == OBJECT_TYPE && at[BYTES_COUNT] == OBJECT_SIZE &&
           at[BYTES_BYTES] == BYTES_DATA && at[BYTES_SIZE] > BYTES_DATA &&
           at[BYTES_SIZE] <= BYTES_DATA + WORD && at[UNICODE_LENGTH] == TEXT_LENGTH &&
           at[UNICODE_STATE] == TEXT_STATE && at[UNICODE_ASCII_SIZE] == TEXT_STATE + WORD &&
           at[UNICODE_SIZE] == at[UNICODE_ASCII_SIZE] + UTF8_BYTES + WORD;
}

static struct ml_python_layout layout_by(const uint64_t at[ENTRIES]) {
    return (struct ml_python_layout){
        .calls = ML_PYTHON_CALLS_AMONG,
        .state_current = (uint16_t)at[STATE_FRAME],
        .frame_code = (uint16_t)at[FRAME_EXECUTABLE],
        .frame_previous = (uint16_t)at[FRAME_CALLER],
        .frame_instruction = (uint16_t)at[FRAME_AT],
        .frame_owner = (uint16_t)at[FRAME_OWNER],
        .object_type = (uint16_t)at[TYPE],
        .object_size = (uint16_t)at[BYTES_COUNT],
        .code_first_line = (uint16_t)at[CODE_LINE],
        .code_file = (uint16_t)at[CODE_FILE_NAME],
        .code_function = (uint16_t)at[CODE_QUALIFIED_NAME],
        .code_lines = (uint16_t)at[CODE_LINE_TABLE],
        .code_first_traceable = (uint16_t)(at[CODE_ADAPTIVE] - FIRST_TRACEABLE_BEHIND),
        .code_instructions = (uint16_t)at[CODE_ADAPTIVE],
        .bytes_data = (uint16_t)at[BYTES_BYTES],
        .text_length = (uint16_t)at[UNICODE_LENGTH],
        .text_hash = TEXT_HASH,
        .text_state = (uint16_t)at[UNICODE_STATE],
        .text_ascii_data = (uint16_t)at[UNICODE_ASCII_SIZE],
        .text_data = (uint16_t)(at[UNICODE_ASCII_SIZE] + UTF8_BYTES),
        .text_bits = IS_COMPACT,
    };
}

static bool
read_table(const void *offsets, const uint8_t places[ENTRIES], struct ml_python_layout *out) {
    uint64_t at[ENTRIES];
    for (uint32_t i = 0; i < ENTRIES; i++) {
        at[i] = table_word(offsets, places[i]);
    }
    if (!are_objects(at) || !are_codes(at) || !are_frames(at)) {
        return false;
    }
    *out = layout_by(at);
    return true;
}

/* ---- versions */

enum { VERSION_SHIFT = 16, STAGE_SHIFT = 4, STAGE_MASK = 15, CANDIDATE = 12 };
enum { VERSION_3_11 = 0x030b, VERSION_3_13 = 0x030d, VERSION_3_14 = 0x030e };

/* Before its candidates a version changes what lies where. */
static bool is_settled(uint32_t version) {
    return (version >> STAGE_SHIFT & STAGE_MASK) >= CANDIDATE;
}

bool ml_python_layout_of(
    uint32_t version, const void *offsets, bool compiles, struct ml_python_layout *out_layout
) {
    const uint32_t minor = version >> VERSION_SHIFT;
    if (minor == VERSION_3_11) {
        *out_layout = layout_3_11;
        return true;
    }
    if (offsets == NULL || !is_settled(version) || !is_table(offsets, version)) {
        return false;
    }
    if (minor == VERSION_3_13) { /* nothing in a state tells that its machine code runs */
        return !compiles && read_table(offsets, places_3_13, out_layout);
    }
    if (minor != VERSION_3_14 || !read_table(offsets, places_3_14, out_layout)) {
        return false;
    }
    out_layout->tags = TAGS_3_14;
    out_layout->state_compiled = compiles ? STATE_EXECUTOR_3_14 : 0;
    return !compiles ||
           is_member(STATE_EXECUTOR_3_14, WORD, table_word(offsets, places_3_14[STATE_SIZE]));
}
