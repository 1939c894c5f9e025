#include "tools/analyzer/symbols/symbolizer.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/input_file.h"
#include "tools/analyzer/symbols/breakpad.h"
#include "tools/analyzer/symbols/cache.h"
#include "tools/analyzer/symbols/demangle.h"
#include "tools/analyzer/symbols/dwarf_functions.h"
#include "tools/analyzer/symbols/elf_symbols.h"
#include "tools/analyzer/symbols/perf_map.h"
#include "tools/analyzer/symbols/texts.h"
#include "tools/analyzer/symbols/python_types.h"
#include "tools/analyzer/symbols/vtables.h"

struct ml_symbol_file {
    struct ml_symbolizer *owner;
    Dwfl *dwfl; /* NULL: nothing is known */
    Dwfl_Module *module;
    uint64_t bias; /* libdwfl's address = ELF address + bias */
    struct ml_symbol_wanted wanted;
    bool is_module;     /* the module itself, not its debug file alone */
    bool is_of_process; /* found by a process that has it */
    struct ml_elf_symbols symbols;
    struct ml_dwarf_functions functions;
    struct ml_breakpad breakpad; /* where there is no DWARF */
    struct ml_vtables vtables;   /* once one was asked for */
    const char **out_trouble;
    struct ml_lack lack; /* why there is no file */
    struct ml_symbol_cache cache;
    bool is_open; /* the file itself; else only the cache is read */
    bool is_kept; /* names that are found go into the cache */
};

struct ml_symbolizer {
    struct ml_symbol_search *search;
    bool (*fetch)(const char *build_id_hex, char *out_path, unsigned long path_bytes);
    const char *cache_folder;
    bool (*keep)(const char *build_id_hex, const void *bytes, size_t count_bytes);
    char *debug_path;       /* libdwfl's list of folders */
    struct ml_perf_map map; /* of map_pid */
    uint32_t map_pid;
    Dwfl_Callbacks callbacks;
    struct ml_symbol_file file;   /* the open one */
    struct ml_symbol_texts texts; /* all texts that were returned */
};

/* Keep the new names of the file. */
static void file_keep(struct ml_symbol_file *file) {
    char hex[ML_BUILD_ID_HEX_BYTES];
    size_t count = 0;
    void *bytes = NULL;

    if (!file->is_kept || file->cache.places_count == file->cache.read_count ||
        !ml_build_id_hex(&file->wanted, hex)) {
        return;
    }
    (void)ml_symbol_file_text(file, &file->cache.text);
    bytes = ml_symbol_cache_encode(&file->cache, &count);
    if (bytes) {
        (void)file->owner->keep(hex, bytes, count);
        free(bytes);
    }
}

static void file_close(struct ml_symbol_file *file) {
    file_keep(file);
    ml_symbol_cache_fini(&file->cache);
    ml_elf_symbols_fini(&file->symbols);
    ml_dwarf_functions_fini(&file->functions);
    ml_breakpad_fini(&file->breakpad);
    ml_vtables_fini(&file->vtables);
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
    ml_symbol_texts_fini(&take_symbolizer->texts);
    ml_symbol_search_free(take_symbolizer->search);
    ml_perf_map_fini(&take_symbolizer->map);
    free(take_symbolizer->debug_path);
    free(take_symbolizer);
}

/* From elsewhere. */
static bool fetch_debug_file(
    struct ml_symbolizer *symbolizer,
    const struct ml_symbol_wanted *wanted,
    ml_symbol_try *try,
    void *context
) {
    char hex[ML_BUILD_ID_HEX_BYTES];
    char path[PATH_MAX];

    return symbolizer->fetch && ml_build_id_hex(wanted, hex) &&
           symbolizer->fetch(hex, path, sizeof path) && try(context, path, false);
}

/* A shorter build id is not unique (-Wl,--build-id=0x1). */
enum { CACHED_ID_MIN_BYTES = 16 };

