#include "base/entry/elf_functions.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

/* In memory of exactly its size, so that a sanitizer sees a step behind it. */
static uint8_t *read_file(const char *path, size_t *out_bytes) {
    struct stat status;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &status), 0);
    *out_bytes = (size_t)status.st_size;
    uint8_t *bytes = malloc(*out_bytes);
    for (size_t at = 0; at < *out_bytes;) {
        const ssize_t got = read(fd, bytes + at, *out_bytes - at);
        ck_assert_int_gt(got, 0);
        at += (size_t)got;
    }
    (void)close(fd);
    return bytes;
}

/* What is looked for, and what was told. */
struct search {
    const uint8_t *file;
    size_t file_bytes;
    const char *name;
    bool is_dynamic;
    struct ml_elf_function found;
    size_t found_count;
    size_t told;
    size_t most; /* told at most; 0: all */
};

static bool note(void *context, const struct ml_elf_function *function) {
    struct search *search = context;
    search->told++;
    const uint8_t *name = (const uint8_t *)function->name;
    ck_assert(name >= search->file && name < search->file + search->file_bytes);
    ck_assert_uint_lt((size_t)(name - search->file) + function->name_bytes, search->file_bytes);
    ck_assert_uint_eq(strlen(function->name), function->name_bytes);
    ck_assert_uint_ge(function->name_bytes, 1);
    ck_assert_uint_le(function->name_bytes, ML_ELF_NAME_MAX);
    ck_assert_uint_gt(function->behind_bytes, 0);
    if (search->name != NULL && strcmp(function->name, search->name) == 0 &&
        function->is_dynamic == search->is_dynamic) {
        search->found = *function;
        search->found_count++;
    }
    return search->told != search->most;
}

static enum ml_elf_verdict look(struct search *search) {
    return ml_elf_functions_each(search->file, search->file_bytes, note, search);
}

extern const uint8_t __ehdr_start[] __attribute__((visibility("hidden"))); /* of the linker */

static __attribute__((noinline, used)) int looked_for(int number) {
    return number + 1;
}

START_TEST(functions_of_the_program_are_found_where_they_run) {
    struct search search = {.name = "looked_for"};
    uint8_t *file = read_file("/proc/self/exe", &search.file_bytes);
    search.file = file;
    ck_assert_int_eq(look(&search), ML_ELF_READ);
    ck_assert_uint_eq(search.found_count, 1);
    uint64_t lowest = 1;
    ck_assert_int_eq(ml_elf_lowest_load(search.file, search.file_bytes, &lowest), ML_ELF_READ);
    const uint64_t bias = (uintptr_t)__ehdr_start - lowest;
    ck_assert_uint_eq(search.found.address + bias, (uintptr_t)looked_for);
    ck_assert_uint_gt(search.found.size, 0);
    ck_assert_uint_le(search.found.size, search.found.behind_bytes);
    ck_assert(!search.found.is_indirect);
    /* In what is found as code, too. */
    struct ml_elf_code code[ML_ELF_SEGMENTS_MAX];
    const uint32_t count = ml_elf_code_find(search.file, search.file_bytes, code);
    bool is_inside = false;
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_uint_le(code[i].offset + code[i].count_bytes, search.file_bytes);
        const uint64_t inside = search.found.address - code[i].address;
        is_inside = is_inside || (inside < code[i].count_bytes &&
                                  code[i].offset + inside == search.found.offset);
    }
    ck_assert(is_inside);
    /* The same bytes stand there in the file. */
    ck_assert_mem_eq(
        search.file + search.found.offset, (const uint8_t *)(uintptr_t)looked_for, search.found.size
    );
    /* Nor is what it takes from elsewhere its own. */
    search = (struct search
    ){.file = file, .file_bytes = search.file_bytes, .name = "dlsym", .is_dynamic = true};
    ck_assert_int_eq(look(&search), ML_ELF_READ);
    ck_assert_uint_eq(search.found_count, 0);
    free(file);
}
END_TEST

START_TEST(functions_of_a_library_are_found_in_its_dynamic_table) {
    Dl_info info;
    void *qsort_here = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
    ck_assert_int_ne(dladdr(qsort_here, &info), 0);
    struct search search = {.name = "gnu_get_libc_version", .is_dynamic = true};
    uint8_t *file = read_file(info.dli_fname, &search.file_bytes);
    search.file = file;
    ck_assert_int_eq(look(&search), ML_ELF_READ);
    ck_assert_uint_ge(search.found_count, 1);
    ck_assert_uint_eq(search.found.address + (uintptr_t)info.dli_fbase, (uintptr_t)qsort_here);
    ck_assert_uint_gt(search.told, 2000);
    const size_t told = search.told;

    search.name = "memcpy"; /* one for each kind of processor */
    search.told = 0;
    ck_assert_int_eq(look(&search), ML_ELF_READ);
    ck_assert(search.found.is_indirect);
    ck_assert_uint_eq(search.told, told);

    search.told = 0;
    search.most = 3;
    ck_assert_int_eq(look(&search), ML_ELF_READ);
    ck_assert_uint_eq(search.told, 3);
    free(file);
}
END_TEST

