/* A module as Perfetto's Mapping has it: the mapping of its code. Room: ipc (:trace). Context: any.
 *
 * One rule: load_bias is no bias of a place in memory. It is how far ELF addresses of code are from
 * their places in the file, which Perfetto's symbolizer compares with the file that it finds. Where
 * they differ it moves every address by the difference, and finds other functions. */
#ifndef MEMLOG_IPC_TRACE_MAPPING_H
#define MEMLOG_IPC_TRACE_MAPPING_H

#include <stdint.h>

/* What is known of the module. */
struct ml_trace_module {
    uint64_t start, end;                /* its first mapped address, one behind the last */
    int64_t bias;                       /* mapped address - ELF address */
    uint64_t code_address, code_offset; /* of its first executable segment; both 0: not known */
};

struct ml_trace_mapping {
    uint64_t start, end;
    uint64_t exact_offset; /* in the file, of `start` */
    uint64_t start_offset; /* in the file, where the ELF image begins */
    uint64_t load_bias;    /* ELF address - place in the image; never negative */
};

/* The mapping that begins with its code. */
struct ml_trace_mapping ml_trace_mapping_of(const struct ml_trace_module *module);

#endif
