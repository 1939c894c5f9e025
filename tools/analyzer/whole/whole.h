/* The whole private memory of processes, and what it is made of: the first lines of a report. Room:
 * tools. Context: one thread.
 *
 * One rule: nothing is passed over in silence. Memory whose mappings were not read is a part of
 * its own, and processes whose memory was never read are counted. */
#ifndef MEMLOG_TOOLS_ANALYZER_WHOLE_WHOLE_H
#define MEMLOG_TOOLS_ANALYZER_WHOLE_WHOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/memory/components.h"

/* A part of what is mapped that has a name of its own: tools/analyzer/whole/mapped.h. */
struct ml_whole_mapped {
    char name[32];
    uint64_t private_bytes; /* 0: there is none */
};

enum { ML_WHOLE_MAPPED_MAX = 4 }; /* processes with more have the rest as "mapped" */

struct ml_whole {
    struct ml_components components; /* sums */
    struct ml_whole_mapped mapped[ML_WHOLE_MAPPED_MAX];
    uint64_t unread_bytes; /* private, of processes whose mappings were not read */
    uint64_t most_bytes;   /* the most private memory that was ever read; of one process */
    uint64_t read_count, never_read_count; /* processes */
    struct ml_profile_text unread_why;     /* of the first process with an unread part; or empty */
    struct ml_profile_text trouble; /* why some process was not stopped, or its pages not read; of
                                       the first; or empty */
    bool is_off;                    /* mappings were not to be read: --whole=off */
    uint64_t unreadable_count;      /* processes whose mappings may not be read */
    uint64_t heapless_count;        /* read, but which part is heap is not known */
    uint64_t sampled_count;         /* of them: because they are sampled */
};

/* Add a process, recorded or not. */
void ml_whole_add(struct ml_whole *whole, const struct ml_profile_process *process);

/* All processes that run. */
void ml_whole_of_running(const struct ml_profile *profile, struct ml_whole *out);

/* All processes when together they had most private memory. False: that was never read. */
bool ml_whole_of_tree_peak(const struct ml_profile *profile, struct ml_whole *out);

/* Its private memory, read or unread. Units: bytes. */
uint64_t ml_whole_bytes(const struct ml_whole *whole);

/* "330 MiB = 12 heap + 243 mapped + ..." in at most `columns`; 0: as many as it takes.
 * Returns out_text. */
enum { ML_WHOLE_TEXT_BYTES = 768 };
const char *
ml_whole_text(const struct ml_whole *whole, size_t columns, char out_text[ML_WHOLE_TEXT_BYTES]);

/* What is not known of it, or "". Returns out_text. */
const char *ml_whole_notes(const struct ml_whole *whole, char out_text[ML_WHOLE_TEXT_BYTES]);

#endif
