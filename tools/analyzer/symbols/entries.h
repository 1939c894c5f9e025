/* What the client would hook of an executable, told from its file alone. Room: tools. Context: one
 * thread.
 *
 * One rule: the client's own planner answers (base/entry/families.h), over the file's bytes as if
 * they were loaded somewhere. What is loaded may differ from the file, and memory near by may be
 * taken: a run's report has the last word. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_ENTRIES_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/entry/families.h"

/* What becomes of a family. */
enum ml_entries_fate {
    ML_ENTRIES_HOOKED = 0,
    ML_ENTRIES_REFUSED,   /* a function without which it would be seen in part cannot be hooked */
    ML_ENTRIES_PARTIAL,   /* it has no function that allocates, or none that releases, or of libc's
                             names some alone */
    ML_ENTRIES_MANY,      /* more functions than there is room for */
    ML_ENTRIES_SANITIZED, /* a sanitizer's run-time is in the executable */
};

enum { ML_ENTRIES_TEXT_BYTES = 256 }; /* of names and reasons, with the null */

enum ml_entries_trouble {
    ML_ENTRIES_READ = 0,
    ML_ENTRIES_UNREADABLE, /* errno says why */
    ML_ENTRIES_NO_PROGRAM  /* no ELF file of 64 bits for this processor, or broken */
};

struct ml_entries {
    struct ml_families families;
    bool is_stripped; /* exported names alone were there to look at */
    /* Private. */
    void *file;
    size_t file_bytes;
    struct ml_families_code code[ML_FAMILIES_CODE_MAX];
};

/* Look at a file; `given` are further families. To be closed where ML_ENTRIES_READ. */
enum ml_entries_trouble ml_entries_open(
    struct ml_entries *out_entries, const char *path, const struct ml_allocator_families *given
);
void ml_entries_close(struct ml_entries *entries);

/* Whether the executable has functions of that family, and others do not stand for it. */
bool ml_entries_has(struct ml_entries *entries, uint32_t family);

/* Of one that it has. */
enum ml_entries_fate ml_entries_fate_of(const struct ml_entries *entries, uint32_t family);

/* What it is called: "malloc", "malloc, tcmalloc" where they are one. */
void ml_entries_name(
    struct ml_entries *entries, uint32_t family, char out_name[ML_ENTRIES_TEXT_BYTES]
);

/* Why it is not hooked: "pool_free: a call stands at its entry". "" where it is. */
void ml_entries_reason(
    const struct ml_entries *entries, uint32_t family, char out_reason[ML_ENTRIES_TEXT_BYTES]
);

/* Whether memory of the family is known to be missing: what has none of libc's basic names and no
 * prefix passes its calls on. */
bool ml_entries_is_missed(const struct ml_entries *entries, uint32_t family);

#endif
