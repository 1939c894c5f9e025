/* An ELF file's functions, their names as an allocator's, and the plans of their families. The
 * input is read as a list of families as well. */
#include <string.h>

#include "base/entry/allocator_family.h"
#include "base/entry/elf_functions.h"
#include "base/entry/families.h"
#include "tests/fuzz/fuzz.h"

struct file {
    const uint8_t *bytes;
    size_t count_bytes;
    const struct ml_allocator_families *given;
    size_t told;
};

static bool note(void *context, const struct ml_elf_function *function) {
    struct file *file = context;
    struct ml_allocator_function member;
    const size_t at = (size_t)((const uint8_t *)function->name - file->bytes);
    REQUIRE(at < file->count_bytes && function->name_bytes < file->count_bytes - at);
    REQUIRE(function->name_bytes > 0 && function->name[function->name_bytes] == 0);
    REQUIRE(function->behind_bytes > 0);
    if (ml_allocator_function_of(function->name, function->name_bytes, file->given, &member)) {
        REQUIRE(member.prefix_bytes < function->name_bytes);
        REQUIRE(member.call.arguments <= ML_ALLOCATOR_ARGUMENTS_MAX);
        (void)strlen(ml_allocator_family_name(member.family, file->given));
    }
    file->told++;
    return true;
}

/* As tools/analyzer/symbols/entries.c plans. */
static void plan(const uint8_t *data, size_t count_bytes) {
    static struct ml_families families;
    static const char given[] = "pool=pool_";
    struct ml_elf_code found[ML_ELF_SEGMENTS_MAX];
    struct ml_families_code code[ML_ELF_SEGMENTS_MAX];
    const uint32_t count = ml_elf_code_find(data, count_bytes, found);
    REQUIRE(count <= ML_ELF_SEGMENTS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        REQUIRE(
            found[i].offset <= count_bytes && found[i].count_bytes <= count_bytes - found[i].offset
        );
        code[i] = (struct ml_families_code
        ){.bytes = data + found[i].offset,
          .count_bytes = (size_t)found[i].count_bytes,
          .address = found[i].address};
    }
    families = (struct ml_families
    ){.file = data, .file_bytes = count_bytes, .code = code, .code_count = count};
    (void)ml_allocator_families_read(given, sizeof given - 1, &families.given);
    if (ml_families_find(&families)) {
        REQUIRE(ml_families_plan(&families, 0) <= families.count);
    }
    REQUIRE(families.count <= ML_FAMILIES_FUNCTIONS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    struct ml_allocator_families given;
    const enum ml_allocator_list_refusal refusal =
        ml_allocator_families_read((const char *)data, count_bytes, &given);
    REQUIRE((uint32_t)refusal < ML_ALLOCATOR_LIST_REFUSAL_COUNT);
    REQUIRE(given.count <= ML_ALLOCATOR_FAMILIES_GIVEN_MAX);
    REQUIRE(refusal == ML_ALLOCATOR_LIST_READ || given.count == 0);

    struct file file = {.bytes = data, .count_bytes = count_bytes, .given = &given};
    uint64_t lowest = 0;
    const enum ml_elf_verdict verdict = ml_elf_functions_each(data, count_bytes, note, &file);
    REQUIRE(verdict == ML_ELF_READ || file.told == 0);
    REQUIRE(file.told <= 2 * (count_bytes / 24)); /* two tables of rows of 24 bytes */
    (void)ml_elf_lowest_load(data, count_bytes, &lowest);
    plan(data, count_bytes);
    return 0;
}
