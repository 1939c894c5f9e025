#include "tools/analyzer/symbols/search.h"

#include <elfutils/libdwelf.h>
#include <fts.h>
#include <inttypes.h>
#include <libelf.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input_file.h"
#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/symbols/breakpad.h"

enum { BUILD_ID_MAX_BYTES = (ML_BUILD_ID_HEX_BYTES - 1) / 2 };

/* An ELF file below one of the folders. */
struct indexed {
    uint8_t build_id[BUILD_ID_MAX_BYTES];
    size_t build_id_bytes;
    const char *path;
};

struct ml_symbol_search {
    struct ml_symbol_search_options options;
    bool is_indexed;
    struct indexed *indexed;
    size_t indexed_count, indexed_capacity;
    struct ml_arena arena; /* the index's paths */
};

/* One search. */
struct looking {
    struct ml_symbol_search *search;
    const struct ml_symbol_wanted *wanted;
    ml_symbol_try *try;
    void *context;
    char hex[ML_BUILD_ID_HEX_BYTES]; /* "": no build id */
    struct ml_lack *lack;            /* NULL: nobody asks why there is none */
};

static const char *from_environment(const char *name, const char *other_name) {
    const char *value = getenv(name);

    if (!value || !value[0]) {
        value = getenv(other_name);
    }
    return value && value[0] ? value : NULL;
}

void ml_symbol_search_environment(
    struct ml_symbol_search_options *out_options, char out_cache[ML_SYMBOL_CACHE_BYTES]
) {
    const char *mode = from_environment("MEMLOG_SYMBOLIZER_MODE", "PERFETTO_SYMBOLIZER_MODE");
    const char *cache = from_environment("DEBUGINFOD_CACHE_PATH", "DEBUGINFOD_CACHE_PATH");
    const char *home = from_environment("XDG_CACHE_HOME", "XDG_CACHE_HOME");
    const char *below = "/debuginfod_client";

    *out_options = (struct ml_symbol_search_options){
        .binary_path = from_environment("MEMLOG_BINARY_PATH", "PERFETTO_BINARY_PATH"),
        .is_index = mode && strcmp(mode, "index") == 0,
        .debuginfod_cache = out_cache,
    };
    /* The folder in which elfutils' client keeps fetched files. */
    if (!cache && !home) {
        home = from_environment("HOME", "HOME");
        below = "/.cache/debuginfod_client";
    }
    if (cache) {
        snprintf(out_cache, ML_SYMBOL_CACHE_BYTES, "%s", cache);
    } else if (home) {
        snprintf(out_cache, ML_SYMBOL_CACHE_BYTES, "%s%s", home, below);
    } else {
        out_options->debuginfod_cache = NULL;
    }
}

FILE *ml_symbol_text_open(const char *path) {
    const int fd = ml_input_regular(path);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

    if (fd >= 0 && !file) {
        close(fd);
    }
    return file;
}

struct ml_symbol_search *ml_symbol_search_new(const struct ml_symbol_search_options *options) {
    struct ml_symbol_search *search = calloc(1, sizeof *search);

    if (search) {
        search->options = *options;
        if (!search->options.debug_root) {
            search->options.debug_root = "/usr/lib/debug";
        }
    }
    return search;
}

void ml_symbol_search_free(struct ml_symbol_search *take_search) {
    if (take_search) {
        free(take_search->indexed);
        ml_arena_fini(&take_search->arena);
        free(take_search);
    }
}

