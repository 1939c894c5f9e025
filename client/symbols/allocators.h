/* Which allocator the program has, and which of its functions memlog does not hook. Room: client
 * (private). Context: the constructor: one thread, before anything is recorded.
 *
 * One rule: only the symbol tables of the program's objects are read: no libdl, no allocation.
 * Libraries loaded later are not known here. */
#ifndef MEMLOG_CLIENT_SYMBOLS_ALLOCATORS_H
#define MEMLOG_CLIENT_SYMBOLS_ALLOCATORS_H

#include <stdbool.h>

/* Texts are the loader's or static, and stay. */
struct ml_allocators {
    const char *owner;       /* file of the malloc in use; "": the executable, or none */
    bool in_front;           /* that malloc is called instead of memlog's */
    bool in_program;         /* it is the executable's own */
    const char *entry_point; /* an unhooked function of another allocator that the program's objects
                                call or the executable has; "": none */
    const char *entry_point_of; /* the file that has it; "": the executable */
};

struct ml_allocators ml_allocators_find(void);

#endif
