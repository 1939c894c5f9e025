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
    tcase_add_test(cases, code_at_an_address_where_other_code_lay_is_told_apart);
    tcase_add_test(cases, names_are_utf8_of_each_width);
    tcase_add_test(cases, long_names_lose_their_end_and_long_paths_their_beginning);
    tcase_add_test(cases, a_program_without_python_has_none);
    return run_suite("client/scripts/python", cases);
}
