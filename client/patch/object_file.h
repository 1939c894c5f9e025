/* The executable, or a library, as it is loaded, beside its file. Room: client (private). Context:
 * the constructor: one thread.
 *
 * One rule: the file counts only where what is loaded begins as it does. /proc/self/exe is the
 * loader where that was started with the program's name (ld.so PROGRAM), and a library's path may
 * name another file by now. */
#ifndef MEMLOG_CLIENT_PATCH_OBJECT_FILE_H
#define MEMLOG_CLIENT_PATCH_OBJECT_FILE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/entry/families.h"

struct ml_object_file {
    const uint8_t *file; /* all of it, read only */
    size_t file_bytes;
    uintptr_t base;      /* how far off where it was linked for it lies */
    uintptr_t low, high; /* all of it that is loaded */
    struct ml_families_code code[ML_FAMILIES_CODE_MAX];
    uint32_t code_count;
};

/* `path` NULL: the executable's. False: it cannot be read, or is another one. To be closed where
 * true. */
bool ml_object_file_open(
    const struct link_map *map, const char *path, struct ml_object_file *out_object
);
void ml_object_file_close(struct ml_object_file *object);

#endif
