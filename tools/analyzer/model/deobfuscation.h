/* Original names of Java classes and methods that ProGuard or R8 renamed: from their map (text), or
 * from Perfetto's DeobfuscationMapping packets in a dump. Room: tools. Context: one thread; hostile
 * bytes.
 *
 * One rule: a map is for one package, and changes names only in that package's code. Two
 * applications may both have an "a.b". */
#ifndef MEMLOG_TOOLS_ANALYZER_MODEL_DEOBFUSCATION_H
#define MEMLOG_TOOLS_ANALYZER_MODEL_DEOBFUSCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/index.h"
#include "tools/analyzer/model/memory.h"

struct ml_obfuscated_class {
    const char *package;
    const char *from, *to;
    size_t first_member, members_count;
    uint64_t package_bit; /* known once _finish was called */
    bool is_brought;      /* by the dump itself */
};

struct ml_obfuscated_member {
    uint32_t class_number;
    const char *from, *to;
    bool is_method;
};

/* Empty: all zero. */
struct ml_deobfuscation {
    struct ml_obfuscated_class *classes;
    size_t classes_count, classes_capacity;
    struct ml_obfuscated_member *members; /* grouped by class */
    size_t members_count, members_capacity;
    const char *packages[64]; /* code with more packages counts as having none */
    size_t packages_count;
    struct ml_index classes_index, members_index;
    struct ml_arena arena; /* the texts */
};

void ml_deobfuscation_fini(struct ml_deobfuscation *names);

/* Add a class, then its members. Texts must live as long (arena). False: no memory,
 * or too many. */
bool ml_deobfuscation_class(struct ml_deobfuscation *names, const char *from, const char *to);
bool ml_deobfuscation_member(
    struct ml_deobfuscation *names, const char *from, const char *to, bool is_method
);

/* Forget classes from that number on. */
void ml_deobfuscation_cut(struct ml_deobfuscation *names, size_t classes_count);

/* Read the map of a package:
 *
 *     org.shop.Shelf -> a.b:
 *         int size -> a
 *         1:3:void put(int):10:12 -> c
 *
 * Lines that begin with '#' are R8's remarks. Lines of any other form are counted. Errors:
 * ML_ENV_SYSTEM (see errno) it cannot be read; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_deobfuscation_read(
    struct ml_deobfuscation *names, const char *package, const char *path, size_t *out_strange
);

/* Index the classes and members, once all are added. False: no memory. */
bool ml_deobfuscation_finish(struct ml_deobfuscation *names);

/* The packages that a text (a path, an argument) names. */
uint64_t ml_deobfuscation_packages_in(
    const struct ml_deobfuscation *names, const char *text, size_t count_bytes
);

/* The name with the original classes and methods of those packages: "void a.b.c(a.d)" is "void
 * org.shop.Shelf.put(org.shop.Fish)". In new memory for free(); NULL: nothing in it is known, or no
 * memory. Merged methods are all named: "put|take". */
char *
ml_deobfuscation_apply(const struct ml_deobfuscation *names, uint64_t packages, const char *name);

#endif
