/* The allocator of a process, and how much of its private memory its heap explains. Room: service.
 * Context: whoever works on the client.
 *
 * One rule: nothing is called seen that was not looked at. A reason is given where something is
 * known to go unseen, or where the heap explains next to nothing of the memory. The words say what
 * is known, and no more. */
#ifndef MEMLOG_SERVICE_SESSION_COVERAGE_H
#define MEMLOG_SERVICE_SESSION_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ML_COVERAGE_NAME_BYTES = 64 + 1,  /* memlog.service.AllocatorFacts.owner */
    ML_COVERAGE_ENTRY_BYTES = 32 + 1, /* memlog.service.AllocatorFacts.entry_point */
    ML_COVERAGE_REFUSED_BYTES = 96,   /* ML_ENTRIES_REFUSED_BYTES */
    ML_COVERAGE_UNSEEN_BYTES = 256,   /* memlog.service.ClientFigures.unseen */
    ML_COVERAGE_SIZE_BYTES = 16,      /* "1023.9 MiB" */
    /* The most that a block takes beyond its requested size: its header, and its size rounded up to
     * the allocator's smallest (glibc: 16 and 32). */
    ML_COVERAGE_BLOCK_BYTES = 32
};

/* Less private memory needs no explanation: libraries' data, stacks, memlog's own pages. */
#define ML_COVERAGE_SMALL_BYTES (UINT64_C(8) << 20)

/* What the process's constructor and the host have found out. */
struct ml_allocator {
    char owner[ML_COVERAGE_NAME_BYTES]; /* file of the malloc that serves it; "": not known */
    bool in_front;                      /* it is called instead of memlog's */
    bool in_program;                    /* it is in the executable */
    bool second_libc;                   /* two files of a libc are mapped */
    char entry_point[ML_COVERAGE_ENTRY_BYTES];   /* another allocator's function; "": none found */
    char entry_point_of[ML_COVERAGE_NAME_BYTES]; /* its file; "": the executable */
};

/* Calls that the client has seen to bypass memlog, in objects that were loaded later. */
struct ml_coverage_past {
    bool calls, several, second_libc;  /* ML_PAST_* of ipc/wire/staging.h */
    bool inlined;                      /* likewise: inside the executable */
    char file[ML_COVERAGE_NAME_BYTES]; /* the first whose calls do */
};

/* An allocator inside the executable, as the client has found it. */
struct ml_coverage_entries {
    uint32_t functions;                      /* hooked at their entries; 0: none */
    char refused[ML_COVERAGE_REFUSED_BYTES]; /* why not all of it is; "": nothing was refused */
};

/* Private memory as the host read it, and the heap at that moment. */
struct ml_coverage_reading {
    bool was_read; /* false: there was no reading, and the rest is 0 */
    uint64_t private_bytes;
    uint64_t files_bytes; /* of that: pages of files as they are on the disk, at least */
    uint64_t heap_bytes;  /* live */
    uint64_t most_bytes, most_blocks; /* at its largest by then, with what it inherited */
};

struct ml_coverage {
    struct ml_allocator allocator;
    struct ml_coverage_reading last;
    struct ml_coverage_reading largest; /* the reading with most private memory */
};

/* What else is known of the process. */
struct ml_coverage_facts {
    bool running;
    bool from_startup; /* recorded from its first instruction */
    bool past_is_sure; /* a free without a block means an unseen alloc: no event was lost, ... */
    uint64_t total_blocks; /* ever allocated, as memlog saw it */
    uint64_t unknown_frees;
    uint64_t missed_frees;
    struct ml_coverage_past past;
    struct ml_coverage_entries entries;
    uint64_t mapped_bytes; /* private memory whose mapper is known, beside the heap; 0: not read */
    uint64_t allocator_bytes; /* of that what is an allocator's, in pages without a live block */
    uint64_t files_bytes;     /* private memory of files' mappings, beside that, also of what was
                                 written there; 0: not read */
    /* Of the reading that these are of, which may be another one than that of the private memory;
     * 0: there was none. */
    uint64_t view_private_bytes, shared_files_bytes;
};

/* What is reported. */
struct ml_coverage_told {
    bool was_read; /* false: its memory never was, and both are 0 */
    uint64_t heap_bytes, private_bytes;
    uint64_t mapped_bytes;                 /* as in the facts */
    uint64_t files_bytes;                  /* as in the facts; 0 there: as in the reading */
    uint64_t shared_bytes;                 /* at most: its own then, common with others since */
    uint32_t hooked_functions;             /* of ml_coverage_entries */
    const char *allocator;                 /* "glibc"; the name's owner is the process's coverage */
    char unseen[ML_COVERAGE_UNSEEN_BYTES]; /* "": nothing is known to go unseen */
};

/* Note a reading. */
void ml_coverage_note(struct ml_coverage *coverage, const struct ml_coverage_reading *reading);

/* The most memory that so many blocks of so many bytes take; saturating. */
uint64_t ml_coverage_heap(uint64_t bytes, uint64_t blocks);

/* "glibc", "jemalloc", ..., "inside the executable", the file's own name, "unknown". */
const char *ml_coverage_allocator(const struct ml_allocator *allocator);

/* What is reported of the process: by its last reading while it runs, else by its largest. */
void ml_coverage_tell(
    const struct ml_coverage *coverage,
    const struct ml_coverage_facts *facts,
    struct ml_coverage_told *out_told
);

/* Whether a heap of that size may be what filled this private memory. */
bool ml_coverage_explains(uint64_t heap_bytes, uint64_t private_bytes);

/* "12.0 MiB". Returns out_text. */
const char *ml_coverage_size(uint64_t bytes, char out_text[ML_COVERAGE_SIZE_BYTES]);

#endif
