#include "tools/analyzer/formats/chrome_symbolize.h"

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <zlib.h>

#include "base/input_file.h"
#include "tools/analyzer/formats/gzip_stream.h"
#include "tools/analyzer/model/search.h"

/* Longest accepted build id in hex, and the largest pid. */
enum { BUILD_ID_MAX_BYTES = 64, PID_MAX = 1 << 22 };

/* Limits of a trace: unpacked text, and memory to read it (some ten times its text). g++'s of
 * 20,000 stacks has 8 MiB of text; a small file can unpack to anything. */
static const size_t text_max_bytes = (size_t)256 << 20;
static const size_t memory_max_bytes = (size_t)2 << 30;

struct work {
    struct ml_symbolizer *symbolizer;
    ml_chrome_nameless *nameless;
    void *context;
    uint64_t next_node, next_string; /* numbers not used yet in the whole trace */
    struct address *addresses;       /* of the process at hand, by address */
    size_t addresses_count;
    struct use *uses; /* likewise, by string */
    size_t uses_count;
    size_t places;
    bool has_heaps;
    bool done;
};

/* A process's dump in the trace. Borrowed. */
struct process {
    json_t *nodes, *strings;
    json_t *regions;
    uint32_t pid;
};

/* A string that stands for an address. */
struct address {
    uint64_t address;
    json_int_t string;
};

/* A node that shows a string. Borrowed. */
struct use {
    json_int_t string;
    json_t *node;
};

/* A region that code may be named in. */
struct region {
    uint64_t start, size_bytes, bias;
    const char *path, *hex;
    uint8_t build_id[BUILD_ID_MAX_BYTES];
    size_t build_id_bytes;
};

static bool hex_read(const char *text, uint64_t *out_value) {
    char *end = NULL;

    if (!text || strspn(text, "0123456789abcdef") != strlen(text) || text[0] == '\0') {
        return false;
    }
    errno = 0;
    *out_value = strtoull(text, &end, 16);
    return errno == 0 && *end == '\0';
}

static const char *text_of(const json_t *object, const char *name) {
    return json_string_value(json_object_get(object, name));
}

static bool region_read(const json_t *from, struct region *region) {
    size_t digits = 0;

    region->path = text_of(from, "mf");
    region->hex = text_of(from, "id");
    digits = region->hex ? strlen(region->hex) : 0;
    region->build_id_bytes = digits / 2;
    if (!region->path || digits == 0 || digits % 2 != 0 || digits > 2 * BUILD_ID_MAX_BYTES ||
        strspn(region->hex, "0123456789abcdef") != digits ||
        !hex_read(text_of(from, "sa"), &region->start) ||
        !hex_read(text_of(from, "sz"), &region->size_bytes) ||
        !hex_read(text_of(from, "lb"), &region->bias)) {
        return false;
    }
    for (size_t i = 0; i < region->build_id_bytes; i++) {
        unsigned byte = 0;
        (void)sscanf(region->hex + 2 * i, "%2x", &byte);
        region->build_id[i] = (uint8_t)byte;
    }
    return true;
}

/* Number of a new string; a duplicate text does no harm. */
static uint64_t string_add(struct work *work, const struct process *process, const char *text) {
    json_t *string = json_pack("{s:I, s:s}", "id", (json_int_t)work->next_string, "string", text);

    /* Invalid UTF-8 cannot be in JSON. */
    if (!string) {
        string = json_pack("{s:I, s:s}", "id", (json_int_t)work->next_string, "string", "?");
    }
    work->done = json_array_append_new(process->strings, string) == 0 && work->done;
    return work->next_string++;
}

/* Expand a node's frame to all functions there: the node becomes the innermost, new nodes between
 * it and its caller the others. */
static void node_name(
    struct work *work,
    const struct process *process,
    json_t *node,
    const struct ml_symbol *symbols,
    size_t count
) {
    json_t *parent = json_incref(json_object_get(node, "parent"));

    for (size_t i = count - 1; i > 0; i--) {
        json_t *outer = json_pack(
            "{s:I, s:I}",
            "id",
            (json_int_t)work->next_node,
            "name_sid",
            (json_int_t)string_add(work, process, symbols[i].function)
        );
        if (parent) {
            (void)json_object_set_new(outer, "parent", parent);
        }
        work->done = json_array_append_new(process->nodes, outer) == 0 && work->done;
        parent = json_integer((json_int_t)work->next_node++);
    }
    if (parent) {
        (void)json_object_set_new(node, "parent", parent);
    }
    (void)json_object_set_new(
        node, "name_sid", json_integer((json_int_t)string_add(work, process, symbols[0].function))
    );
    work->places++;
}

