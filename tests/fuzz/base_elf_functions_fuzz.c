/* An ELF file's functions, and their names as an allocator's. The input is read as a list of
 * families as well. */
#include <string.h>

#include "base/entry/allocator_family.h"
#include "base/entry/elf_functions.h"
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
    return 0;
}
