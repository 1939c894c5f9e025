#include "client/scripts/python.h"

#include <check.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tests/suite.h"

/* CPython 3.11's records as python.c reads them; tests/e2e/python_frames_test.py holds both to
 * CPython's headers. */
struct text {
    uint64_t references;
    const void *type;
    uint64_t length, hash;
    uint32_t state;
    uint32_t padding;
    uint64_t wide;
    uint8_t ascii[1200];
};

struct lines {
    uint64_t references;
    const void *type;
    uint64_t size, hash;
    uint8_t bytes[64];
};

struct code {
    uint8_t before_type[8];
    const void *type;
    uint8_t before_line[72 - 16];
    uint32_t first_line;
    uint8_t before_file[112 - 76];
    const void *file;
    uint8_t before_function[8];
    const void *function;
    const void *lines;
    uint8_t before_instructions[184 - 144];
    uint16_t instructions[64];
};

struct frame {
    uint8_t before_code[32];
    const void *code;
    uint8_t before_previous[8];
    const struct frame *previous;
    const void *at;
    uint32_t top;
    uint8_t is_entry;
};

struct call { /* of the evaluator */
    uint64_t tracing;
    const struct frame *current;
    const struct call *previous;
};

struct state {
    uint8_t before_call[56];
    const struct call *call;
};

_Static_assert(offsetof(struct code, first_line) == 72, "");
_Static_assert(offsetof(struct code, file) == 112, "");
_Static_assert(offsetof(struct code, function) == 128, "");
_Static_assert(offsetof(struct code, lines) == 136, "");
_Static_assert(offsetof(struct code, instructions) == 184, "");
_Static_assert(offsetof(struct text, ascii) == 48, "");
_Static_assert(offsetof(struct lines, bytes) == 32, "");
_Static_assert(offsetof(struct frame, previous) == 48, "");
_Static_assert(offsetof(struct frame, is_entry) == 68, "");

enum { ASCII = 0xe4, LATIN = 0xa4, WIDE = 0xa8, WIDEST = 0xb0, DEEPEST = ML_PYTHON_DEPTH_MAX + 1 };

static struct text function, file;
static struct lines lines;
static struct code code;
static struct frame frames[DEEPEST]; /* the innermost first */
static struct call calls[3];
static struct state state;
static const void *holder, *own;
static const char type[] = "code";

static const void *holder_now(void) {
    return holder;
}

static const void *own_now(void) {
    return own;
}

static struct ml_python python;

static void write(struct text *text, const char *bytes) {
    text->state = ASCII;
    text->length = strlen(bytes);
    memcpy(text->ascii, bytes, text->length);
}

/* So many functions: one by the evaluator's innermost call, all others by the one before. */
static void begin(uint32_t depth) {
    memset(frames, 0, sizeof(frames));
    memset(&code, 0, sizeof(code));
    write(&function, "work");
    write(&file, "/a.py");
    /* Two instructions of the first line, one of the next, one of none. */
    static const uint8_t table[] = {0x80 | 1, 0, 0x80 | 11 << 3, 0, 0, 0x80 | 15 << 3};
    memcpy(lines.bytes, table, sizeof(table));
    lines.size = sizeof(table);
    code.type = type;
    code.first_line = 7;
    code.file = &file;
    code.function = &function;
    code.lines = &lines;
    for (uint32_t i = 0; i < depth; i++) {
        frames[i].code = &code;
        frames[i].at = &code.instructions[i % 4];
        frames[i].previous = i + 1 < depth ? &frames[i + 1] : NULL;
    }
    calls[0] = (struct call){.current = &frames[0], .previous = &calls[1]};
    calls[1] = (struct call){.current = depth > 1 ? &frames[1] : NULL, .previous = &calls[2]};
    calls[2] = (struct call){.current = NULL};
    frames[0].is_entry = 1;
    if (depth > 1) {
        frames[depth - 1].is_entry = 1;
    }
    state.call = &calls[0];
    holder = &state;
    own = &state;
    python = (struct ml_python){.holder = holder_now, .own = own_now, .code_type = (uintptr_t)type};
    ck_assert(ml_python_layout_of(0x030b02f0, NULL, false, &python.layout));
}

static struct ml_python_frame found[ML_PYTHON_FRAMES_MAX];