/* Whether the file has that build id. */
static bool file_matches(const char *path, const struct ml_symbol_wanted *wanted, int *out_fd) {
    int fd = ml_input_regular(path);
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    const void *build_id = NULL;
    ssize_t count = elf ? dwelf_elf_gnu_build_id(elf, &build_id) : -1;
    bool matches = count > 0 && (size_t)count == wanted->build_id_bytes &&
                   memcmp(build_id, wanted->build_id, wanted->build_id_bytes) == 0;

    elf_end(elf);
    if (fd >= 0 && !matches) {
        close(fd);
    }
    *out_fd = fd;
    return matches;
}

/* A debug file at hand. */
struct debug_file {
    const struct ml_symbol_wanted *wanted;
    int fd;
    char **out_path;
};

static bool try_debug_file(void *context, const char *path, bool is_module) {
    struct debug_file *file = context;

    (void)is_module;
    if (!file_matches(path, file->wanted, &file->fd)) {
        return false;
    }
    *file->out_path = strdup(path);
    return true;
}

/* First libdwfl's own search: .gnu_debuglink with its CRC, .debug, .build-id. Then ours. */
static int find_debuginfo(
    Dwfl_Module *module,
    void **user_data,
    const char *module_name,
    Dwarf_Addr base,
    const char *file_name,
    const char *debuglink_file,
    GElf_Word debuglink_crc,
    char **debuginfo_file_name
) {
    struct ml_symbol_file *file = *user_data;
    struct debug_file debug = {.fd = -1, .out_path = debuginfo_file_name};
    int fd = dwfl_standard_find_debuginfo(
        module,
        user_data,
        module_name,
        base,
        file_name,
        debuglink_file,
        debuglink_crc,
        debuginfo_file_name
    );

    if (fd >= 0 || !file || file->wanted.build_id_bytes == 0) {
        return fd;
    }
    debug.wanted = &file->wanted;
    if (ml_symbol_search_debug(file->owner->search, &file->wanted, try_debug_file, &debug) ||
        (file->is_of_process &&
         ml_symbol_search_process_debug(
             file->owner->search, &file->wanted, debuglink_file, try_debug_file, &debug
         )) ||
        fetch_debug_file(file->owner, &file->wanted, try_debug_file, &debug)) {
        return debug.fd;
    }
    return -1;
}

struct ml_symbolizer *ml_symbolizer_new(const struct ml_symbolizer_options *options) {
    static const struct ml_symbolizer_options defaults = {.fetch = NULL};
    struct ml_symbolizer *symbolizer = calloc(1, sizeof *symbolizer);
    const char *root = NULL;

    if (!symbolizer) {
        return NULL;
    }
    options = options ? options : &defaults;
    root = options->search.debug_root ? options->search.debug_root : "/usr/lib/debug";
    /* libdwfl would ask the servers that it names. */
    unsetenv("DEBUGINFOD_URLS");
    symbolizer->fetch = options->fetch;
    symbolizer->cache_folder = options->cache_folder;
    symbolizer->keep = options->keep;
    symbolizer->search = ml_symbol_search_new(&options->search);
    /* Beside the file (with the CRC checked, ":"), in .debug beside it, under the root. */
    if (!symbolizer->search || asprintf(&symbolizer->debug_path, ":.debug:%s", root) < 0) {
        ml_symbol_search_free(symbolizer->search);
        free(symbolizer);
        return NULL;
    }
    symbolizer->callbacks = (Dwfl_Callbacks){
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = find_debuginfo,
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = &symbolizer->debug_path,
    };
    return symbolizer;
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
    void **user_data = NULL;