/* The address that a string of the process stands for. False: it is a name. */
static bool address_of(const json_t *string, uint64_t *out_address) {
    const char *text = text_of(string, "string");

    return text && strncmp(text, "pc:", 3) == 0 && hex_read(text + 3, out_address);
}

static int order_addresses(const void *left, const void *right) {
    const struct address *a = left;
    const struct address *b = right;

    return (a->address > b->address) - (a->address < b->address);
}

static int order_uses(const void *left, const void *right) {
    const struct use *a = left;
    const struct use *b = right;

    return (a->string > b->string) - (a->string < b->string);
}

/* Note the process's addresses and the nodes that show them. False: no memory. */
static bool index_make(struct work *work, const struct process *process) {
    size_t strings_count = json_array_size(process->strings);
    size_t nodes_count = json_array_size(process->nodes);

    work->addresses = calloc(strings_count + 1, sizeof *work->addresses);
    work->uses = calloc(nodes_count + 1, sizeof *work->uses);
    work->addresses_count = 0;
    work->uses_count = 0;
    if (!work->addresses || !work->uses) {
        return false;
    }
    for (size_t i = 0; i < strings_count; i++) {
        const json_t *string = json_array_get(process->strings, i);
        struct address *one = &work->addresses[work->addresses_count];
        if (address_of(string, &one->address)) {
            one->string = json_integer_value(json_object_get(string, "id"));
            work->addresses_count++;
        }
    }
    for (size_t i = 0; i < nodes_count; i++) {
        json_t *node = json_array_get(process->nodes, i);
        const json_t *name = json_object_get(node, "name_sid");
        if (json_is_integer(name)) {
            work->uses[work->uses_count++] = (struct use){json_integer_value(name), node};
        }
    }
    qsort(work->addresses, work->addresses_count, sizeof *work->addresses, order_addresses);
    qsort(work->uses, work->uses_count, sizeof *work->uses, order_uses);
    return true;
}

static void index_free(struct work *work) {
    free(work->addresses);
    free(work->uses);
    work->addresses = NULL;
    work->uses = NULL;
}

/* Name the nodes that show that string. */
static void string_name(
    struct work *work,
    const struct process *process,
    json_int_t string,
    const struct ml_symbol *symbols,
    size_t count
) {
    const struct use key = {.string = string};
    const struct use *end = work->uses + work->uses_count;
    struct use *use = bsearch(&key, work->uses, work->uses_count, sizeof *work->uses, order_uses);

    while (use && use > work->uses && use[-1].string == string) {
        use--;
    }
    for (; use && use < end && use->string == string; use++) {
        if (use->node) {
            node_name(work, process, use->node, symbols, count);
            use->node = NULL; /* two strings of one number, or two regions of one address */
        }
    }
}

static void
region_name(struct work *work, const struct process *process, const struct region *region) {
    const struct ml_symbol_wanted wanted = {
        .path = region->path,
        .build_id = region->build_id,
        .build_id_bytes = region->build_id_bytes,
        .pid = process->pid,
        .start = region->start,
        .end = region->start + region->size_bytes,
        .base = region->start - region->bias,
    };
    const size_t first =
        ml_keys_below(ML_KEYS(work->addresses, work->addresses_count, address), region->start);
    struct ml_symbol_file *file = NULL;
    const char *trouble = NULL;

    for (size_t i = first; i < work->addresses_count; i++) {
        const struct address *one = &work->addresses[i];
        struct ml_symbol symbols[ML_SYMBOL_INLINES_MAX];
        size_t count = 0;
        if (one->address - region->start >= region->size_bytes) {
            break;
        }
        if (!file) {
            file = ml_symbolizer_open(work->symbolizer, &wanted, &trouble);
        }
        if (!file) {
            work->done = false;
            return;
        }
        count = ml_symbol_file_find(file, one->address - region->bias, symbols);
        if (count > 0 && symbols[0].function[0]) {
            string_name(work, process, one->string, symbols, count);
        }
    }
    if (trouble) {
        work->nameless(work->context, region->path, region->hex, trouble);
    }
}

/* The heap of an event. False: it has none. */
static bool process_read(const json_t *event, struct process *process) {
    const json_t *dumps = json_object_get(json_object_get(event, "args"), "dumps");
    const json_t *maps = json_object_get(json_object_get(dumps, "heaps_v2"), "maps");
    json_int_t pid = json_integer_value(json_object_get(event, "pid"));

    process->nodes = json_object_get(maps, "nodes");
    process->strings = json_object_get(maps, "strings");
    process->regions = json_object_get(json_object_get(dumps, "process_mmaps"), "vm_regions");
    process->pid = pid > 0 && pid <= PID_MAX ? (uint32_t)pid : 0;
    return json_is_array(process->nodes) && json_is_array(process->strings);
}