static void text_is(const struct ml_python_frame *frame, const char *wanted) {
    char text[ML_PYTHON_TEXT_BYTES];
    memset(text, 'x', sizeof(text));
    ml_python_text(&python, frame, text);
    ck_assert_str_eq(text, wanted);
}

START_TEST(each_function_stands_with_the_call_that_runs_it) {
    begin(5);
    ck_assert_uint_eq(ml_python_stack(&python, found), 5);
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_ptr_eq(found[i].code, &code);
        ck_assert_ptr_eq(found[i].at, frames[4 - i].at);
        ck_assert_uint_eq(found[i].place, (uintptr_t)&calls[i == 4 ? 0 : 1]);
    }
}
END_TEST

START_TEST(the_lines_are_those_of_the_table) {
    begin(4);
    ck_assert_uint_eq(ml_python_stack(&python, found), 4);
    text_is(&found[3], "py::work:/a.py:7");
    text_is(&found[2], "py::work:/a.py:7");
    text_is(&found[1], "py::work:/a.py:8");
    text_is(&found[0], "py::work:/a.py");
    found[0].at = (const uint8_t *)code.instructions - 2; /* none has run */
    text_is(&found[0], "py::work:/a.py:7");
    found[0].at = &code.instructions[60]; /* behind the table's end */
    text_is(&found[0], "py::work:/a.py");
}
END_TEST

START_TEST(lines_far_away_and_before_the_first_are_found) {
    /* 300 lines on (of 6 bits, the sign lowest: 600), and 305 back. */
    static const uint8_t table[] = {
        0x80 | 14 << 3, 0x40 | 24, 9, 1, 1, 1, 0x80 | 13 << 3, 0x40 | 35, 9};
    begin(2);
    memcpy(lines.bytes, table, sizeof(table));
    lines.size = sizeof(table);
    ck_assert_uint_eq(ml_python_stack(&python, found), 2);
    text_is(&found[1], "py::work:/a.py:307");
    text_is(&found[0], "py::work:/a.py:2");
    lines.size = 2; /* a table that ends within an entry */
    text_is(&found[1], "py::work:/a.py:19");
    lines.size = 0;
    text_is(&found[1], "py::work:/a.py");
}
END_TEST

START_TEST(nothing_is_said_of_a_thread_that_does_not_hold_the_lock) {
    begin(3);
    holder = NULL;
    ck_assert_uint_eq(ml_python_stack(&python, found), 0);
    holder = &calls; /* another thread's */
    ck_assert_uint_eq(ml_python_stack(&python, found), 0);
    own = NULL;
    ck_assert_uint_eq(ml_python_stack(&python, found), 0);
    ck_assert_uint_eq(ml_python_stack(&(struct ml_python){0}, found), 0);
}
END_TEST

START_TEST(nothing_is_said_where_something_is_not_as_it_must_be) {
    begin(5);
    frames[3].code = &file; /* no code */
    ck_assert_uint_eq(ml_python_stack(&python, found), 0);
    begin(5);
    frames[3].code = NULL;
    ck_assert_uint_eq(ml_python_stack(&python, found), 0);
    begin(5);
    calls[1].current = &frames[2]; /* the evaluator's call is of another caller */
    ck_assert_uint_eq(ml_python_stack(&python, found), 0);
    begin(5);
    calls[0].previous = NULL;
    ck_assert_uint_eq(ml_python_stack(&python, found), 0);
    begin(5);
    frames[4].previous = &frames[0]; /* a circle */
    frames[4].is_entry = 0;
    frames[0].is_entry = 0;
    ck_assert_uint_eq(ml_python_stack(&python, found), 0);
    begin(0);
    state.call = NULL;
    ck_assert_uint_eq(ml_python_stack(&python, found), 0);
}
END_TEST

