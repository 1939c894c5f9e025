#include "ipc/trace/mapping.h"

/* Segments are mapped by pages; the smallest that there are. */
enum { PAGE_BYTES = 4096 };

struct ml_trace_mapping ml_trace_mapping_of(const struct ml_trace_module *module) {
    const uint64_t in_page = module->code_address % PAGE_BYTES;
    const uint64_t lowered = in_page <= module->code_offset ? in_page : 0;
    const uint64_t begin = (uint64_t)module->bias + module->code_address - lowered;
    struct ml_trace_mapping mapping = {
        .start = module->start,
        .end = module->end,
        .exact_offset = module->code_offset - lowered,
    };

    if (module->code_address >= module->code_offset) {
        mapping.load_bias = module->code_address - module->code_offset;
    } else {
        /* A bias below 0 ends Perfetto's symbolizer. An image that begins later says the same. */
        mapping.start_offset = module->code_offset - module->code_address;
    }
    if (begin >= module->start && begin < module->end) {
        mapping.start = begin;
    }
    return mapping;
}
