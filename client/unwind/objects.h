/* Which of the loader's objects lies around an address of code. Room: client. Context: any thread,
 * inside malloc, inside signal handlers; lock-free.
 *
 * One rule: no call takes the loader's lock. Since glibc 2.35 it has _dl_find_object. Before that
 * its list of objects for debuggers is read (listed.h), and results are kept. Objects outside that
 * list (dlmopen's) have no names there. */
#ifndef MEMLOG_CLIENT_UNWIND_OBJECTS_H
#define MEMLOG_CLIENT_UNWIND_OBJECTS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    ML_OBJECTS_MAX = 2048 /* of an older glibc: those that are found at one time */
};

struct ml_object {
    uintptr_t start;            /* first mapped address */
    uintptr_t end;              /* one behind the last */
    uintptr_t eh_frame_hdr;     /* 0: it has none */
    const struct link_map *map; /* NULL: not known */
};

/* Errors: false when nothing of the loader's is there, or it is not known yet. */
bool ml_object_find(uintptr_t pc, struct ml_object *out_object);

/* Whether an object that was found is loaded still. Nothing of the object itself is read, which
 * another thread may unmap right now. One that looks the same may have come to its place. */
bool ml_object_is_loaded(const struct ml_object *object);

/* Where the loader's _dl_find_object is; NULL: it has none. A constructor says so; in a running
 * process whoever put the client there. */
void ml_object_begin(const void *find_object);

/* The client's own object, which the loader of an attached process does not know. The map stays. */
void ml_object_is_own(const struct link_map *map);

/* Whether the loader is asked, or its list is read. */
bool ml_object_by_loader(void);

/* Address range and unwind table of an object in the loader's list that is mapped by `bias`, by its
 * headers: of the program itself as the kernel tells them. False: it has none. */
bool ml_object_describe(
    const struct link_map *map, uintptr_t bias, bool is_program, struct ml_object *out_object
);

/* Something may have been unloaded. */
void ml_object_changed(void);

/* The program headers of an object in the loader's list, mapped; 0: there are none to be found. */
uint32_t ml_object_headers(const struct link_map *map, const ElfW(Phdr) * *out_headers);

/* Read the list from now on, as under an older glibc. For tests. */
void ml_object_use_list(void);

#endif
