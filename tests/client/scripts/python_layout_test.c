#include "client/scripts/python_layout.h"

#include <check.h>
#include <string.h>

#include "tests/suite.h"

enum {
    PYTHON_3_11 = 0x030b02f0,
    PYTHON_3_12 = 0x030c00f0,
    PYTHON_3_13 = 0x030d05f0,
    PYTHON_3_14 = 0x030e08f0,
    PYTHON_3_14_ALPHA = 0x030e00a7,
    PYTHON_3_14_CANDIDATE = 0x030e00c1,
    PYTHON_3_15 = 0x030f00f0,
    WORDS = ML_PYTHON_OFFSETS_BYTES / 8,
    VERSION = 1,
    FREE_THREADED = 2
};

/* An entry of the table: where it stands, and what Debian's interpreter has there. */
struct entry {
    uint32_t place;
    uint64_t value;
};

static const struct entry of_3_13[] = {
    {19, 304}, {23, 72},  {28, 80},  {29, 8},   {30, 0},   {31, 56}, {32, 72},  {33, 70},
    {34, 208}, {35, 112}, {36, 120}, {37, 128}, {38, 136}, {39, 68}, {43, 200}, {45, 8},
    {64, 40},  {65, 16},  {66, 32},  {67, 64},  {68, 32},  {69, 16}, {70, 40},
};

static const struct entry of_3_14[] = {
    {22, 832}, {26, 72},  {31, 88},  {32, 8},   {33, 0},   {34, 56}, {35, 80},  {36, 74},
    {39, 216}, {40, 112}, {41, 120}, {42, 128}, {43, 136}, {44, 68}, {48, 208}, {51, 8},
    {74, 40},  {75, 16},  {76, 32},  {77, 64},  {78, 32},  {79, 16}, {80, 40},
};

enum { ENTRIES = sizeof(of_3_13) / sizeof(of_3_13[0]) };
_Static_assert(sizeof(of_3_14) == sizeof(of_3_13), "");

static uint64_t table[WORDS];
static struct ml_python_layout layout;

static void write_table(uint32_t version, const struct entry entries[ENTRIES]) {
    memset(table, 0xa5, sizeof(table)); /* what is not read may be anything */
    memcpy(table, "xdebugpy", 8);
    table[VERSION] = version;
    table[FREE_THREADED] = 0;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        table[entries[i].place] = entries[i].value;
    }
}

static bool reads(uint32_t version, bool compiles) {
    return ml_python_layout_of(version, table, compiles, &layout);
}

START_TEST(the_interpreters_own_table_is_taken) {
    write_table(PYTHON_3_13, of_3_13);
    ck_assert(reads(PYTHON_3_13, false));
    ck_assert_uint_eq(layout.state_current, 72);
    ck_assert_uint_eq(layout.frame_owner, 70);
    ck_assert_uint_eq(layout.code_instructions, 200);
    ck_assert_uint_eq(layout.text_data, 56);
    ck_assert_uint_eq(layout.tags, 0);
    write_table(PYTHON_3_14, of_3_14);
    ck_assert(reads(PYTHON_3_14, false));
    ck_assert_uint_eq(layout.frame_owner, 74);
    ck_assert_uint_eq(layout.code_first_traceable, 192);
    ck_assert_uint_eq(layout.tags, 3);
    ck_assert_uint_eq(layout.state_compiled, 0);
    table[26] = 80; /* another build's */
    ck_assert(reads(PYTHON_3_14, false));
    ck_assert_uint_eq(layout.state_current, 80);
}
END_TEST

START_TEST(versions_that_are_not_known_are_not_read) {
    ck_assert(ml_python_layout_of(PYTHON_3_11, NULL, false, &layout));
    ck_assert(!ml_python_layout_of(PYTHON_3_13, NULL, false, &layout));
    static const uint32_t others[] = {PYTHON_3_12, PYTHON_3_15, PYTHON_3_14_ALPHA, 0x02070000, 0};
    for (uint32_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        write_table(others[i], of_3_14);
        ck_assert(!reads(others[i], false));
    }
    write_table(PYTHON_3_14_CANDIDATE, of_3_14);
    ck_assert(reads(PYTHON_3_14_CANDIDATE, false));
    ck_assert(!reads(PYTHON_3_14, false)); /* the table is of another one */
}
END_TEST

