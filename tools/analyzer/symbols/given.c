#include "tools/analyzer/symbols/given.h"

#include <stdlib.h>
#include <unistd.h>

#include <elfutils/libdwfl.h>

#include "tools/analyzer/symbols/elf_symbols.h"
#include "tools/analyzer/symbols/texts.h"

struct ml_symbols_given {
    Dwfl_Callbacks callbacks;
    Dwfl *dwfl;
    GElf_Addr bias;
    struct ml_elf_symbols symbols;
    struct ml_symbol_texts texts;
    char build_id[ML_GIVEN_BUILD_ID_HEX_BYTES];
};

/* There is no other file. */
static int find_nothing(
    Dwfl_Module *module,
    void **user_data,
    const char *name,
    Dwarf_Addr base,
    const char *file_name,
    const char *link,
    GElf_Word crc,
    char **debug_name
) {
    (void)module;
    (void)user_data;
    (void)name;
    (void)base;
    (void)file_name;
    (void)link;
    (void)crc;
    (void)debug_name;
    return -1;
}

static void keep_build_id(struct ml_symbols_given *given, Dwfl_Module *module) {
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bits = NULL;
    GElf_Addr address = 0;
    const int count = dwfl_module_build_id(module, &bits, &address);
    size_t at = 0;

    for (int i = 0; i < count && at + 2 < sizeof given->build_id; i++) {
        given->build_id[at++] = digits[bits[i] >> 4];
        given->build_id[at++] = digits[bits[i] & 15];
    }
    given->build_id[at] = '\0';
}

/* NULL: it is no module. */
static Dwfl_Module *report(struct ml_symbols_given *given, int take_fd) {
    Dwfl_Module *module = NULL;

    if (given->dwfl) {
        module = dwfl_report_offline(given->dwfl, "module", "given", take_fd);
        dwfl_report_end(given->dwfl, NULL, NULL);
    }
    if (!module) {
        (void)close(take_fd); /* else it is libdwfl's */
    }
    return module;
}

struct ml_symbols_given *ml_symbols_given_open(int take_fd) {
    struct ml_symbols_given *given = calloc(1, sizeof *given);
    Dwfl_Module *module = NULL;

    if (!given) {
        (void)close(take_fd);
        return NULL;
    }
    given->callbacks = (Dwfl_Callbacks
    ){.find_debuginfo = find_nothing, .section_address = dwfl_offline_section_address};
    given->dwfl = dwfl_begin(&given->callbacks);
    module = report(given, take_fd);
    if (!module || !dwfl_module_getelf(module, &given->bias) ||
        !ml_elf_symbols_load(&given->symbols, module) || given->symbols.count == 0) {
        ml_symbols_given_free(given);
        return NULL;
    }
    keep_build_id(given, module);
    return given;
}

void ml_symbols_given_free(struct ml_symbols_given *take_given) {
    if (take_given) {
        ml_elf_symbols_fini(&take_given->symbols);
        ml_symbol_texts_fini(&take_given->texts);
        dwfl_end(take_given->dwfl);
        free(take_given);
    }
}

const char *ml_symbols_given_build_id(const struct ml_symbols_given *given) {
    return given->build_id;
}

const char *ml_symbols_given_name(struct ml_symbols_given *given, uint64_t address) {
    const struct ml_elf_symbol *symbol =
        ml_elf_symbols_find(&given->symbols, address + given->bias);
    const char *name = NULL;

    if (!symbol) {
        return "";
    }
    name =
        ml_symbol_texts_readable(&given->texts, ml_symbol_texts_keep(&given->texts, symbol->name));
    return symbol->is_merged ? ml_symbol_texts_merged(&given->texts, name) : name;
}