    file->dwfl = dwfl_begin(&file->owner->callbacks);
    if (!file->dwfl) {
        return false;
    }
    file->module = dwfl_report_offline(file->dwfl, "module", path, -1);
    dwfl_report_end(file->dwfl, NULL, NULL);
    if (file->module &&
        dwfl_module_info(file->module, &user_data, NULL, NULL, NULL, NULL, NULL, NULL)) {
        *user_data = file; /* for find_debuginfo */
    }
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

/* Where a copy of a process's file is found (tools/analyzer/helpers/process_files.h). */
static const char process_prefix[] = "/proc/self/fd/";

static bool try_module(void *context, const char *path, bool is_module) {
    struct ml_symbol_file *file = context;

    file->is_module = is_module;
    file->is_of_process = strncmp(path, process_prefix, sizeof process_prefix - 1) == 0;
    return file_load(file, path, file->wanted.build_id, file->wanted.build_id_bytes);
}

static bool try_breakpad(void *context, const char *path, bool is_module) {
    struct ml_symbol_file *file = context;

    (void)is_module;
    return ml_breakpad_read(
        &file->breakpad, path, file->wanted.build_id, file->wanted.build_id_bytes
    );
}

static bool breakpad_load(struct ml_symbol_file *file) {
    return ml_symbol_search_breakpad(file->owner->search, &file->wanted, try_breakpad, file);
}

/* Whether names of the open file go into the cache, and how long they are valid. Without DWARF in
 * one piece they are valid until the search may find another file, such as a debug file. */
static void file_may_be_kept(struct ml_symbol_file *file) {
    const struct ml_symbolizer *symbolizer = file->owner;
    bool is_all = file->functions.dwarf && !file->functions.is_split;
    uint64_t state = is_all ? 0 : ml_symbol_search_state(symbolizer->search, &file->wanted);

    file->is_kept = symbolizer->keep && symbolizer->cache_folder &&
                    file->wanted.build_id_bytes >= CACHED_ID_MIN_BYTES && (is_all || state != 0);
    if (file->cache.state == 0) {
        file->cache.state = state;
    }
}

const char *ml_symbolizer_lack(struct ml_symbolizer *symbolizer, struct ml_lack lack) {
    char room[ML_LACK_TEXT_BYTES];
    const char *text = ml_lack_text(lack, room);

    return text == room ? ml_symbol_texts_keep(&symbolizer->texts, room) : text;
}

struct ml_lack ml_symbol_file_lack(const struct ml_symbol_file *file) {
    return file->lack;
}

/* Why no file was the right one. */
static const char *trouble_of(const struct ml_symbol_file *file) {
    const char *path = file->wanted.path;

    return file->lack.kind == ML_LACK_HERE && path[0] != '/' && strchr(path, '/')
               ? "the file is not here (its path begins where the program ran)"
               : ml_symbolizer_lack(file->owner, file->lack);
}

/* Open the file itself. False: no memory. */
static bool file_open(struct ml_symbol_file *file) {
    struct ml_symbolizer *symbolizer = file->owner;

    file->is_open = true;
    if (!ml_symbol_search(symbolizer->search, &file->wanted, try_module, file, &file->lack) &&
        !fetch_debug_file(symbolizer, &file->wanted, try_module, file)) {
        if (!breakpad_load(file)) {
            *file->out_trouble = trouble_of(file);
            return true;
        }
        file->lack = (struct ml_lack){.kind = ML_LACK_NONE};
        return true;
    }
    file->lack = (struct ml_lack){.kind = ML_LACK_NONE};
    if (!ml_elf_symbols_load(&file->symbols, file->module) ||
        !ml_dwarf_functions_load(&file->functions, file->module)) {
        return false;
    }
    if (!file->functions.dwarf && breakpad_load(file)) {
        return true;
    }
    if (file->symbols.count == 0 && !file->functions.dwarf) {
        *file->out_trouble = "the file has no symbols";
        return true;
    }
    file_may_be_kept(file);
    return true;
}

/* Whether valid names of the file were kept. */
static bool cache_open(struct ml_symbol_file *file) {
    const struct ml_symbolizer *symbolizer = file->owner;
    char hex[ML_BUILD_ID_HEX_BYTES];
    char path[PATH_MAX];
    uint64_t state = 0;

    if (!symbolizer->cache_folder || file->wanted.build_id_bytes < CACHED_ID_MIN_BYTES ||
        !ml_build_id_hex(&file->wanted, hex)) {
        return false;
    }
    /* With servers to ask more names may be found than without. */
    if (!symbolizer->fetch) {
        state = ml_symbol_search_state(symbolizer->search, &file->wanted);
    }
    snprintf(path, sizeof path, "%s/%s" ML_SYMBOL_CACHE_SUFFIX, symbolizer->cache_folder, hex);
    return ml_symbol_cache_read(&file->cache, path, state);
}

struct ml_symbol_file *ml_symbolizer_open(
    struct ml_symbolizer *symbolizer,
    const struct ml_symbol_wanted *wanted,
    const char **out_trouble
) {
    struct ml_symbol_file *file = &symbolizer->file;

    file_close(file);
    file->owner = symbolizer;
    file->wanted = *wanted;
    file->out_trouble = out_trouble;
    *out_trouble = NULL;
    return cache_open(file) || file_open(file) ? file : NULL;
}

static struct ml_symbol
symbol_of(struct ml_symbolizer *symbolizer, const struct ml_dwarf_frame *frame) {
    struct ml_symbol symbol = {
        .function = "",
        .linkage = "",
        .file = frame->file ? ml_symbol_texts_keep(&symbolizer->texts, frame->file) : "",
        .line = frame->line > 0 ? (uint32_t)frame->line : 0,
        .inlined = frame->inlined,
    };
    const char *linkage = frame->linkage ? frame->linkage : frame->name;

    if (linkage) {
        symbol.linkage = ml_symbol_texts_keep(&symbolizer->texts, linkage);
        symbol.function = ml_symbol_texts_readable(&symbolizer->texts, symbol.linkage);
    }
    return symbol;
}

bool ml_symbol_file_text(struct ml_symbol_file *file, struct ml_text_segment *out_segment) {
    GElf_Addr bias = 0;
    Elf *elf = file->is_module && file->module ? dwfl_module_getelf(file->module, &bias) : NULL;
    size_t count = 0;

    if (file->cache.text.size_bytes > 0) {
        *out_segment = file->cache.text;
        return true;
    }
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

/* By Breakpad's file. */
static size_t breakpad_find(
    struct ml_symbol_file *file,
    uint64_t address,
    struct ml_symbol out_symbols[ML_SYMBOL_INLINES_MAX]
) {
    struct ml_symbolizer *symbolizer = file->owner;
    struct ml_breakpad_frame frames[ML_SYMBOL_INLINES_MAX];
    size_t count = 0;

    if (address >= file->wanted.base) {
        count = ml_breakpad_find(
            &file->breakpad, address - file->wanted.base, frames, ML_SYMBOL_INLINES_MAX
        );
    }
    for (size_t i = 0; i < count; i++) {
        const char *linkage = ml_symbol_texts_keep(&symbolizer->texts, frames[i].name);
        const char *function = ml_symbol_texts_readable(&symbolizer->texts, linkage);
        out_symbols[i] = (struct ml_symbol){
            .function = frames[i].is_merged ? ml_symbol_texts_merged(&symbolizer->texts, function)
                                            : function,
            .linkage = linkage,
            .file = ml_symbol_texts_keep(&symbolizer->texts, frames[i].file),
            .line = frames[i].line,
            .inlined = frames[i].is_inlined,
        };
    }
    return count;
}

/* By the file itself. */
static size_t file_find(
    struct ml_symbol_file *file,
    uint64_t address,
    struct ml_symbol out_symbols[ML_SYMBOL_INLINES_MAX]
) {
    struct ml_dwarf_frame frames[ML_SYMBOL_INLINES_MAX];
    const struct ml_elf_symbol *symbol = NULL;
    struct ml_dwarf_frame *outermost = NULL;
    size_t count = 0;

    if (file->breakpad.functions_count > 0) {
        count = breakpad_find(file, address, out_symbols);
    }
    if (!file->module || count > 0) {
        return count;
    }
    address += file->bias;
    if (file->functions.dwarf) {
        count = ml_dwarf_functions_find(&file->functions, address, frames, ML_SYMBOL_INLINES_MAX);
    }
    if (count == 0) {
        frames[count++] = (struct ml_dwarf_frame){0};
    }
    outermost = &frames[count - 1];
    symbol = ml_elf_symbols_find(&file->symbols, address);
    /* DWARF has no linkage names of a C++ file's static functions. The symbol table has. */
    if (symbol && !outermost->linkage && (!outermost->name || ml_is_mangled(symbol->name))) {
        outermost->linkage = symbol->name;
    }
    if (count == 1 && !outermost->linkage && !outermost->name && !outermost->file) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        out_symbols[i] = symbol_of(file->owner, &frames[i]);
    }
    if (symbol && symbol->is_merged) {
        out_symbols[count - 1].function =
            ml_symbol_texts_merged(&file->owner->texts, out_symbols[count - 1].function);
    }
    return count;
}

/* Store the texts, so that they outlive the file and are shared by all files. */
static struct ml_symbol
kept_symbol(struct ml_symbolizer *symbolizer, const struct ml_symbol *symbol) {
    return (struct ml_symbol){
        .function = ml_symbol_texts_keep(&symbolizer->texts, symbol->function),
        .linkage = ml_symbol_texts_keep(&symbolizer->texts, symbol->linkage),
        .file = ml_symbol_texts_keep(&symbolizer->texts, symbol->file),
        .line = symbol->line,
        .inlined = symbol->inlined,
    };
}

size_t ml_symbol_file_find(
    struct ml_symbol_file *file,
    uint64_t address,
    struct ml_symbol out_symbols[ML_SYMBOL_INLINES_MAX]
) {
    const struct ml_cached_place *place = ml_symbol_cache_find(&file->cache, address);
    size_t count = 0;

    if (place) {
        for (; count < place->symbols_count; count++) {
            out_symbols[count] =
                kept_symbol(file->owner, &file->cache.symbols[place->first_symbol + count]);
        }
        return count;
    }
    /* Without memory the cache stays as it is. */
    if (!file->is_open && !file_open(file)) {
        return 0;
    }
    count = file_find(file, address, out_symbols);
    if (file->is_kept) {
        (void)ml_symbol_cache_add(&file->cache, address, out_symbols, count);
    }
    return count;
}

/* What `find` finds there; "": nothing. */
static const char *find_type(
    struct ml_symbol_file *file,
    uint64_t address,
    char *(*find)(const struct ml_vtables *vtables, uint64_t address)
) {
    const char *kept = "";
    char *name = NULL;

    if ((!file->is_open && !file_open(file)) || !file->module ||
        (!file->vtables.are_loaded &&
         !ml_vtables_load(&file->vtables, file->module, file->is_module))) {
        return "";
    }
    name = find(&file->vtables, address);
    if (name) {
        kept = ml_symbol_texts_keep(&file->owner->texts, name);
    }
    free(name);
    return kept;
}

const char *ml_symbol_file_class(struct ml_symbol_file *file, uint64_t address) {
    return find_type(file, address, ml_vtables_find);
}

const char *ml_symbol_file_python_type(struct ml_symbol_file *file, uint64_t address) {
    return find_type(file, address, ml_python_types_find);
}

bool ml_symbolizer_generated(
    struct ml_symbolizer *symbolizer,
    uint32_t pid,
    uint64_t since_ns,
    uint64_t until_ns,
    uint64_t address,
    struct ml_symbol *out_symbol
) {
    const char *name = NULL;

    if (symbolizer->map_pid != pid) {
        ml_perf_map_fini(&symbolizer->map);
        symbolizer->map_pid = pid;
        (void)ml_perf_map_read(&symbolizer->map, pid, since_ns, until_ns);
    }
    name = ml_perf_map_find(&symbolizer->map, address);
    if (!name) {
        return false;
    }
    name = ml_symbol_texts_keep(&symbolizer->texts, name);
    *out_symbol = (struct ml_symbol){.function = name, .linkage = name, .file = ""};
    return true;
}

const char *ml_symbolizer_keep(struct ml_symbolizer *symbolizer, const char *text) {
    return ml_symbol_texts_keep(&symbolizer->texts, text);
}

const char *
ml_symbolizer_keep_part(struct ml_symbolizer *symbolizer, const char *bytes, size_t count) {
    char *text = strndup(bytes, count);
    const char *kept = text ? ml_symbolizer_keep(symbolizer, text) : "";

    free(text);
    return kept;
}
