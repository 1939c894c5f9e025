#include "base/entry/families.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/entry/elf_functions.h"
#include "tests/base/entry/bytes.h"
#include "tests/suite.h"

enum {
    CODE_AT = 0x200,
    CODE_BYTES = 0x4000,
    SYMBOLS_MAX = 256,
    NAMES_BYTES = 0x2000,
    STEP = 16, /* of functions */
    BASE = 0x10000000,
    ROOM = ADDRESS + BASE - 0x100000
};

#define MOVABLE PROLOGUE "\xff\xd0\x5b\x5d\xc3" /* and calls somebody */
#define KNOWN PROLOGUE "\x5b\x5d\xc3"
#define CALLS_BY_REGISTER "\xff\xd0\x55\x48\x89\xe5\xc3" /* call *%rax */

/* A program that is written down function by function. */
static struct object {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    uint8_t gap[CODE_AT - sizeof(Elf64_Ehdr) - sizeof(Elf64_Phdr)];
    uint8_t code[CODE_BYTES];
    Elf64_Sym symbols[SYMBOLS_MAX];
    char names[NAMES_BYTES];
    Elf64_Shdr sections[3];
} object;

static uint32_t symbols_count;
static uint32_t names_used;
static uint64_t code_used;

static struct ml_families families;
static struct ml_families_code code;

static void begin(const char *given) {
    memset(&object, 0, sizeof object);
    memset(object.code, 0xcc, sizeof object.code); /* int3, as linkers pad */
    memset(&families, 0, sizeof families);
    symbols_count = 1;
    names_used = 1;
    code_used = 0;
    ck_assert_int_eq(
        ml_allocator_families_read(given, strlen(given), &families.given), ML_ALLOCATOR_LIST_READ
    );
}

/* Another symbol for code that is there. */
static void put_name(const char *name, uint64_t at, uint64_t size) {
    ck_assert_uint_lt(symbols_count, SYMBOLS_MAX);
    ck_assert_uint_lt(names_used + strlen(name) + 1, NAMES_BYTES);
    object.symbols[symbols_count++] = (Elf64_Sym
    ){.st_name = names_used,
      .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
      .st_shndx = 1,
      .st_value = ADDRESS + CODE_AT + at,
      .st_size = size};
    memcpy(object.names + names_used, name, strlen(name) + 1);
    names_used += (uint32_t)strlen(name) + 1;
}

/* Returns where it lies in the code. */
static uint64_t put(const char *name, const char *bytes, size_t count_bytes) {
    const uint64_t at = code_used;
    ck_assert_uint_le(at + STEP, CODE_BYTES);
    memcpy(object.code + at, bytes, count_bytes);
    code_used += STEP;
    put_name(name, at, count_bytes);
    return at;
}

static void put_movable(const char *name) {
    (void)put(name, CODE(MOVABLE));
}

static void end(void) {
    memcpy(object.header.e_ident, ELFMAG, SELFMAG);
    object.header.e_ident[EI_CLASS] = ELFCLASS64;
    object.header.e_ident[EI_DATA] = ELFDATA2LSB;
    object.header.e_machine = EM_X86_64;
    object.header.e_type = ET_EXEC;
    object.header.e_phoff = offsetof(struct object, segment);
    object.header.e_phentsize = sizeof(Elf64_Phdr);
    object.header.e_phnum = 1;
    object.header.e_shoff = offsetof(struct object, sections);
    object.header.e_shentsize = sizeof(Elf64_Shdr);
    object.header.e_shnum = 3;
    object.segment = (Elf64_Phdr
    ){.p_type = PT_LOAD,
      .p_flags = PF_R | PF_X,
      .p_vaddr = ADDRESS,
      .p_filesz = CODE_AT + CODE_BYTES,
      .p_memsz = CODE_AT + CODE_BYTES};
    object.sections[1] = (Elf64_Shdr
    ){.sh_type = SHT_SYMTAB,
      .sh_offset = offsetof(struct object, symbols),
      .sh_size = symbols_count * sizeof(Elf64_Sym),
      .sh_entsize = sizeof(Elf64_Sym),
      .sh_link = 2};
    object.sections[2] = (Elf64_Shdr
    ){.sh_type = SHT_STRTAB, .sh_offset = offsetof(struct object, names), .sh_size = NAMES_BYTES};
}

