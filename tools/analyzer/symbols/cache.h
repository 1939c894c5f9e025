/* The names of one file's addresses, kept on disk between two views of a dump. So the second view
 * opens neither ELF nor DWARF. Room: tools. Context: one thread; hostile bytes.
 *
 * One rule: names belong to a build id, never to a file that replaced another. A cache is ignored
 * when it is damaged, was written by another analyzer, or when the search may find another file
 * now.
 *
 * Shape, little-endian: "MLNAMES1"; u32 CRC-32 of what follows; u64 whose (the analyzer); u64 when
 * (0: always; else ml_symbol_search_state); u64 address, offset, size of the code's segment; u32
 * bytes of texts, u32 symbols, u32 places; the texts, each with its NUL; each symbol's u32
 * function, linkage name, file (where in the texts), u32 line, u8 inlined; each place's u64
 * address, u32 first symbol, u32 how many. Places rise. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_CACHE_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/symbols/symbolizer.h"

/* Of one file, some million places. A larger cache is not kept. */
enum { ML_SYMBOL_CACHE_FILE_MAX_BYTES = 64 * 1024 * 1024 };

#define ML_SYMBOL_CACHE_SUFFIX ".names"

struct ml_cached_place {
    uint64_t address;
    uint32_t first_symbol, symbols_count; /* 0: nothing is known there */
};

/* Empty: all zero. */
struct ml_symbol_cache {
    uint64_t state; /* 0: always valid; else while ml_symbol_search_state is this */
    struct ml_text_segment text;
    struct ml_symbol *symbols;
    size_t symbols_count, symbols_capacity;
    struct ml_cached_place *places; /* sorted; new ones behind them, not sorted */
    size_t places_count, places_capacity;
    size_t read_count; /* places that were read */
    void *bytes;       /* of the file; their texts stand in it */
};

void ml_symbol_cache_fini(struct ml_symbol_cache *cache);

/* Read the cache from `bytes`, which must live as long as its names. `state` is the state now; 0:
 * take only a cache that is always valid. False: it is not valid; `cache` stays empty. */
bool ml_symbol_cache_decode(
    struct ml_symbol_cache *cache, const void *bytes, size_t count_bytes, uint64_t state
);

/* The same from a file that this user owns. */
bool ml_symbol_cache_read(struct ml_symbol_cache *cache, const char *path, uint64_t state);

/* What was read for an address; NULL: nothing. */
const struct ml_cached_place *
ml_symbol_cache_find(const struct ml_symbol_cache *cache, uint64_t address);

/* Add an address that was not found. The texts must live until _encode. False: no memory. */
bool ml_symbol_cache_add(
    struct ml_symbol_cache *cache, uint64_t address, const struct ml_symbol *symbols, size_t count
);

/* The cache as bytes for free(). NULL: no memory, or too large. */
void *ml_symbol_cache_encode(struct ml_symbol_cache *cache, size_t *out_bytes);

#endif