START_TEST(of_a_deep_stack_both_ends_stay_and_move_in_steps) {
    uint32_t last = 0;
    for (uint32_t depth = 230; depth < 900; depth++) {
        begin(depth);
        const uint32_t count = ml_python_stack(&python, found);
        ck_assert_uint_le(count, ML_PYTHON_FRAMES_MAX);
        if (depth < ML_PYTHON_FRAMES_MAX) {
            ck_assert_uint_eq(count, depth);
            continue;
        }
        ck_assert_ptr_null(found[ML_PYTHON_OUTER].code);
        const uint32_t inner = count - ML_PYTHON_OUTER - 1;
        ck_assert_uint_ge(inner, ML_PYTHON_INNER_MIN);
        ck_assert_uint_eq((depth - inner) % ML_PYTHON_STEP, 0);
        ck_assert_ptr_eq(found[0].at, frames[depth - 1].at);
        ck_assert_ptr_eq(found[ML_PYTHON_OUTER - 1].at, frames[depth - ML_PYTHON_OUTER].at);
        ck_assert_ptr_eq(found[ML_PYTHON_OUTER + 1].at, frames[inner - 1].at);
        ck_assert_ptr_eq(found[count - 1].at, frames[0].at);
        ck_assert(inner == last + 1 || inner == ML_PYTHON_INNER_MIN || last == 0);
        last = inner;
    }
    begin(DEEPEST);
    ck_assert_uint_eq(ml_python_stack(&python, found), 0);
}
END_TEST

/* ---- of 3.14: the records of the evaluator's calls lie among those of functions */

struct code_among {
    uint8_t before_type[8];
    const void *type;
    uint64_t units;
    uint8_t before_line[68 - 24];
    uint32_t first_line;
    uint8_t before_file[112 - 72];
    const void *file, *name, *function, *lines;
    uint8_t before_traceable[192 - 144];
    uint32_t first_traceable;
    uint8_t before_instructions[208 - 196];
    uint16_t instructions[64];
};

struct frame_among {
    uintptr_t code;
    const struct frame_among *previous;
    uint8_t before_at[56 - 16];
    const void *at;
    uint8_t before_owner[74 - 64];
    uint8_t owner;
    uint8_t rest[80 - 75];
};

_Static_assert(offsetof(struct code_among, first_traceable) == 192, "");
_Static_assert(offsetof(struct code_among, instructions) == 208, "");
_Static_assert(offsetof(struct code_among, lines) == 136, "");
_Static_assert(offsetof(struct frame_among, owner) == 74, "");

enum { THREADS = 0, GENERATORS = 1, CALLS = 3, TAG = 1, AMONG_MOST = 2000 };

static struct code_among code_among, cleanup;
static struct frame_among among[AMONG_MOST]; /* the innermost first */
static struct {
    uint8_t before_frame[72];
    const struct frame_among *frame;
    uint8_t before_compiled[272 - 80];
    const void *compiled;
} state_among;
static const char nobody[8];

static void set_layout(void) {
    static const uint16_t values[][2] = {
        {22, 832}, {26, 72},  {31, 88},  {32, 8},   {33, 0},   {34, 56}, {35, 80},  {36, 74},
        {39, 216}, {40, 112}, {41, 120}, {42, 128}, {43, 136}, {44, 68}, {48, 208}, {51, 8},
        {74, 40},  {75, 16},  {76, 32},  {77, 64},  {78, 32},  {79, 16}, {80, 40}};
    uint64_t table[ML_PYTHON_OFFSETS_BYTES / 8] = {0, 0x030e08f0};
    memcpy(table, "xdebugpy", 8);
    for (uint32_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        table[values[i][0]] = values[i][1];
    }
    ck_assert(ml_python_layout_of(0x030e08f0, table, true, &python.layout));
}

/* `owners`: a digit a record, the innermost first; `i`: of the interpreter's own code. */
static uint32_t begin_among(const char *owners) {
    const uint32_t count = (uint32_t)strlen(owners);
    begin(1);
    set_layout();
    memset(among, 0, sizeof(among));
    memcpy(file.ascii - 8, "/a.py", 5); /* texts are shorter by a word */
    memcpy(function.ascii - 8, "work", 4);
    code_among = (struct code_among){.type = type, .units = 64, .first_line = 7, .file = &file};
    code_among.function = &function;
    code_among.lines = &lines;
    cleanup = code_among;
    cleanup.first_traceable = 4;
    cleanup.units = 3;
    for (uint32_t i = 0; i < count; i++) {
        const bool is_cleanup = owners[i] == 'i';
        among[i].owner = is_cleanup ? THREADS : (uint8_t)(owners[i] - '0');
        among[i].code = among[i].owner == CALLS ? (uintptr_t)nobody
                                                : (uintptr_t)(is_cleanup ? &cleanup : &code_among);
        among[i].code |= i % 2 == 0 ? TAG : 0;
        among[i].at = (is_cleanup ? &cleanup : &code_among)->instructions + i % 3;
        among[i].previous = i + 1 < count ? &among[i + 1] : NULL;
    }
    state_among.frame = count != 0 ? &among[0] : NULL;
    state_among.compiled = NULL;
    holder = &state_among;
    own = &state_among;
    return ml_python_stack(&python, found);
}