static bool find(void) {
    struct ml_elf_code found[ML_ELF_SEGMENTS_MAX];
    end();
    families.file = (const uint8_t *)&object;
    families.file_bytes = sizeof object;
    families.base = BASE;
    families.may_push_calls = true;
    ck_assert_uint_eq(ml_elf_code_find(families.file, families.file_bytes, found), 1);
    code = (struct ml_families_code
    ){.bytes = families.file + found[0].offset,
      .count_bytes = found[0].count_bytes,
      .address = BASE + found[0].address};
    families.code = &code;
    families.code_count = 1;
    return ml_families_find(&families);
}

static struct ml_families_function *of(const char *name) {
    for (uint32_t i = 0; i < families.count; i++) {
        if (strcmp(families.functions[i].name, name) == 0) {
            return &families.functions[i];
        }
    }
    ck_abort_msg("%s is not there", name);
}

static bool is_taken(const char *name) {
    return ml_families_takes(&families, of(name));
}

START_TEST(a_family_with_both_ways_of_a_block_is_planned) {
    begin("pool=pool_");
    put_movable("pool_malloc");
    put_movable("pool_free");
    put_movable("main");
    ck_assert(find());
    ck_assert_uint_eq(families.count, 2);
    ck_assert_uint_eq(ml_families_plan(&families, ROOM), 2);
    ck_assert(is_taken("pool_malloc") && is_taken("pool_free"));
    /* Each to its own stub. */
    for (uint32_t i = 0; i < 2; i++) {
        const struct ml_families_function *one = &families.functions[i];
        int32_t distance = 0;
        ck_assert_uint_eq(one->address, BASE + ADDRESS + CODE_AT + i * STEP);
        ck_assert_uint_eq(one->plan.at, one->address);
        memcpy(&distance, one->plan.jump + 1, sizeof distance);
        ck_assert_uint_eq(
            one->address + ML_ENTRY_JUMP_BYTES + (uint64_t)(int64_t)distance,
            ROOM + i * ML_FAMILIES_ROOM_BYTES
        );
    }
}
END_TEST

START_TEST(where_what_releases_cannot_be_moved_its_family_is_left_alone_and_no_other) {
    begin("pool=pool_,own=own_");
    put_movable("pool_malloc");
    (void)put("pool_free", CODE(CALLS_BY_REGISTER));
    put_movable("own_malloc");
    put_movable("own_free");
    ck_assert(find());
    ck_assert_uint_eq(ml_families_plan(&families, ROOM), 2);
    ck_assert(!is_taken("pool_malloc") && !is_taken("pool_free"));
    ck_assert(is_taken("own_malloc") && is_taken("own_free"));
    const struct ml_allocator_family *pool = ml_families_of(&families, of("pool_malloc"));
    ck_assert_ptr_eq(pool->refused, of("pool_free"));
    ck_assert_int_eq(pool->refused->refusal, ML_ENTRY_CALL);
    ck_assert_ptr_null(ml_families_of(&families, of("own_free"))->refused);
}
END_TEST

START_TEST(what_allocates_and_cannot_be_moved_is_left_out_alone) {
    begin("pool=pool_");
    (void)put("pool_memalign", CODE(CALLS_BY_REGISTER));
    put_movable("pool_malloc");
    put_movable("pool_free");
    ck_assert(find());
    ck_assert_uint_eq(ml_families_plan(&families, ROOM), 2);
    ck_assert(!is_taken("pool_memalign"));
    ck_assert_int_eq(of("pool_memalign")->refusal, ML_ENTRY_CALL);
    ck_assert_ptr_null(ml_families_of(&families, of("pool_malloc"))->refused);
}
END_TEST

