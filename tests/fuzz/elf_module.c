#include "tests/fuzz/elf_module.h"

#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

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

void fuzz_elf_module(const uint8_t *data, size_t count_bytes, void (*visit)(Dwfl_Module *module)) {
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
        visit(module);
    }
    dwfl_end(dwfl);
}
