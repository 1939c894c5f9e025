/* A file whose vtables and type information are asked for, at addresses all over it and at those
 * that it says itself. What comes back is a class's name or nothing. */
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/elf_module.h"
#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/symbols/python_types.h"
#include "tools/analyzer/symbols/vtables.h"

enum { WORD_BYTES = 8, HEADER_BYTES = 16, WORDS_MAX = 512, TOLD_MAX = 64 };

static void find(const struct ml_vtables *vtables, uint64_t address) {
    char *name = ml_vtables_find(vtables, address);
    REQUIRE(name == NULL || name[0] != '\0');
    REQUIRE(name == NULL || address % WORD_BYTES == 0);
    free(name);
    name = ml_python_types_find(vtables, address);
    REQUIRE(name == NULL || (name[0] != '\0' && address % WORD_BYTES == 0));
    free(name);
}

static void look_up(Dwfl_Module *module) {
    for (int has_contents = 0; has_contents <= 1; has_contents++) {
        struct ml_vtables vtables = {.are_loaded = false};
        REQUIRE(ml_vtables_load(&vtables, module, has_contents != 0));
        REQUIRE(vtables.are_loaded);
        for (size_t i = 1; i < vtables.symbols_count; i++) {
            REQUIRE(vtables.symbols[i - 1].start <= vtables.symbols[i].start);
        }
        for (size_t i = 1; i < vtables.relocations_count; i++) {
            REQUIRE(vtables.relocations[i - 1].address <= vtables.relocations[i].address);
        }
        for (size_t i = 0; i < vtables.symbols_count && i < TOLD_MAX; i++) {
            find(&vtables, vtables.symbols[i].start + HEADER_BYTES);
            find(&vtables, vtables.symbols[i].end);
        }
        for (size_t i = 0; i < vtables.relocations_count && i < TOLD_MAX; i++) {
            find(&vtables, vtables.relocations[i].address);
            find(&vtables, vtables.relocations[i].address + WORD_BYTES); /* it is the information */
        }
        for (uint64_t i = 0; i < WORDS_MAX; i++) {
            find(&vtables, i * WORD_BYTES);
        }
        find(&vtables, 1);
        find(&vtables, UINT64_MAX - WORD_BYTES + 1);
        find(&vtables, UINT64_MAX);
        ml_vtables_fini(&vtables);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    fuzz_elf_module(data, count_bytes, look_up);
    return 0;
}
