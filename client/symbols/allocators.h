/* Which allocator the program has, and what of it memlog does not stand before. Room: client
 * (private). Context: the constructor: one thread, before anything is recorded.
 *
 * One rule: the symbol tables of the program's objects are read, and nobody is asked: no libdl, no
 * allocation. What is loaded later is not known here. */
#ifndef MEMLOG_CLIENT_SYMBOLS_ALLOCATORS_H
#define MEMLOG_CLIENT_SYMBOLS_ALLOCATORS_H

#include <stdbool.h>

/* Texts are the loader's or static, and stay. */
struct ml_allocators {
    const char *owner; /* file of the malloc that serves; "": the executable, or nobody */
    bool in_front;     /* that malloc is called instead of memlog's */
    bool in_program;   /* it is the executable's own */
    const char
        *entry_point; /* a function of another allocator that memlog does not stand before, and
                         that the program's objects call or the executable has; "": none */
    const char *entry_point_of; /* the file that has it; "": the executable */
};

struct ml_allocators ml_allocators_find(void);

#endif