static bool is_regular_file(const char *path) {
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Propose a path put together. */
__attribute__((format(printf, 3, 4))) static bool
propose(const struct looking *looking, bool is_module, const char *format, ...) {
    char path[PATH_MAX];
    va_list arguments;
    int count = 0;

    va_start(arguments, format);
    count = vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    return count > 0 && count < (int)sizeof path && is_regular_file(path) &&
           looking->try(looking->context, path, is_module);
}

static bool propose_by_id(const struct looking *looking, int length, const char *folder) {
    static const char form[] = "%.*s/.build-id/%.2s/%s.debug";
    const char *hex = looking->hex;

    return hex[0] && propose(looking, false, form, length, folder, hex, hex + 2);
}

/* The next piece of a list separated by ':'. False: no more. */
static bool piece_next(const char **list, int *out_length, const char **out_piece) {
    while (*list && **list) {
        size_t length = strcspn(*list, ":");
        *out_piece = *list;
        *out_length = length < INT_MAX ? (int)length : INT_MAX;
        *list += length + ((*list)[length] == ':');
        if (length > 0) {
            return true;
        }
    }
    return false;
}

static bool try_alternatives(const struct looking *looking) {
    const char *list = looking->search->options.alternative_dirs;
    const char *piece = NULL;
    int length = 0;

    while (piece_next(&list, &length, &piece)) {
        const char *at = memchr(piece, '@', (size_t)length);
        int device = at ? (int)(at - piece) : 0;
        const char *path = looking->wanted->path;
        if (at && strncmp(path, piece, (size_t)device) == 0 &&
            propose(looking, true, "%.*s%s", length - device - 1, at + 1, path + device)) {
            return true;
        }
    }
    return false;
}

/* The five steps of one folder: as recorded below it; without an APK's prefix; the bare name; the
 * name without the prefix; by build id. */
static bool try_folder(const struct looking *looking, int length, const char *folder) {
    static const char prefix[] = "base.apk!";
    const char *path = looking->wanted->path;
    const char *name = basename(path);
    int parent = name > path ? (int)(name - path) - 1 : 0;
    bool has_prefix = strncmp(name, prefix, sizeof prefix - 1) == 0;
    const char *bare = has_prefix ? name + sizeof prefix - 1 : name;

    return propose(looking, true, "%.*s/%s", length, folder, path) ||
           (has_prefix && propose(looking, true, "%.*s/%.*s/%s", length, folder, parent, path, bare)
           ) ||
           propose(looking, true, "%.*s/%s", length, folder, name) ||
           (has_prefix && propose(looking, true, "%.*s/%s", length, folder, bare)) ||
           propose_by_id(looking, length, folder);
}

/* Add the file if it is ELF with a build id. False: no memory. */
static bool index_add(struct ml_symbol_search *search, const char *path) {
    int fd = ml_input_regular(path);
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    const void *build_id = NULL;
    ssize_t count = elf && elf_kind(elf) == ELF_K_ELF ? dwelf_elf_gnu_build_id(elf, &build_id) : 0;
    bool done = true;

    if (count > 0 && count <= BUILD_ID_MAX_BYTES) {
        struct indexed one = {.build_id_bytes = (size_t)count};
        memcpy(one.build_id, build_id, (size_t)count);
        one.path = ml_arena_text(&search->arena, path, strlen(path));
        done = one.path &&
               ML_GROW(search->indexed, search->indexed_capacity, search->indexed_count + 1);
        if (done) {
            search->indexed[search->indexed_count++] = one;
        }
    }
    elf_end(elf);
    if (fd >= 0) {
        close(fd);
    }
    return done;
}

static void index_folder(struct ml_symbol_search *search, int length, const char *folder) {
    char path[PATH_MAX];
    char *roots[] = {path, NULL};
    FTS *tree = NULL;
    FTSENT *entry = NULL;

    snprintf(path, sizeof path, "%.*s", length, folder);
    tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    while (tree && (entry = fts_read(tree)) != NULL) {
        if (entry->fts_info == FTS_F && !index_add(search, entry->fts_path)) {
            break;
        }
    }
    if (tree) {
        fts_close(tree);
    }
}

static bool try_index(const struct looking *looking) {
    struct ml_symbol_search *search = looking->search;
    const char *list = search->options.binary_path;
    const char *piece = NULL;
    int length = 0;

    if (!search->is_indexed) {
        search->is_indexed = true;
        (void)elf_version(EV_CURRENT);
        while (piece_next(&list, &length, &piece)) {
            index_folder(search, length, piece);
        }
    }
    for (size_t i = 0; i < search->indexed_count; i++) {
        const struct indexed *one = &search->indexed[i];
        if (one->build_id_bytes == looking->wanted->build_id_bytes &&
            memcmp(one->build_id, looking->wanted->build_id, one->build_id_bytes) == 0 &&
            propose(looking, true, "%s", one->path)) {
            return true;
        }
    }
    return false;
}

static bool try_binary_path(const struct looking *looking) {
    const char *list = looking->search->options.binary_path;
    const char *piece = NULL;
    int length = 0;

    if (list && looking->search->options.is_index) {
        return try_index(looking);
    }
    while (piece_next(&list, &length, &piece)) {
        if (try_folder(looking, length, piece)) {
            return true;
        }
    }
    return false;
}

static void note_lack(const struct looking *looking, struct ml_lack lack) {
    if (looking->lack) {
        *looking->lack = ml_lack_more(*looking->lack, lack);
    }
}

/* A bare command name is searched in PATH, as a shell does. */
static bool try_recorded(const struct looking *looking) {
    static const struct ml_lack other = {.kind = ML_LACK_BUILD};
    const char *path = looking->wanted->path;
    const char *folders = getenv("PATH");
    const char *piece = NULL;
    int length = 0;

    if (strchr(path, '/') || !folders) {
        if (is_regular_file(path)) {
            note_lack(looking, other);
        }
        return propose(looking, true, "%s", path);
    }
    while (piece_next(&folders, &length, &piece)) {
        char found[PATH_MAX];
        int count = snprintf(found, sizeof found, "%.*s/%s", length, piece, path);
        if (count > 0 && count < (int)sizeof found && is_regular_file(found)) {
            note_lack(looking, other);
            return propose(looking, true, "%s", found);
        }
    }
    return false;
}

/* Whether a way that failed says something of the file. The mapping and descriptors are not for
 * everybody, and the program is mostly another file. */
static bool may_tell(const struct looking *looking, uint32_t way, struct ml_lack lack) {
    const bool has_ended = looking->wanted->has_ended;

    if (way >= ML_PROCESS_WAYS) { /* a root, and perhaps another process's */
        return has_ended || lack.kind == ML_LACK_SHARED;
    }
    return !has_ended &&
           (way == ML_PROCESS_ROOT || way == ML_PROCESS_FOLDER || lack.kind == ML_LACK_SHARED ||
            lack.kind == ML_LACK_SLOW || lack.kind == ML_LACK_SIZE);
}

/* By one way through a process. */
static bool try_way(const struct looking *looking, uint32_t way, const char *path, bool is_debug) {
    const struct ml_symbol_wanted *wanted = looking->wanted;
    const struct ml_process_wanted file = {
        .path = path,
        .pid = wanted->pid,
        .start = wanted->start,
        .end = wanted->end,
        .way = way,
        .is_debug = is_debug,
    };
    struct ml_lack lack = {.kind = ML_LACK_NONE};
    char found[PATH_MAX];

    if (looking->search->options.process_file(&file, found, sizeof found, &lack)) {
        if (propose(looking, !is_debug, "%s", found)) {
            return true;
        }
        lack.kind = ML_LACK_BUILD;
    }
    if (!is_debug && may_tell(looking, way, lack)) {
        note_lack(looking, lack);
    }
    return false;
}

/* While the process runs its files are there, even when their names are not. When it has ended its
 * root may be. */
static bool try_process(const struct looking *looking) {
    const struct ml_symbol_search_options *options = &looking->search->options;
    const struct ml_symbol_wanted *wanted = looking->wanted;

    if (!options->process_file) {
        return false;
    }
    for (uint32_t way = 0; wanted->pid != 0 && way < ML_PROCESS_WAYS; way++) {
        bool fits = (way != ML_PROCESS_ROOT && way != ML_PROCESS_FOLDER) ||
                    (way == ML_PROCESS_ROOT) == (wanted->path[0] == '/');
        if (fits && try_way(looking, way, wanted->path, false)) {
            return true;
        }
    }
    for (uint32_t i = 0; wanted->path[0] == '/' && i < options->kept_roots; i++) {
        if (try_way(looking, ML_PROCESS_WAYS + i, wanted->path, false)) {
            return true;
        }
    }
    return false;
}

/* A debug file at a path below each root. */
__attribute__((format(printf, 2, 3))) static bool
try_roots(const struct looking *looking, const char *format, ...) {
    const struct ml_symbol_search_options *options = &looking->search->options;
    char path[PATH_MAX];
    va_list arguments;
    int count = 0;

    va_start(arguments, format);
    count = vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    if (count <= 0 || count >= (int)sizeof path) {
        return false;
    }
    if (looking->wanted->pid != 0 && try_way(looking, ML_PROCESS_ROOT, path, true)) {
        return true;
    }
    for (uint32_t i = 0; i < options->kept_roots; i++) {
        if (try_way(looking, ML_PROCESS_WAYS + i, path, true)) {
            return true;
        }
    }
    return false;
}

bool ml_symbol_search_process_debug(
    struct ml_symbol_search *search,
    const struct ml_symbol_wanted *wanted,
    const char *debug_link,
    ml_symbol_try *try,
    void *context
) {
    static const char root[] = "/usr/lib/debug";
    struct looking looking = {
        .search = search, .wanted = wanted, .try = try, .context = context, .hex = ""};
    const char *slash = strrchr(wanted->path, '/');
    int folder = slash ? (int)(slash - wanted->path) : 0;
    const char *path = wanted->path;

    if (!search->options.process_file || path[0] != '/' || !ml_build_id_hex(wanted, looking.hex)) {
        return false;
    }
    return try_roots(&looking, "%s/.build-id/%.2s/%s.debug", root, looking.hex, looking.hex + 2) ||
           (debug_link && !strchr(debug_link, '/') &&
            (try_roots(&looking, "%.*s/%s", folder, path, debug_link) ||
             try_roots(&looking, "%.*s/.debug/%s", folder, path, debug_link) ||
             try_roots(&looking, "%s%.*s/%s", root, folder, path, debug_link)));
}

static bool try_debug_files(const struct looking *looking) {
    const struct ml_symbol_search_options *options = &looking->search->options;

    return propose_by_id(looking, (int)strlen(options->debug_root), options->debug_root) ||
           (looking->hex[0] && options->debuginfod_cache &&
            propose(looking, false, "%s/%s/debuginfo", options->debuginfod_cache, looking->hex));
}

/* What is said of a file that is nowhere. */
static enum ml_lack_kind
unseen(const struct ml_symbol_search *search, const struct ml_symbol_wanted *wanted) {
    static const char deleted[] = " (deleted)"; /* as the kernel writes it */
    const size_t count = strlen(wanted->path);

    if (search->options.is_process_only && wanted->has_ended) {
        return ML_LACK_ENDED;
    }
    return count >= sizeof deleted &&
                   strcmp(wanted->path + count - (sizeof deleted - 1), deleted) == 0
               ? ML_LACK_DELETED
               : ML_LACK_HERE;
}

bool ml_symbol_search(
    struct ml_symbol_search *search,
    const struct ml_symbol_wanted *wanted,
    ml_symbol_try *try,
    void *context,
    struct ml_lack *out_lack
) {
    struct looking looking = {
        .search = search,
        .wanted = wanted,
        .try = try,
        .context = context,
        .hex = "",
        .lack = out_lack};

    *out_lack = (struct ml_lack){.kind = unseen(search, wanted)};
    (void)ml_build_id_hex(wanted, looking.hex);
    if (search->options.is_process_only) {
        return wanted->path[0] != '\0' && try_process(&looking);
    }
    if (wanted->path[0] == '\0') {
        return try_debug_files(&looking);
    }
    return try_alternatives(&looking) || try_binary_path(&looking) || try_recorded(&looking) ||
           try_process(&looking) || try_debug_files(&looking);
}

bool ml_symbol_search_debug(
    struct ml_symbol_search *search,
    const struct ml_symbol_wanted *wanted,
    ml_symbol_try *try,
    void *context
) {
    struct looking looking = {
        .search = search, .wanted = wanted, .try = try, .context = context, .hex = ""};
    const char *list = search->options.binary_path;
    const char *piece = NULL;
    int length = 0;

    if (!ml_build_id_hex(wanted, looking.hex)) {
        return false;
    }
    while (piece_next(&list, &length, &piece)) {
        if (propose_by_id(&looking, length, piece)) {
            return true;
        }
    }
    return try_debug_files(&looking);
}

/* A number that changes when a file of that name appears, goes or changes. */
__attribute__((format(printf, 2, 3))) static uint64_t
hash_place(uint64_t hash, const char *format, ...) {
    char path[PATH_MAX];
    va_list arguments;
    struct stat status = {.st_size = -1};
    uint64_t key[5] = {0};

    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    if (stat(path, &status) == 0) {
        key[0] = status.st_dev;
        key[1] = status.st_ino;
        key[2] = (uint64_t)status.st_size;
        key[3] = (uint64_t)status.st_mtim.tv_sec;
        key[4] = (uint64_t)status.st_mtim.tv_nsec;
    }
    return ml_hash(hash, key, sizeof key);
}

uint64_t ml_symbol_search_state(
    const struct ml_symbol_search *search, const struct ml_symbol_wanted *wanted
) {
    const struct ml_symbol_search_options *options = &search->options;
    const char *slash = strrchr(wanted->path, '/');
    int parent = slash ? (int)(slash - wanted->path) : 0;
    char hex[ML_BUILD_ID_HEX_BYTES];
    uint64_t hash = 0;

    /* Folders below which files may appear at any time. */
    if (options->binary_path || options->alternative_dirs || options->breakpad_dirs || !slash ||
        !ml_build_id_hex(wanted, hex)) {
        return 0;
    }
    hash = ml_hash(0, wanted->path, strlen(wanted->path));
    hash = hash_place(hash, "%s", wanted->path);
    hash = hash_place(hash, "%.*s", parent, wanted->path);
    hash = hash_place(hash, "%.*s/.debug", parent, wanted->path);
    hash = hash_place(hash, "%s%.*s", options->debug_root, parent, wanted->path);
    hash = hash_place(hash, "%s/.build-id/%.2s/%s.debug", options->debug_root, hex, hex + 2);
    hash = hash_place(
        hash, "%s/%s/debuginfo", options->debuginfod_cache ? options->debuginfod_cache : "", hex
    );
    return hash | 1;
}

bool ml_build_id_hex(const struct ml_symbol_wanted *wanted, char out_hex[ML_BUILD_ID_HEX_BYTES]) {
    out_hex[0] = '\0';
    if (wanted->build_id_bytes < 2 || wanted->build_id_bytes > BUILD_ID_MAX_BYTES) {
        return false;
    }
    for (size_t i = 0; i < wanted->build_id_bytes; i++) {
        snprintf(out_hex + 2 * i, 3, "%02x", wanted->build_id[i]);
    }
    return true;
}

bool ml_symbol_search_breakpad(
    struct ml_symbol_search *search,
    const struct ml_symbol_wanted *wanted,
    ml_symbol_try *try,
    void *context
) {
    const struct looking looking = {
        .search = search, .wanted = wanted, .try = try, .context = context};
    const char *name = basename(wanted->path);
    const char *list = search->options.breakpad_dirs;
    const char *dir = NULL;
    char id[ML_BREAKPAD_ID_BYTES];
    int length = 0;

    if (!ml_breakpad_id(wanted->build_id, wanted->build_id_bytes, id)) {
        return false;
    }
    while (piece_next(&list, &length, &dir)) {
        if (propose(&looking, false, "%.*s/%s/%s/%s.sym", length, dir, name, id, name) ||
            propose(&looking, false, "%.*s/%s.sym", length, dir, name) ||
            propose(&looking, false, "%.*s/%s.breakpad", length, dir, name) ||
            propose(&looking, false, "%.*s/%s.breakpad.x64", length, dir, name)) {
            return true;
        }
    }
    return false;
}
