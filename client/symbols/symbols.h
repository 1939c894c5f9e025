/* Finds the next definition of a function in the symbol tables themselves. Room: client (private).
 * Context: as each function says.
 *
 * One rule: libdl is never called. A failed dlsym leaves an error text, which the program's own
 * dlerror would return and its own free would get; a successful one discards the program's. */
#ifndef MEMLOG_CLIENT_SYMBOLS_SYMBOLS_H
#define MEMLOG_CLIENT_SYMBOLS_SYMBOLS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ml_loaded_symbol {
    void *address;    /* NULL: no definition */
    const char *path; /* of the object that has it, as the loader names it; borrowed from there */
};

/* While it is on, the objects' tables are read once instead of for each name. The constructor turns
 * it on while nothing is loaded or unloaded. */
void ml_symbols_keep(bool on);

/* What dlsym(RTLD_NEXT, name) finds at the start of a program: the first definition behind this
 * object, in the order in which the program's objects were loaded. An indirect function is
 * resolved.
 *
 * Context: the constructor, or whatever runs before it: one thread. */
struct ml_loaded_symbol ml_symbol_next(const char *name);

/* The same, into a function pointer; NULL: there is none. */
void ml_symbol_next_function(void *out_function, const char *name);

/* Whether an object of the process, but for this one, exports a definition of that name. Looks at
 * the start of a program alone, and sees nothing where the client is linked in without -pie.
 *
 * Context: the constructor: one thread. */
bool ml_symbol_is_defined(const char *name);

/* The same name in a library that has been loaded since; `file` is the name that its path ends
 * with. Takes the loader's lock.
 *
 * Context: no lock of ours is held. */
struct ml_loaded_symbol ml_symbol_of_library(const char *file, const char *name);

/* The first definition of a name at the start of a program, in the order in which its objects were
 * loaded: the one that calls reach. Nothing is resolved.
 *
 * Context: as ml_symbol_next. */
struct ml_symbol_owner {
    const char *path;  /* NULL: none */
    bool is_ours;      /* this object */
    bool is_program;   /* the first one, the executable (of which this object may be a part) */
    const void *where; /* its dynamic section */
};
struct ml_symbol_owner ml_symbol_first(const char *name);

/* Whether an object of the program references that name, other than the one that defines it and
 * this one. Reads their relocations. Context: as ml_symbol_next. */
bool ml_symbol_is_wanted(const char *name, const struct ml_symbol_owner *owner);

/* Whether that dynamic section is this object's. */
bool ml_symbol_is_ours(const ElfW(Dyn) * dynamic);

/* The address of a function that the object with that dynamic section defines, as ml_symbol_in, but
 * nobody is called: an indirect function is none. 0: none. Context: any; the object stays. */
uintptr_t ml_symbol_function_in(uintptr_t base, const ElfW(Dyn) * dynamic, const char *name);

/* The same of a variable. One that the executable has a copy of is told as the library has it. */
uintptr_t ml_symbol_data_in(uintptr_t base, const ElfW(Dyn) * dynamic, const char *name);

/* Whether the executable itself is linked with a library of that path's file name: then it stays
 * until the program ends, as nothing that dlopen has loaded does. Context: any. */
bool ml_symbol_is_linked(const char *path);

/* The definition in the object with that dynamic section, which lies `base` off where it was linked
 * for: as dlsym takes it, the default version alone. NULL: none. For tests beside the above. */
void *ml_symbol_in(uintptr_t base, const ElfW(Dyn) * dynamic, const char *name);

#endif