START_TEST(functions_among_calls_stand_with_the_call_that_runs_them) {
    ck_assert_uint_eq(begin_among("0130i03"), 4);
    for (uint32_t i = 0; i < 4; i++) {
        static const uint32_t numbers[] = {5, 3, 1, 0};
        ck_assert_ptr_eq(found[i].code, &code_among);
        ck_assert_ptr_eq(found[i].at, among[numbers[i]].at);
        ck_assert_uint_eq(found[i].place, (uintptr_t)&among[i < 2 ? 6 : 2]);
    }
    text_is(&found[3], "py::work:/a.py:7");
    text_is(&found[0], "py::work:/a.py:8");
    /* A function has returned, and what it leaves calls others. */
    ck_assert_uint_eq(begin_among("303303"), 2);
    ck_assert_uint_eq(found[1].place, (uintptr_t)&among[2]);
    ck_assert_uint_eq(found[0].place, (uintptr_t)&among[5]);
    ck_assert_uint_eq(begin_among(""), 0);
    ck_assert_uint_eq(begin_among("3"), 0);
}
END_TEST

START_TEST(nothing_is_said_where_calls_among_functions_are_odd) {
    ck_assert_uint_eq(begin_among("000"), 0); /* no call runs them */
    ck_assert_uint_eq(begin_among("030"), 0);
    ck_assert_uint_eq(begin_among("040403"), 0); /* owners that are not known */
    ck_assert_uint_eq(begin_among("0930303"), 0);
    ck_assert_uint_eq(begin_among("03030i"), 0);
    static const char good[] = "013013";
    ck_assert_uint_eq(begin_among(good), 4);
    state_among.frame = (const void *)((uintptr_t)&among[0] + 4);
    ck_assert_uint_eq(ml_python_stack(&python, found), 0);
    for (uint32_t i = 0; i < 5; i++) {
        const uintptr_t odd[] = {0, (uintptr_t)&file, (uintptr_t)&code_among + 4, TAG};
        for (uint32_t k = 0; k < sizeof(odd) / sizeof(odd[0]); k++) {
            (void)begin_among(good);
            among[i].code = odd[k];
            ck_assert_uint_eq(ml_python_stack(&python, found), 0);
        }
        if (good[i] != '3') {
            (void)begin_among(good);
            among[i].at = code_among.instructions - 1;
            ck_assert_uint_eq(ml_python_stack(&python, found), 0);
            among[i].at = code_among.instructions + 64;
            ck_assert_uint_eq(ml_python_stack(&python, found), 0);
        }
        for (uint32_t to = 0; to <= i; to++) { /* circles */
            (void)begin_among(good);
            among[i].previous = &among[to];
            ck_assert_uint_eq(ml_python_stack(&python, found), 0);
        }
    }
}
END_TEST

START_TEST(of_machine_code_the_innermost_line_is_not_told) {
    ck_assert_uint_eq(begin_among("003"), 2);
    state_among.compiled = type;
    ck_assert_uint_eq(ml_python_stack(&python, found), 2);
    text_is(&found[1], "py::work:/a.py");
    text_is(&found[0], "py::work:/a.py:7");
}
END_TEST

START_TEST(of_a_deep_stack_among_calls_each_function_kept_has_its_place) {
    static char owners[AMONG_MOST];
    static uint32_t functions[AMONG_MOST]; /* the numbers of their records */
    for (uint32_t depth = 230; depth < 600; depth++) {
        uint32_t end = 0;
        for (uint32_t i = 0; i < depth; i++) { /* calls of different counts of functions */
            functions[i] = end;
            owners[end++] = '0';
            if (i == depth - 1 || i * i % 7 == 1) {
                owners[end++] = '3';
            }
        }
        owners[end] = 0;
        const uint32_t count = begin_among(owners);
        ck_assert_uint_gt(count, ML_PYTHON_FRAMES_MAX - ML_PYTHON_STEP - 10);
        for (uint32_t slot = 0; slot < count; slot++) {
            if (found[slot].code == NULL) {
                ck_assert_uint_eq(found[slot].place, found[slot + 1].place);
                continue;
            }
            const uint32_t number =
                functions[slot < ML_PYTHON_OUTER ? depth - 1 - slot : count - 1 - slot];
            const uint32_t call = (uint32_t)(strchr(owners + number, '3') - owners);
            ck_assert_ptr_eq(found[slot].at, among[number].at);
            ck_assert_uint_eq(found[slot].place, (uintptr_t)&among[call]);
        }
    }
}
END_TEST