START_TEST(what_its_callers_may_know_whole_is_left_alone_with_its_family) {
    begin("pool=pool_");
    (void)put("pool_malloc", CODE(KNOWN));
    put_movable("pool_free");
    ck_assert(find());
    ck_assert_uint_eq(ml_families_plan(&families, ROOM), 0);
    ck_assert_int_eq(of("pool_malloc")->refusal, ML_ENTRY_KNOWN);
    ck_assert_ptr_eq(ml_families_of(&families, of("pool_free"))->refused, of("pool_malloc"));
}
END_TEST

START_TEST(what_its_callers_may_know_is_hooked_where_hooks_keep_registers) {
    begin("pool=pool_");
    families.may_keep = true;
    (void)put("pool_malloc", CODE(KNOWN));
    put_movable("pool_free");
    ck_assert(find());
    ck_assert_uint_eq(ml_families_plan(&families, ROOM), 2);
    ck_assert(is_taken("pool_malloc"));
    ck_assert(of("pool_malloc")->keeps);
    ck_assert(!of("pool_free")->keeps);
}
END_TEST

START_TEST(a_function_that_begins_in_anothers_first_bytes_is_not_written_over) {
    begin("pool=pool_");
    put_movable("pool_malloc");
    const uint64_t at = put("pool_free", CODE(MOVABLE));
    put_name("inner", at + 1, 4);
    ck_assert(find());
    ck_assert_uint_eq(ml_families_plan(&families, ROOM), 0);
    ck_assert_int_eq(of("pool_free")->refusal, ML_ENTRY_SHORT);
}
END_TEST

START_TEST(families_with_a_function_in_common_are_one) {
    begin("one=one_,two=two_");
    put_movable("one_malloc");
    const uint64_t at = put("one_free", CODE(MOVABLE));
    put_name("two_free", at, sizeof(MOVABLE) - 1);
    put_movable("two_malloc");
    ck_assert(find());
    ck_assert_uint_eq(families.count, 3);
    ck_assert_ptr_eq(
        ml_families_of(&families, of("one_malloc")), ml_families_of(&families, of("two_malloc"))
    );
    ck_assert_uint_eq(ml_families_plan(&families, ROOM), 3);
    /* By themselves the second would not be whole. */
    begin("two=two_");
    put_movable("two_malloc");
    ck_assert(!find());
}
END_TEST

START_TEST(of_libcs_names_all_four_make_an_allocator_of_an_executable) {
    static const char *const names[] = {"malloc", "free", "calloc", "realloc"};
    for (size_t count = 1; count <= 4; count++) {
        begin("");
        for (size_t i = 0; i < count; i++) {
            put_movable(names[i]);
        }
        ck_assert_int_eq(find(), count == 4);
        ck_assert_int_eq(ml_families_has_basics(&families.families[0]), count == 4);
    }
    begin("");
    put_movable("_Znwm");
    put_movable("_ZdlPv");
    ck_assert(!find());
    /* A library's further functions are beside those that are hooked by their names. */
    families.is_library = true;
    ck_assert(find());
}
END_TEST

static bool is_memlogs(const char *name) {
    return strcmp(name, "malloc") == 0 || strcmp(name, "free") == 0;
}

START_TEST(what_is_served_already_is_passed_over) {
    begin("");
    put_movable("malloc");
    put_movable("free");
    put_movable("mallocx");
    put_movable("dallocx");
    families.is_library = true;
    families.is_served = is_memlogs;
    ck_assert(find());
    ck_assert_uint_eq(families.count, 2);
    ck_assert_uint_eq(ml_families_plan(&families, ROOM), 2);
}
END_TEST

START_TEST(a_sanitizers_run_time_is_left_alone) {
    begin("pool=pool_");
    put_movable("pool_malloc");
    put_movable("pool_free");
    put_movable("__asan_init");
    ck_assert(!find());
    ck_assert(families.has_sanitizer);
}
END_TEST

