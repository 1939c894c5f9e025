/* Words of a process's private memory that point into a file's mapping: a live block's first word
 * that does may be the address of its class's vtable, and one behind it that of the type of a
 * Python object. Room: host. Context: any; reads /proc only.
 *
 * One rule: nothing is interpreted and nothing else leaves. A word is told, with where it lies,
 * only if its number lies in a mapping of a file that nobody may write to, or in the data of a file
 * that was linked without such a mapping (-z norelro). Of Python's types only those are told that
 * lie in a file's data and have a type's form (type_objects.h). Which of them are of blocks the
 * service knows.
 *
 * Only resident pages are read, so nothing is swapped in, and /proc/PID/mem waits for no page of
 * the process's own making (userfaultfd). The time is bounded. */
#ifndef MEMLOG_HOST_MEMORY_WORDS_H
#define MEMLOG_HOST_MEMORY_WORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/memory/pages.h"
#include "host/memory/regions.h"

/* The limit of the contract, memlog.service.ProcessView. A GiB of memory takes some
 * 300 ms. */
enum { ML_MEMORY_WORDS_MAX = 1 << 20, ML_MEMORY_WORDS_MOST_MS = 500 };

struct ml_memory_word {
    uint64_t address, word;
};

struct ml_memory_words {
    bool are_python; /* else they may be vtables */
    bool were_read;
    bool are_cut; /* by the limit or the time: further ones are not here */
    uint64_t read_bytes;
    struct ml_memory_word *items; /* by address */
    uint32_t count, capacity;
};

/* Read them. None: it may not be read. */
void ml_memory_words_init(
    struct ml_memory_words *words,
    bool are_python,
    pid_t pid,
    const struct ml_memory_regions *regions,
    const struct ml_memory_pages *pages
);
void ml_memory_words_fini(struct ml_memory_words *words);

#endif