/* A file of one executable segment, one table of symbols and their names. */
struct small {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    Elf64_Shdr sections[3];
    Elf64_Sym symbols[8];
    char names[256];
};

static struct small small_file(void) {
    struct small small = {
        .header =
            {.e_type = ET_DYN,
             .e_machine = EM_X86_64,
             .e_phoff = offsetof(struct small, segment),
             .e_phnum = 1,
             .e_phentsize = sizeof(Elf64_Phdr),
             .e_shoff = offsetof(struct small, sections),
             .e_shnum = 3,
             .e_shentsize = sizeof(Elf64_Shdr)},
        .segment =
            {.p_type = PT_LOAD,
             .p_flags = PF_R | PF_X,
             .p_offset = 0,
             .p_vaddr = 0x1000,
             .p_filesz = 0x100,
             .p_memsz = 0x100},
        .sections =
            {[1] =
                 {.sh_type = SHT_SYMTAB,
                  .sh_offset = offsetof(struct small, symbols),
                  .sh_size = sizeof small.symbols,
                  .sh_entsize = sizeof(Elf64_Sym),
                  .sh_link = 2},
             [2] =
                 {.sh_type = SHT_STRTAB,
                  .sh_offset = offsetof(struct small, names),
                  .sh_size = sizeof small.names}},
        .names = "\0first\0second"};
    memcpy(small.header.e_ident, ELFMAG, SELFMAG);
    small.header.e_ident[EI_CLASS] = ELFCLASS64;
    small.header.e_ident[EI_DATA] = ELFDATA2LSB;
    for (size_t i = 0; i < sizeof small.symbols / sizeof small.symbols[0]; i++) {
        small.symbols[i] = (Elf64_Sym
        ){.st_name = 1,
          .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
          .st_shndx = 1,
          .st_value = 0x1010 + 16 * i};
    }
    return small;
}

static size_t told_of(const struct small *small, enum ml_elf_verdict wanted) {
    struct search search = {.file = (const uint8_t *)small, .file_bytes = sizeof *small};
    ck_assert_int_eq(look(&search), wanted);
    return search.told;
}

static void cut_at(const uint8_t *file, size_t cut) {
    struct search search = {.name = NULL};
    uint8_t *copy = malloc(cut == 0 ? 1 : cut);
    memcpy(copy, file, cut);
    search.file = copy;
    search.file_bytes = cut;
    uint64_t lowest = 0;
    (void)look(&search);
    const enum ml_elf_verdict verdict = ml_elf_lowest_load(copy, cut, &lowest);
    ck_assert(cut >= sizeof(Elf64_Ehdr) || verdict == ML_ELF_OTHER);
    free(copy);
}

START_TEST(a_file_cut_anywhere_is_survived) {
    const struct small small = small_file();
    for (size_t cut = 0; cut <= sizeof small; cut++) {
        cut_at((const uint8_t *)&small, cut);
    }
    size_t bytes = 0;
    uint8_t *file = read_file("/proc/self/exe", &bytes);
    for (size_t cut = 0; cut < bytes; cut += bytes / 50) {
        cut_at(file, cut);
    }
    free(file);
}
END_TEST

static void
flip_each_bit(uint8_t *file, size_t file_bytes, size_t from, size_t bytes, size_t step) {
    for (size_t bit = 8 * from; bit < 8 * (from + bytes); bit += step) {
        struct search search = {.file = file, .file_bytes = file_bytes};
        uint64_t lowest = 0;
        file[bit / 8] ^= (uint8_t)(1U << bit % 8);
        (void)look(&search);
        (void)ml_elf_lowest_load(file, file_bytes, &lowest);
        file[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
}

START_TEST(any_bit_may_be_wrong) {
    struct small small = small_file();
    flip_each_bit((uint8_t *)&small, sizeof small, 0, sizeof small, 1);
    size_t bytes = 0;
    Elf64_Ehdr header;
    uint8_t *file = read_file("/proc/self/exe", &bytes);
    memcpy(&header, file, sizeof header);
    flip_each_bit(file, bytes, 0, sizeof header, 29);
    flip_each_bit(file, bytes, header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr), 397);
    flip_each_bit(file, bytes, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr), 2039);
    free(file);
}
END_TEST

