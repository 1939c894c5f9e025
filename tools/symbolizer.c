#include "tools/symbolizer.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/demangle.h"
#include "tools/dwarf_functions.h"
#include "tools/elf_symbols.h"
#include "tools/index.h"
#include "tools/memory.h"

/* A build id in hex, with its NUL; the stream's limit is 64 bytes. */
enum { BUILD_ID_HEX_BYTES = 2 * 64 + 1 };

struct ml_symbol_file {
    struct ml_symbolizer *owner;
    Dwfl *dwfl; /* NULL: nothing is known */
    Dwfl_Module *module;
    uint64_t bias;  /* libdwfl's address = ELF address + bias */
    bool is_module; /* the module itself, not its debug file alone */
    struct ml_elf_symbols symbols;
    struct ml_dwarf_functions functions;
};

/* A linkage name and what became of it. */
struct name_pair {
    const char *linkage;
    const char *readable;
};

struct ml_symbolizer {
    char *debug_root;
    char *debug_path; /* libdwfl's list of folders */
    Dwfl_Callbacks callbacks;
    struct ml_symbol_file file; /* the open one */
    struct ml_arena arena;      /* every string that was given out */
    struct name_pair *names;
    size_t names_count, names_capacity;
    struct ml_index names_index;
    char **strings;
    size_t strings_count, strings_capacity;
    struct ml_index strings_index;
};

static void file_close(struct ml_symbol_file *file) {
    ml_elf_symbols_fini(&file->symbols);
    ml_dwarf_functions_fini(&file->functions);
    if (file->dwfl) {
        dwfl_end(file->dwfl);
    }
    *file = (struct ml_symbol_file){0};
}

void ml_symbolizer_free(struct ml_symbolizer *take_symbolizer) {
    if (!take_symbolizer) {
        return;
    }
    file_close(&take_symbolizer->file);
    ml_arena_fini(&take_symbolizer->arena);
    ml_index_fini(&take_symbolizer->names_index);
    ml_index_fini(&take_symbolizer->strings_index);
    free(take_symbolizer->names);
    free(take_symbolizer->strings);
    free(take_symbolizer->debug_root);
    free(take_symbolizer->debug_path);
    free(take_symbolizer);
}

/* The string once, kept. "" without memory: a name is lost, not the report. */
static const char *keep(struct ml_symbolizer *symbolizer, const char *text) {
    size_t count = strlen(text);
    uint64_t hash = ml_hash(0, text, count);
    size_t at = 0;
    char *kept = NULL;

    for (uint32_t item = ml_index_first(&symbolizer->strings_index, hash, &at);
         item != ML_INDEX_NONE;
         item = ml_index_next(&symbolizer->strings_index, hash, &at)) {
        if (strcmp(symbolizer->strings[item], text) == 0) {
            return symbolizer->strings[item];
        }
    }
    kept = ml_arena_text(&symbolizer->arena, text, count);
    if (!kept ||
        !ml_grow(
            (void **)&symbolizer->strings,
            &symbolizer->strings_capacity,
            symbolizer->strings_count + 1,
            sizeof symbolizer->strings[0]
        ) ||
        !ml_index_add(&symbolizer->strings_index, hash, (uint32_t)symbolizer->strings_count)) {
        return "";
    }
    symbolizer->strings[symbolizer->strings_count++] = kept;
    return kept;
}

/* The readable form, each name demangled once. */
static const char *readable_of(struct ml_symbolizer *symbolizer, const char *linkage) {
    uint64_t hash = ml_hash(0, linkage, strlen(linkage));
    struct name_pair pair = {.linkage = linkage};
    size_t at = 0;
    char *readable = NULL;

    for (uint32_t item = ml_index_first(&symbolizer->names_index, hash, &at); item != ML_INDEX_NONE;
         item = ml_index_next(&symbolizer->names_index, hash, &at)) {
        if (strcmp(symbolizer->names[item].linkage, linkage) == 0) {
            return symbolizer->names[item].readable;
        }
    }
    readable = ml_demangle(linkage);
    pair.readable = readable ? keep(symbolizer, readable) : "";
    free(readable);
    if (ml_grow(
            (void **)&symbolizer->names,
            &symbolizer->names_capacity,
            symbolizer->names_count + 1,
            sizeof pair
        ) &&
        ml_index_add(&symbolizer->names_index, hash, (uint32_t)symbolizer->names_count)) {
        symbolizer->names[symbolizer->names_count++] = pair;
    }
    return pair.readable;
}