START_TEST(an_interpreter_without_its_lock_or_with_machine_code_that_nothing_tells_is_not_read) {
    write_table(PYTHON_3_14, of_3_14);
    ck_assert(reads(PYTHON_3_14, true));
    ck_assert_uint_ne(layout.state_compiled, 0);
    table[22] = 272; /* the state has no room for it */
    ck_assert(!reads(PYTHON_3_14, true));
    write_table(PYTHON_3_14, of_3_14);
    table[FREE_THREADED] = 1;
    ck_assert(!reads(PYTHON_3_14, false));
    write_table(PYTHON_3_14, of_3_14);
    ((char *)table)[7] = 'Y';
    ck_assert(!reads(PYTHON_3_14, false));
    write_table(PYTHON_3_13, of_3_13);
    ck_assert(!reads(PYTHON_3_13, true));
}
END_TEST

static void refuses_odd_entries(uint32_t version, const struct entry entries[ENTRIES]) {
    for (uint32_t i = 0; i < ENTRIES; i++) {
        const uint64_t value = entries[i].value;
        const uint64_t odd[] = {
            value + (UINT64_C(1) << 16), value | UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 7};
        for (uint32_t k = 0; k < sizeof(odd) / sizeof(odd[0]); k++) {
            write_table(version, entries);
            table[entries[i].place] = odd[k];
            ck_assert_msg(!reads(version, false), "entry %u, %u", i, k);
        }
        /* A size may be another one, and an owner may lie at any byte; a member may not. */
        write_table(version, entries);
        table[entries[i].place] = value + 1;
        const bool is_byte = entries[i].place == entries[7].place;
        const bool is_size = i == 0 || i == 2 || i == 8 || i == 16;
        ck_assert_msg(is_byte || is_size || !reads(version, false), "entry %u", i);
    }
}

START_TEST(a_table_with_an_odd_entry_is_refused) {
    refuses_odd_entries(PYTHON_3_13, of_3_13);
    refuses_odd_entries(PYTHON_3_14, of_3_14);
    /* Each other one's. */
    write_table(PYTHON_3_13, of_3_14);
    ck_assert(!reads(PYTHON_3_13, false));
    write_table(PYTHON_3_14, of_3_13);
    ck_assert(!reads(PYTHON_3_14, false));
}
END_TEST

/* Whatever stands in it: what is taken lies within its object. */
START_TEST(any_words_leave_offsets_in_their_bounds) {
    uint64_t state = 1;
    write_table(PYTHON_3_14, of_3_14);
    for (uint32_t i = 0; i < 300000; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const struct entry *entry = &of_3_14[(state >> 33) % ENTRIES];
        table[entry->place] = i % 2 == 0 ? entry->value : state >> 40 & 0xf8;
        if (reads(PYTHON_3_14, false)) {
            ck_assert_uint_lt(layout.frame_owner, 256);
            ck_assert_uint_lt(layout.state_current, 4096);
            ck_assert_uint_lt(layout.code_instructions, 512);
            ck_assert_uint_lt(layout.code_first_traceable, layout.code_instructions);
            ck_assert_uint_ne(layout.frame_previous, layout.frame_code);
        }
    }
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("python_layout");
    tcase_add_test(cases, the_interpreters_own_table_is_taken);
    tcase_add_test(cases, versions_that_are_not_known_are_not_read);
    tcase_add_test(
        cases, an_interpreter_without_its_lock_or_with_machine_code_that_nothing_tells_is_not_read
    );
    tcase_add_test(cases, a_table_with_an_odd_entry_is_refused);
    tcase_add_test(cases, any_words_leave_offsets_in_their_bounds);
    return run_suite("client/scripts/python_layout", cases);
}
