/* A file with symbols and DWARF, looked up at addresses all over it. libdw reads it; what it makes
 * of it is ours to bear. */
#include <elfutils/libdwfl.h>

#include "tests/fuzz/elf_module.h"
#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/symbols/dwarf_functions.h"
#include "tools/analyzer/symbols/elf_symbols.h"

enum { FRAMES_MAX = 8, LOOK_UPS = 64 };

static void look_up(Dwfl_Module *module) {
    struct ml_elf_symbols symbols = {0};
    struct ml_dwarf_functions functions = {0};
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    (void)dwfl_module_info(module, NULL, &start, &end, NULL, NULL, NULL, NULL);
    REQUIRE(ml_elf_symbols_load(&symbols, module));
    REQUIRE(ml_dwarf_functions_load(&functions, module));
    for (size_t i = 0; i < symbols.count; i++) {
        REQUIRE(i == 0 || symbols.symbols[i - 1].start < symbols.symbols[i].start);
    }
    for (uint64_t i = 0; i < LOOK_UPS; i++) {
        struct ml_dwarf_frame frames[FRAMES_MAX];
        const uint64_t address = start + (end - start) / LOOK_UPS * i + i % 7;
        const struct ml_elf_symbol *symbol = ml_elf_symbols_find(&symbols, address);
        REQUIRE(symbol == NULL || (symbol->start <= address && address < symbol->end));
        REQUIRE(ml_dwarf_functions_find(&functions, address, frames, FRAMES_MAX) <= FRAMES_MAX);
    }
    ml_dwarf_functions_fini(&functions);
    ml_elf_symbols_fini(&symbols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    fuzz_elf_module(data, count_bytes, look_up);
    return 0;
}