struct ml_symbolizer *ml_symbolizer_new(const struct ml_symbolizer_options *options) {
    struct ml_symbolizer *symbolizer = calloc(1, sizeof *symbolizer);
    const char *root = options && options->debug_root ? options->debug_root : "/usr/lib/debug";

    if (!symbolizer) {
        return NULL;
    }
    /* libdwfl would ask the servers named there. */
    unsetenv("DEBUGINFOD_URLS");
    symbolizer->debug_root = strdup(root);
    /* Beside the file (with the CRC checked, ":"), in .debug beside it, under the root. */
    if (!symbolizer->debug_root || asprintf(&symbolizer->debug_path, ":.debug:%s", root) < 0) {
        free(symbolizer->debug_root);
        free(symbolizer);
        return NULL;
    }
    symbolizer->callbacks = (Dwfl_Callbacks){
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = &symbolizer->debug_path,
    };
    return symbolizer;
}

static bool is_regular_file(const char *path) {
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* A bare command name is looked for where a shell does; the build id tells whether it is the one.
 */
static bool path_resolve(const char *path, char out_path[PATH_MAX]) {
    const char *folders = getenv("PATH");

    if (path[0] == '\0') {
        return false;
    }
    if (strchr(path, '/') || !folders) {
        return snprintf(out_path, PATH_MAX, "%s", path) < PATH_MAX && is_regular_file(out_path);
    }
    while (*folders) {
        size_t count = strcspn(folders, ":");
        int written = snprintf(out_path, PATH_MAX, "%.*s/%s", (int)count, folders, path);
        if (written > 0 && written < PATH_MAX && is_regular_file(out_path)) {
            return true;
        }
        folders += count + (folders[count] == ':');
    }
    return false;
}

/* ROOT/.build-id/ab/cdef.debug */
static bool debug_path(
    const struct ml_symbolizer *symbolizer,
    const uint8_t *build_id,
    size_t build_id_bytes,
    char out_path[PATH_MAX]
) {
    char hex[BUILD_ID_HEX_BYTES] = "";
    int written = 0;

    if (build_id_bytes < 2 || build_id_bytes > (BUILD_ID_HEX_BYTES - 1) / 2) {
        return false;
    }
    for (size_t i = 0; i < build_id_bytes; i++) {
        snprintf(hex + 2 * i, 3, "%02x", build_id[i]);
    }
    written = snprintf(
        out_path, PATH_MAX, "%s/.build-id/%.2s/%s.debug", symbolizer->debug_root, hex, hex + 2
    );
    return written > 0 && written < PATH_MAX && is_regular_file(out_path);
}

/* Whether the module is the recorded one. A file without a build id matches a record without. */
static bool build_id_matches(Dwfl_Module *module, const uint8_t *build_id, size_t build_id_bytes) {
    const unsigned char *bits = NULL;
    GElf_Addr address = 0;
    int count = dwfl_module_build_id(module, &bits, &address);

    if (build_id_bytes == 0) {
        return count <= 0;
    }
    return count == (int)build_id_bytes && memcmp(bits, build_id, build_id_bytes) == 0;
}

/* Report `path` as the file's one module. */
static bool file_load(
    struct ml_symbol_file *file, const char *path, const uint8_t *build_id, size_t build_id_bytes
) {
    GElf_Addr bias = 0;

    file->dwfl = dwfl_begin(&file->owner->callbacks);
    if (!file->dwfl) {
        return false;
    }
    file->module = dwfl_report_offline(file->dwfl, "module", path, -1);
    dwfl_report_end(file->dwfl, NULL, NULL);
    if (!file->module || !dwfl_module_getelf(file->module, &bias) ||
        !build_id_matches(file->module, build_id, build_id_bytes)) {
        dwfl_end(file->dwfl);
        file->dwfl = NULL;
        file->module = NULL;
        return false;
    }
    file->bias = bias;
    return true;
}

struct ml_symbol_file *ml_symbolizer_open(
    struct ml_symbolizer *symbolizer,
    const char *path,
    const uint8_t *build_id,
    size_t build_id_bytes,
    const char **out_trouble
) {
    struct ml_symbol_file *file = &symbolizer->file;
    char found_path[PATH_MAX];
    bool is_there = path_resolve(path, found_path);

    file_close(file);
    file->owner = symbolizer;
    *out_trouble = NULL;
    if (is_there && file_load(file, found_path, build_id, build_id_bytes)) {
        file->is_module = true;
    } else if (debug_path(symbolizer, build_id, build_id_bytes, found_path) && file_load(file, found_path, build_id, build_id_bytes)) {
        /* gone or changed since, but its debug file is here */
    } else {
        *out_trouble = is_there ? "the file is another one by now" : "the file is not here";
        return file;
    }
    if (!ml_elf_symbols_load(&file->symbols, file->module) ||
        !ml_dwarf_functions_load(&file->functions, file->module)) {
        return NULL;
    }
    if (file->symbols.count == 0 && !file->functions.dwarf) {
        *out_trouble = "the file has no symbols";
    }
    return file;
}

static struct ml_symbol
symbol_of(struct ml_symbolizer *symbolizer, const struct ml_dwarf_frame *frame) {
    struct ml_symbol symbol = {
        .function = "",
        .linkage = "",
        .file = frame->file ? keep(symbolizer, frame->file) : "",
        .line = frame->line > 0 ? (uint32_t)frame->line : 0,
        .inlined = frame->inlined,
    };
    const char *linkage = frame->linkage ? frame->linkage : frame->name;

    if (linkage) {
        symbol.linkage = keep(symbolizer, linkage);
        symbol.function = readable_of(symbolizer, symbol.linkage);
    }
    return symbol;
}

bool ml_symbol_file_text(struct ml_symbol_file *file, struct ml_text_segment *out_segment) {
    GElf_Addr bias = 0;
    Elf *elf = file->is_module ? dwfl_module_getelf(file->module, &bias) : NULL;
    size_t count = 0;

    if (!elf || elf_getphdrnum(elf, &count) != 0) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD &&
            (header.p_flags & PF_X)) {
            *out_segment = (struct ml_text_segment){
                .address = header.p_vaddr,
                .offset = header.p_offset,
                .size_bytes = header.p_memsz,
            };
            return true;
        }
    }
    return false;
}

size_t ml_symbol_file_find(
    struct ml_symbol_file *file,
    uint64_t address,
    struct ml_symbol out_symbols[ML_SYMBOL_INLINES_MAX]
) {
    struct ml_dwarf_frame frames[ML_SYMBOL_INLINES_MAX];
    struct ml_dwarf_frame *outermost = NULL;
    size_t count = 0;

    if (!file->module) {
        return 0;
    }
    address += file->bias;
    if (file->functions.dwarf) {
        count = ml_dwarf_functions_find(&file->functions, address, frames, ML_SYMBOL_INLINES_MAX);
    }
    if (count == 0) {
        frames[count++] = (struct ml_dwarf_frame){0};
    }
    outermost = &frames[count - 1];
    if (!outermost->linkage) {
        /* DWARF has no linkage names for functions of a C++ file's own; the symbol table does. */
        const char *symbol = ml_elf_symbols_find(&file->symbols, address);
        if (symbol && (!outermost->name || ml_is_mangled(symbol))) {
            outermost->linkage = symbol;
        }
    }
    if (count == 1 && !outermost->linkage && !outermost->name && !outermost->file) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        out_symbols[i] = symbol_of(file->owner, &frames[i]);
    }
    return count;
}