START_TEST(code_at_an_address_where_other_code_lay_is_told_apart) {
    begin(1);
    ck_assert_uint_eq(ml_python_stack(&python, found), 1);
    const uint64_t before = found[0].identity;
    ck_assert_uint_eq(ml_python_stack(&python, found), 1);
    ck_assert_uint_eq(found[0].identity, before);
    code.first_line++;
    ck_assert_uint_eq(ml_python_stack(&python, found), 1);
    ck_assert_uint_ne(found[0].identity, before);
    code.first_line--;
    file.hash++;
    ck_assert_uint_eq(ml_python_stack(&python, found), 1);
    ck_assert_uint_ne(found[0].identity, before);
}
END_TEST

START_TEST(names_are_utf8_of_each_width) {
    begin(1);
    ck_assert_uint_eq(ml_python_stack(&python, found), 1);
    uint8_t *data = function.ascii + 24; /* behind the longer head of what is not ASCII */
    function.state = LATIN;
    function.length = 2;
    memcpy(data, "g\xfc", 2);
    text_is(&found[0], "py::g\xc3\xbc:/a.py:7");
    function.state = WIDE;
    memcpy(data, (const uint16_t[]){0x65e5, ':'}, 4);
    text_is(&found[0], "py::\xe6\x97\xa5.:/a.py:7");
    function.state = WIDEST;
    memcpy(data, (const uint32_t[]){0x1f600, 'x'}, 8);
    text_is(&found[0], "py::\xf0\x9f\x98\x80x:/a.py:7");
    function.state = 0; /* not ready to be read */
    text_is(&found[0], "py:::/a.py:7");
}
END_TEST

START_TEST(long_names_lose_their_end_and_long_paths_their_beginning) {
    char text[ML_PYTHON_TEXT_BYTES];
    begin(1);
    ck_assert_uint_eq(ml_python_stack(&python, found), 1);
    memset(function.ascii, 'f', sizeof(function.ascii));
    memset(file.ascii, 'd', sizeof(file.ascii));
    memcpy(file.ascii + sizeof(file.ascii) - 5, "/a.py", 5);
    function.length = sizeof(function.ascii);
    file.length = sizeof(file.ascii);
    ml_python_text(&python, &found[0], text);
    ck_assert_uint_lt(strlen(text), sizeof(text));
    ck_assert_uint_gt(strlen(text), sizeof(text) - 20);
    ck_assert_str_eq(text + strlen(text) - 8, "d/a.py:7");
    ck_assert_ptr_nonnull(strstr(text, "f:d"));
}
END_TEST

START_TEST(a_program_without_python_has_none) {
    struct ml_python none = {.code_type = 1};
    ck_assert(!ml_python_find(&none));
    ck_assert_ptr_null(none.holder);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("python");
    tcase_add_test(cases, each_function_stands_with_the_call_that_runs_it);
    tcase_add_test(cases, the_lines_are_those_of_the_table);
    tcase_add_test(cases, lines_far_away_and_before_the_first_are_found);
    tcase_add_test(cases, nothing_is_said_of_a_thread_that_does_not_hold_the_lock);
    tcase_add_test(cases, nothing_is_said_where_something_is_not_as_it_must_be);
    tcase_add_test(cases, of_a_deep_stack_both_ends_stay_and_move_in_steps);
    tcase_add_test(cases, functions_among_calls_stand_with_the_call_that_runs_them);
    tcase_add_test(cases, nothing_is_said_where_calls_among_functions_are_odd);
    tcase_add_test(cases, of_machine_code_the_innermost_line_is_not_told);
    tcase_add_test(cases, of_a_deep_stack_among_calls_each_function_kept_has_its_place);
    tcase_add_test(cases, code_at_an_address_where_other_code_lay_is_told_apart);
    tcase_add_test(cases, names_are_utf8_of_each_width);
    tcase_add_test(cases, long_names_lose_their_end_and_long_paths_their_beginning);
    tcase_add_test(cases, a_program_without_python_has_none);
    return run_suite("client/scripts/python", cases);
}
