#include "tools/analyzer/model/trace_symbols.h"

#include <stdlib.h>
#include <string.h>

#include "ipc/trace/trace.pb.h"
#include "tools/analyzer/model/trace_table.h"

struct reading {
    struct ml_profile_symbols *symbols;
    struct ml_profile_symbol_file file;
    bool no_memory;
};

static bool read_line(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct reading *reading = *arg;
    struct ml_profile_symbols *symbols = reading->symbols;
    struct ml_profile_line line = {.function = {.bytes = ""}, .source = {.bytes = ""}};
    ml_trace_ModuleSymbols_Line message = {
        .function_name = ML_TEXT_INTO(&symbols->arena, &line.function),
        .source_file_name = ML_TEXT_INTO(&symbols->arena, &line.source),
    };

    (void)field;
    if (!pb_decode(stream, ml_trace_ModuleSymbols_Line_fields, &message)) {
        return false;
    }
    line.number = message.line_number;
    if (!ML_GROW(symbols->lines, symbols->lines_capacity, symbols->lines_count + 1)) {
        reading->no_memory = true;
        return false;
    }
    symbols->lines[symbols->lines_count++] = line;
    return true;
}

static bool read_address(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct reading *reading = *arg;
    struct ml_profile_symbols *symbols = reading->symbols;
    struct ml_profile_symbolized one = {
        .file = (uint32_t)symbols->files_count, .first_line = symbols->lines_count};
    ml_trace_ModuleSymbols_AddressSymbols message = {
        .lines = {.funcs.decode = read_line, .arg = reading}};

    (void)field;
    if (!pb_decode(stream, ml_trace_ModuleSymbols_AddressSymbols_fields, &message)) {
        return false;
    }
    one.address = message.address;
    one.lines_count = symbols->lines_count - one.first_line;
    if (one.lines_count == 0) {
        return true;
    }
    if (!ML_GROW(
            symbols->symbolized, symbols->symbolized_capacity, symbols->symbolized_count + 1
        )) {
        reading->no_memory = true;
        return false;
    }
    symbols->symbolized[symbols->symbolized_count++] = one;
    return true;
}

enum ml_status ml_trace_symbols_decode(struct ml_profile_symbols *symbols, pb_istream_t *stream) {
    struct reading reading = {
        .symbols = symbols, .file = {.path = {.bytes = ""}, .build_id = {.bytes = ""}}};
    size_t symbolized_before = symbols->symbolized_count;
    ml_trace_ModuleSymbols message = {
        .path = ML_TEXT_INTO(&symbols->arena, &reading.file.path),
        .build_id = ML_TEXT_INTO(&symbols->arena, &reading.file.build_id),
        .address_symbols = {.funcs.decode = read_address, .arg = &reading},
    };

    if (!pb_decode(stream, ml_trace_ModuleSymbols_fields, &message)) {
        symbols->symbolized_count = symbolized_before;
        return reading.no_memory ? ML_ENV_MEMORY : ML_PEER_FORM;
    }
    if (!ML_GROW(symbols->files, symbols->files_capacity, symbols->files_count + 1)) {
        symbols->symbolized_count = symbolized_before;
        return ML_ENV_MEMORY;
    }
    reading.file.lack = message.memlog_lack;
    reading.file.lack_error = message.memlog_lack_error;
    if (reading.file.lack != 0) {
        if (!ML_GROW(symbols->lacks, symbols->lacks_capacity, symbols->lacks_count + 1)) {
            return ML_ENV_MEMORY;
        }
        symbols->lacks[symbols->lacks_count++] = reading.file;
    }
    symbols->files[symbols->files_count++] = reading.file;
    return ML_OK;
}

static int order_texts(struct ml_profile_text a, struct ml_profile_text b) {
    if (a.count_bytes != b.count_bytes) {
        return (a.count_bytes > b.count_bytes) - (a.count_bytes < b.count_bytes);
    }
    return a.count_bytes > 0 ? memcmp(a.bytes, b.bytes, a.count_bytes) : 0;
}

static int
order_files(const struct ml_profile_symbol_file *a, const struct ml_profile_symbol_file *b) {
    int order = order_texts(a->build_id, b->build_id);

    return order != 0 ? order : order_texts(a->path, b->path);
}

static int order_lacks(const void *left, const void *right) {
    return order_files(left, right);
}

static int order_symbolized(const void *left, const void *right, void *context) {
    const struct ml_profile_symbols *symbols = context;
    const struct ml_profile_symbolized *a = left;
    const struct ml_profile_symbolized *b = right;
    int order = order_files(&symbols->files[a->file], &symbols->files[b->file]);

    if (order == 0) {
        order = (a->address > b->address) - (a->address < b->address);
    }
    /* Of two entries for one address the first in the file comes first. */
    return order != 0 ? order : (a->first_line > b->first_line) - (a->first_line < b->first_line);
}

void ml_trace_symbols_finish(struct ml_profile_symbols *symbols) {
    if (symbols->lacks_count > 1) {
        qsort(symbols->lacks, symbols->lacks_count, sizeof symbols->lacks[0], order_lacks);
    }
    if (symbols->symbolized_count > 1) {
        qsort_r(
            symbols->symbolized,
            symbols->symbolized_count,
            sizeof symbols->symbolized[0],
            order_symbolized,
            symbols
        );
    }
}

void ml_trace_symbols_fini(struct ml_profile_symbols *symbols) {
    free(symbols->files);
    free(symbols->lacks);
    free(symbols->symbolized);
    free(symbols->lines);
    ml_arena_fini(&symbols->arena);
    *symbols = (struct ml_profile_symbols){0};
}

const struct ml_profile_symbol_file *ml_trace_symbols_lack(
    const struct ml_profile_symbols *symbols,
    struct ml_profile_text path,
    struct ml_profile_text build_id
) {
    const struct ml_profile_symbol_file wanted = {.path = path, .build_id = build_id};

    return symbols->lacks_count == 0 ? NULL
                                     : bsearch(
                                           &wanted,
                                           symbols->lacks,
                                           symbols->lacks_count,
                                           sizeof symbols->lacks[0],
                                           order_lacks
                                       );
}

const struct ml_profile_line *ml_trace_symbols_find(
    const struct ml_profile_symbols *symbols,
    struct ml_profile_text path,
    struct ml_profile_text build_id,
    uint64_t address,
    size_t *out_count
) {
    const struct ml_profile_symbol_file wanted = {.path = path, .build_id = build_id};
    size_t low = 0;
    size_t high = symbols->symbolized_count;

    *out_count = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct ml_profile_symbolized *one = &symbols->symbolized[middle];
        int order = order_files(&symbols->files[one->file], &wanted);
        if (order < 0 || (order == 0 && one->address < address)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == symbols->symbolized_count || symbols->symbolized[low].address != address ||
        order_files(&symbols->files[symbols->symbolized[low].file], &wanted) != 0) {
        return NULL;
    }
    *out_count = symbols->symbolized[low].lines_count;
    return &symbols->lines[symbols->symbolized[low].first_line];
}