START_TEST(what_is_no_function_of_the_file_is_not_told) {
    struct small small = small_file();
    ck_assert_uint_eq(told_of(&small, ML_ELF_READ), 8);
    small.symbols[0].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    small.symbols[1].st_shndx = SHN_UNDEF;
    small.symbols[2].st_shndx = SHN_ABS;
    small.symbols[3].st_value = 0xfff;  /* before the segment */
    small.symbols[4].st_value = 0x1100; /* behind it */
    small.symbols[5].st_name = 0;       /* no name */
    small.symbols[6].st_name = sizeof small.names;
    ck_assert_uint_eq(told_of(&small, ML_ELF_READ), 1);
    memset(small.names, 'x', sizeof small.names); /* a name without an end */
    ck_assert_uint_eq(told_of(&small, ML_ELF_READ), 0);
    small.names[1 + ML_ELF_NAME_MAX] = 0;
    ck_assert_uint_eq(told_of(&small, ML_ELF_READ), 1);
    small.names[1 + ML_ELF_NAME_MAX] = 'x';
    small.names[2 + ML_ELF_NAME_MAX] = 0;
    ck_assert_uint_eq(told_of(&small, ML_ELF_READ), 0);
    small = small_file();
    small.segment.p_flags = PF_R | PF_W;
    ck_assert_uint_eq(told_of(&small, ML_ELF_READ), 0);
}
END_TEST

START_TEST(a_file_that_contradicts_itself_has_no_functions) {
    struct small small = small_file();
    small.sections[1].sh_link = 3;
    ck_assert_uint_eq(told_of(&small, ML_ELF_NO_SYMBOLS), 0);
    small = small_file();
    small.sections[1].sh_entsize = 16;
    ck_assert_uint_eq(told_of(&small, ML_ELF_NO_SYMBOLS), 0);
    small = small_file();
    small.sections[1].sh_size = UINT64_MAX;
    ck_assert_uint_eq(told_of(&small, ML_ELF_NO_SYMBOLS), 0);
    small = small_file();
    small.sections[2].sh_offset = UINT64_MAX - 8;
    ck_assert_uint_eq(told_of(&small, ML_ELF_NO_SYMBOLS), 0);
    small = small_file();
    small.sections[2].sh_type = SHT_NOBITS;
    ck_assert_uint_eq(told_of(&small, ML_ELF_NO_SYMBOLS), 0);
    small = small_file();
    small.header.e_shnum = 0;
    ck_assert_uint_eq(told_of(&small, ML_ELF_NO_SYMBOLS), 0);
    small = small_file();
    small.header.e_shnum = UINT16_MAX;
    ck_assert_uint_eq(told_of(&small, ML_ELF_BROKEN), 0);
    small = small_file();
    small.header.e_shoff = UINT64_MAX;
    ck_assert_uint_eq(told_of(&small, ML_ELF_BROKEN), 0);
    small = small_file();
    small.header.e_phnum = UINT16_MAX;
    ck_assert_uint_eq(told_of(&small, ML_ELF_BROKEN), 0);
    small = small_file();
    small.header.e_phoff = UINT64_MAX;
    ck_assert_uint_eq(told_of(&small, ML_ELF_BROKEN), 0);
    uint64_t lowest = 0;
    small = small_file();
    small.segment.p_type = PT_NOTE;
    ck_assert_int_eq(
        ml_elf_lowest_load((const uint8_t *)&small, sizeof small, &lowest), ML_ELF_BROKEN
    );
}
END_TEST

START_TEST(another_kind_of_file_is_told_apart) {
    struct small small = small_file();
    small.header.e_ident[EI_CLASS] = ELFCLASS32;
    ck_assert_uint_eq(told_of(&small, ML_ELF_OTHER), 0);
    small = small_file();
    small.header.e_ident[EI_DATA] = ELFDATA2MSB;
    ck_assert_uint_eq(told_of(&small, ML_ELF_OTHER), 0);
    small = small_file();
    small.header.e_machine = EM_AARCH64;
    ck_assert_uint_eq(told_of(&small, ML_ELF_OTHER), 0);
    small = small_file();
    small.header.e_type = ET_REL;
    ck_assert_uint_eq(told_of(&small, ML_ELF_OTHER), 0);
    small = small_file();
    small.header.e_ident[0] = '#';
    ck_assert_uint_eq(told_of(&small, ML_ELF_OTHER), 0);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("elf_functions");
    tcase_set_timeout(tcase, 60); /* sanitizers */
    tcase_add_test(tcase, functions_of_the_program_are_found_where_they_run);
    tcase_add_test(tcase, functions_of_a_library_are_found_in_its_dynamic_table);
    tcase_add_test(tcase, a_file_cut_anywhere_is_survived);
    tcase_add_test(tcase, any_bit_may_be_wrong);
    tcase_add_test(tcase, what_is_no_function_of_the_file_is_not_told);
    tcase_add_test(tcase, a_file_that_contradicts_itself_has_no_functions);
    tcase_add_test(tcase, another_kind_of_file_is_told_apart);
    return run_suite("base/entry/elf_functions", tcase);
}
