/* The places of a program `known_places`, and copies of it without this or that. Room: tests.
 *
 * One rule: the copies live in a folder of the test's own, gone with _clean. */
#ifndef MEMLOG_TESTS_TOOLS_SAMPLE_PLACES_H
#define MEMLOG_TESTS_TOOLS_SAMPLE_PLACES_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

enum { SAMPLE_PLACES_MAX = 16, SAMPLE_NAME_BYTES = 16 };

struct sample_places {
    char path[PATH_MAX]; /* the program as it was built */
    char folder[PATH_MAX];
    char linked_path[PATH_MAX];   /* stripped, its debug file beside it by .gnu_debuglink */
    char stripped_path[PATH_MAX]; /* stripped, no link */
    char no_dwarf_path[PATH_MAX]; /* with its symbol table */
    char debug_root[PATH_MAX];    /* with .build-id/xx/yyy.debug */
    uint8_t build_id[64];
    size_t build_id_bytes;
    struct {
        char name[SAMPLE_NAME_BYTES];
        uint64_t offset;
    } places[SAMPLE_PLACES_MAX];
    size_t places_count;
};

/* Run the program of that name beside this one, and make the copies with objcopy. Aborts when it
 * cannot. */
void sample_places_find(struct sample_places *out_places, const char *program);
void sample_places_clean(const struct sample_places *places);

/* The ELF address of a place by name; aborts when there is none. */
uint64_t sample_place(const struct sample_places *places, const char *name);

#endif