START_TEST(more_functions_than_there_is_room_for_are_left_alone) {
    static const char *const members[] = {
        "aligned_alloc",
        "calloc",
        "cfree",
        "dallocx",
        "free",
        "free_sized",
        "malloc",
        "mallocx",
        "memalign",
        "moz_arena_calloc",
        "moz_arena_free",
        "moz_arena_malloc",
        "posix_memalign",
        "pvalloc",
        "rallocx",
        "realloc",
        "reallocarray",
        "reallocf",
        "sdallocx",
        "valloc",
        "xallocx",
        "__posix_memalign",
        "moz_arena_realloc",
        "moz_arena_memalign",
        "free_aligned_sized"};
    begin("a=a_,b=b_,c=c_,d=d_,e=e_,f=f_,g=g_,h=h_");
    for (int prefix = 'a'; prefix <= 'h'; prefix++) {
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
            char name[40];
            (void)snprintf(name, sizeof name, "%c_%s", prefix, members[i]);
            put_movable(name);
        }
    }
    ck_assert(!find());
    ck_assert(families.has_too_many);
    ck_assert_uint_eq(families.count, ML_FAMILIES_FUNCTIONS_MAX);
}
END_TEST

START_TEST(a_function_outside_of_the_code_is_not_read) {
    begin("pool=pool_");
    put_movable("pool_malloc");
    put_movable("pool_free");
    ck_assert(find());
    code.count_bytes = CODE_AT + STEP;
    ck_assert_uint_eq(ml_families_plan(&families, ROOM), 0);
    ck_assert_int_eq(of("pool_free")->refusal, ML_ENTRY_NOT_READABLE);
}
END_TEST

/* The same code, as it lies in memory under a debugger, or under who counts calls. */
static void load_with_breakpoint(uint8_t *loaded, uint64_t at) {
    memcpy(loaded, code.bytes, code.count_bytes);
    loaded[CODE_AT + at] = 0xcc;
    code.loaded = loaded;
}

START_TEST(a_breakpoint_at_an_entry_leaves_its_family_alone_and_one_behind_is_no_matter) {
    static uint8_t loaded[CODE_AT + CODE_BYTES];
    for (uint64_t inside = 0; inside < sizeof(MOVABLE) - 1; inside++) {
        begin("pool=pool_");
        const uint64_t at = put("pool_malloc", CODE(MOVABLE));
        put_movable("pool_free");
        ck_assert(find());
        load_with_breakpoint(loaded, at + inside);
        const uint32_t count = ml_families_plan(&families, ROOM);
        const bool is_moved = inside < of("pool_malloc")->plan.moved_bytes;
        ck_assert_uint_eq(count, is_moved ? 0 : 2);
        ck_assert_int_eq(
            of("pool_malloc")->refusal, is_moved ? ML_ENTRY_CHANGED : ML_ENTRY_PLANNED
        );
    }
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("families");
    tcase_add_test(cases, a_family_with_both_ways_of_a_block_is_planned);
    tcase_add_test(
        cases, where_what_releases_cannot_be_moved_its_family_is_left_alone_and_no_other
    );
    tcase_add_test(cases, what_allocates_and_cannot_be_moved_is_left_out_alone);
    tcase_add_test(cases, what_its_callers_may_know_whole_is_left_alone_with_its_family);
    tcase_add_test(cases, what_its_callers_may_know_is_hooked_where_hooks_keep_registers);
    tcase_add_test(cases, a_function_that_begins_in_anothers_first_bytes_is_not_written_over);
    tcase_add_test(cases, families_with_a_function_in_common_are_one);
    tcase_add_test(cases, of_libcs_names_all_four_make_an_allocator_of_an_executable);
    tcase_add_test(cases, what_is_served_already_is_passed_over);
    tcase_add_test(cases, a_sanitizers_run_time_is_left_alone);
    tcase_add_test(cases, more_functions_than_there_is_room_for_are_left_alone);
    tcase_add_test(cases, a_function_outside_of_the_code_is_not_read);
    tcase_add_test(
        cases, a_breakpoint_at_an_entry_leaves_its_family_alone_and_one_behind_is_no_matter
    );
    return run_suite("base/entry/families", cases);
}
