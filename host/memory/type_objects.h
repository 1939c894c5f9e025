/* Which addresses of a process are those of CPython's type objects: an object of Python's holds the
 * address of its type. Room: host. Context: any; reads /proc only.
 *
 * One rule: a type is known by its form alone. Its second word is the address of its own type, that
 * one's of its own, and so on to the one type that is its own type. Only resident pages are read.
 */
#ifndef MEMLOG_HOST_MEMORY_TYPE_OBJECTS_H
#define MEMLOG_HOST_MEMORY_TYPE_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

/* Answers that are kept: a program has some hundred types in use. */
enum { ML_TYPE_OBJECTS_KEPT = 4096 };

struct ml_type_objects {
    int memory_fd; /* of /proc/PID/mem; the caller's */
    int pages_fd;  /* of /proc/PID/pagemap, likewise */
    struct ml_type_object_answer {
        uint64_t address; /* 0: none */
        bool is_one;
    } kept[ML_TYPE_OBJECTS_KEPT];
};

bool ml_type_objects_has(struct ml_type_objects *objects, uint64_t address);

#endif
