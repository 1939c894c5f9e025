/* A process's memory in rows: one for each owner, stack and kind of mapping. Policies sort them
 * into components. Room: tools. Context: one thread.
 *
 * One rule: the rows of a process add up to the kernel's figures of it. */
#ifndef MEMLOG_TOOLS_ANALYZER_MEMORY_ROWS_H
#define MEMLOG_TOOLS_ANALYZER_MEMORY_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/memory/kind.h"
#include "tools/analyzer/memory/sharing.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/stacks/stacks.h"

/* How memory came to its owner. */
enum ml_row_allocator {
    ML_ROW_MALLOC,   /* live blocks */
    ML_ROW_SLACK,    /* an allocator keeps it */
    ML_ROW_MMAP,     /* mapped by a known stack */
    ML_ROW_UNHOOKED, /* the kernel's word alone */
    ML_ROW_ALLOCATORS
};

/* Who has the same pages. */
enum ml_row_sharing {
    ML_ROW_PRIVATE,
    ML_ROW_GROUP,  /* other processes of the dump, too */
    ML_ROW_OTHERS, /* nobody in the dump, or it is not known who */
    ML_ROW_SHARINGS
};

struct ml_row {
    const struct ml_profile_process *process;
    enum ml_row_allocator allocator;
    enum ml_component kind;
    enum ml_row_sharing sharing;
    uint32_t permissions;        /* enum memlog_service_memory_permission */
    struct ml_profile_text path; /* of the mapping: "/usr/lib/libz.so.1", "[heap]"; "": none */
    struct ml_profile_text
        name; /* that the program gave it (PR_SET_VMA_ANON_NAME), without NUL; "": none */
    struct ml_profile_text file; /* path, or of .bss the file that it belongs to; "": none */
    struct ml_profile_text type; /* of live blocks; "": not known, or they are none */
    uint32_t node;               /* of the stacks; ML_STACKS_NONE: no stack */
    struct ml_component_figures figures; /* of a private row no shared bytes, and the other way */
};

struct ml_rows {
    struct ml_row *items;
    size_t count, capacity;
    int64_t moved;                   /* ml_owners_visit(), and blocks in no mapping */
    struct ml_component_figures all; /* the kernel's sums */
};

/* "malloc", ...; "private", ... */
const char *ml_row_allocator_name(enum ml_row_allocator allocator);
const char *ml_row_sharing_name(enum ml_row_sharing sharing);

/* "rwxp", as in /proc/PID/maps. */
enum { ML_ROW_PERMISSIONS_BYTES = 5 };
const char *ml_row_permissions(uint32_t permissions, char out_text[ML_ROW_PERMISSIONS_BYTES]);

/* Add the rows of a process of the stacks' profile, the recorded ones and the others. Owner: texts
 * are borrowed from the profile. False: no memory; _fini is needed even then. An empty list is all
 * zero. */
bool ml_rows_add(
    struct ml_rows *rows,
    const struct ml_stacks *stacks,
    const struct ml_sharing *sharing,
    const struct ml_profile_process *process
);
void ml_rows_fini(struct ml_rows *rows);

#endif