static void highest(const json_t *list, uint64_t *next) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t id = json_integer_value(json_object_get(json_array_get(list, i), "id"));
        if (id >= 0 && id < INT64_MAX / 2 && (uint64_t)id >= *next) {
            *next = (uint64_t)id + 1;
        }
    }
}

static void trace_name(struct work *work, const json_t *events) {
    struct process process;

    for (size_t i = 0; i < json_array_size(events); i++) {
        if (process_read(json_array_get(events, i), &process)) {
            work->has_heaps = true;
            highest(process.nodes, &work->next_node);
            highest(process.strings, &work->next_string);
        }
    }
    for (size_t i = 0; i < json_array_size(events); i++) {
        if (!process_read(json_array_get(events, i), &process)) {
            continue;
        }
        work->done = index_make(work, &process) && work->done;
        for (size_t r = 0; work->done && r < json_array_size(process.regions); r++) {
            struct region region;
            if (region_read(json_array_get(process.regions, r), &region)) {
                region_name(work, &process, &region);
            }
        }
        index_free(work);
    }
}

/* The trace's text as it comes. */
struct source {
    gzFile file;
    size_t read_bytes;
};

static size_t read_some(void *buffer, size_t count_bytes, void *context) {
    struct source *source = context;
    int got = source->read_bytes > text_max_bytes
                  ? -1
                  : gzread(source->file, buffer, (unsigned)count_bytes);

    source->read_bytes += got > 0 ? (size_t)got : 0;
    return got >= 0 ? (size_t)got : (size_t)-1;
}

/* Bytes that jansson holds. Its allocator is global; the analyzer reads one trace, in one
 * thread. */
static size_t held_bytes;
static bool held_too_much;

static void *bounded_malloc(size_t count_bytes) {
    void *memory = NULL;

    held_too_much =
        held_too_much || held_bytes >= memory_max_bytes || count_bytes > memory_max_bytes;
    memory = held_too_much ? NULL : malloc(count_bytes);
    held_bytes += memory ? malloc_usable_size(memory) : 0;
    return memory;
}

static void bounded_free(void *memory) {
    held_bytes -= memory ? malloc_usable_size(memory) : 0;
    free(memory);
}

/* Read all of it. NULL with the reason in *out_status. */
static json_t *trace_read(gzFile file, enum ml_status *out_status) {
    struct source source = {.file = file};
    json_t *root = NULL;

    json_set_alloc_funcs(bounded_malloc, bounded_free);
    held_bytes = 0;
    held_too_much = false;
    root = json_load_callback(read_some, &source, 0, NULL);
    *out_status = ML_PEER_FORM;
    if (held_too_much || source.read_bytes > text_max_bytes) {
        *out_status = ML_PEER_LIMIT;
        json_decref(root);
        root = NULL;
    }
    return root;
}

static enum ml_status trace_write(const json_t *root, bool is_gzipped, FILE *out) {
    FILE *file = is_gzipped ? ml_gzip_open(out) : out;
    enum ml_status status = ML_OK;

    if (!file) {
        return ML_ENV_MEMORY;
    }
    status = json_dumpf(root, file, JSON_COMPACT) == 0 ? ML_OK : ML_ENV_SYSTEM;
    return is_gzipped ? ml_gzip_close(file, status) : status;
}

enum ml_status ml_chrome_symbolize(
    const char *path,
    struct ml_symbolizer *symbolizer,
    ml_chrome_nameless *nameless,
    void *context,
    FILE *out,
    size_t *out_places
) {
    struct work work = {
        .symbolizer = symbolizer,
        .nameless = nameless,
        .context = context,
        .next_node = 1,
        .next_string = 1,
        .done = true,
    };
    const int fd = ml_input_regular(path);
    gzFile file = fd >= 0 ? gzdopen(fd, "rb") : NULL;
    enum ml_status status = ML_ENV_SYSTEM;
    json_t *root = file ? trace_read(file, &status) : NULL;
    bool is_gzipped = file && !gzdirect(file);

    *out_places = 0;
    if (!file) {
        return ML_ENV_SYSTEM;
    }
    gzclose(file);
    if (root) {
        trace_name(&work, json_object_get(root, "traceEvents"));
        *out_places = work.places;
        status = work.has_heaps ? ML_OK : ML_ENV_MISSING;
    }
    if (status == ML_OK) {
        status = work.done ? trace_write(root, is_gzipped, out) : ML_ENV_MEMORY;
    }
    json_decref(root);
    return status;
}
