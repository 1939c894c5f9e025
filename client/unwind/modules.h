/* The modules (ELF images) seen on stacks, and where their unwind tables and build ids lie.
 * Room: client. Context: any thread, inside malloc, inside signal handlers; lock-free.
 *
 * One rule: the loader is asked only through objects.h, and nothing is read outside a module's
 * mapped segments. The table only grows: an id stands for one mapping for ever, and a library that
 * is loaded again after dlclose gets a new one. */
#ifndef MEMLOG_CLIENT_UNWIND_MODULES_H
#define MEMLOG_CLIENT_UNWIND_MODULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/unwind/cfi.h"
#include "ipc/wire/event.h"
#include "ipc/wire/ml_status.h"

enum {
    ML_MODULES_TABLE_MAX = 1 << 14, /* mappings of one process's life; ids must fit 16 bits */
    ML_MODULES_BUCKETS = 1 << 10
};

/* A mapped module. Pointers point into the module and the loader's memory: valid as long as the
 * module is mapped, as a module on the calling thread's stack is. */
struct ml_image {
    uintptr_t start; /* first mapped address */
    uintptr_t end;   /* one behind the last */
    intptr_t bias;   /* mapped address - ELF virtual address */
    const void *link_map;
    const char *path; /* as the loader names it; "" for the main program; "[vdso]" */
    const uint8_t *build_id;
    uint32_t build_id_bytes; /* 0: it has none */
    struct ml_cfi_table cfi; /* header 0 and no pairs: it has none */
    /* ELF address and file offset of the first executable segment; both 0: no headers */
    uint64_t code_address, code_offset;
};

/* Find the image around an address of code.
 *
 * Errors: false when no module is there (JIT code, a stripped-down loader). */
ML_NODISCARD bool ml_image_find(uintptr_t pc, struct ml_image *out_image);

/* Called for each module the first time it is seen, before its id can appear in any frame of any
 * thread. When two threads see it at the same moment, it is called twice with different ids; one of
 * them is never used. */
typedef void ml_module_seen_fn(void *context, uint32_t module_id, const struct ml_image *image);

/* Called for each module that a dlclose has unmapped. */
typedef void ml_module_gone_fn(void *context, uint32_t module_id);

struct ml_module_seen {
    ml_module_seen_fn *function; /* may be NULL */
    void *context;
};

struct ml_module {
    uintptr_t start;
    uintptr_t end;
    const void *link_map;
    uint64_t fingerprint;  /* of bias, build id and path */
    _Atomic uint32_t gone; /* 1: unmapped; the record is never found again */
    _Atomic uint32_t told; /* the latest profile that has its MODULE record, + 1; 0: none has */
    uint32_t next;         /* older record of the bucket, 0: none; set before publication */
};

/* All zero is the empty table: memory that a fork wipes needs no set-up. */
struct ml_modules {
    _Atomic uint32_t count;                         /* ids given out: 1 .. count */
    _Atomic uint32_t heads[ML_MODULES_BUCKETS];     /* newest published id of each bucket */
    struct ml_module records[ML_MODULES_TABLE_MAX]; /* [id - 1]; read only once published */
};

/* The id of an image, given out now if it is new.
 *
 * Errors: 0 when the table is full. */
uint32_t ml_modules_id(
    struct ml_modules *modules, const struct ml_image *image, const struct ml_module_seen *seen
);

/* After a dlclose: mark every module that is not mapped any more. */
void ml_modules_sweep(struct ml_modules *modules, ml_module_gone_fn *gone, void *context);

#endif
