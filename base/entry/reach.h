/* May the callers of a function know which registers it leaves alone? Room: base (private to
 * base/entry). Context: any; pure.
 *
 * One rule: a doubt is a yes. A compiler that sees a function whole, with all that it calls, may
 * keep values over a call of it in registers that none of them touches (GCC's -fipa-ra), and may
 * call it with a stack that is not aligned. A hook touches them. Of a function that somewhere calls
 * what the compiler does not see (another library's function, an address in a register or in
 * memory) it knows nothing, and keeps to the convention.
 *
 * The code is followed from the entry on, through branches, jumps and calls, until such a call is
 * found. */
#ifndef MEMLOG_BASE_ENTRY_REACH_H
#define MEMLOG_BASE_ENTRY_REACH_H

#include <stdbool.h>

#include "base/entry/plan.h"

enum {
    ML_ENTRY_REACH_PLACES_MAX = 512,         /* that branches, jumps and calls lead to */
    ML_ENTRY_REACH_INSTRUCTIONS_MAX = 20000, /* some 0.4 ms; allocators' need a few hundred */
};

/* Whether it calls something that its compiler has not seen. `text` of the function is set. */
bool ml_entry_reaches_out(const struct ml_entry_function *function);

#endif
