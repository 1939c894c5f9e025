/* A file with symbols and DWARF, looked up at addresses all over it. libdw reads it; what it makes
 * of it is ours to bear. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <elfutils/libdwfl.h>

#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/symbols/dwarf_functions.h"
#include "tools/analyzer/symbols/elf_symbols.h"

enum { FRAMES_MAX = 8, LOOK_UPS = 64 };

static int no_debug_file(
    Dwfl_Module *module,
    void **data,
    const char *name,
    Dwarf_Addr base,
    const char *file,
    const char *link,
    GElf_Word checksum,
    char **debug_file
) {
    (void)module;
    (void)data;
    (void)name;
    (void)base;
    (void)file;
    (void)link;
    (void)checksum;
    (void)debug_file;
    return -1;
}

static const Dwfl_Callbacks callbacks = {
    .find_debuginfo = no_debug_file, .section_address = dwfl_offline_section_address};

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
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, data, count_bytes) == (ssize_t)count_bytes);
    Dwfl *dwfl = dwfl_begin(&callbacks);
    REQUIRE(dwfl != NULL);
    dwfl_report_begin(dwfl);
    Dwfl_Module *module = dwfl_report_offline(dwfl, "fuzz", "fuzz", fd);
    (void)dwfl_report_end(dwfl, NULL, NULL);
    if (module == NULL) {
        (void)close(fd); /* else it is libdwfl's */
    } else {
        look_up(module);
    }
    dwfl_end(dwfl);
    return 0;
}
