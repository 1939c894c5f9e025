/* The names of one file's addresses, as they are kept on disk between two views of a dump: the
 * second one opens neither ELF nor DWARF. Room: tools. Context: one thread; hostile bytes.
 *
 * One rule: names are of a build id, so they are never those of a file that took another's place. A
 * cache that is not whole, of another analyzer, or of a time when another file would have answered
 * is none.
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

/* One file's; a larger one is not kept. Some million places. */
enum { ML_SYMBOL_CACHE_FILE_MAX_BYTES = 64 * 1024 * 1024 };

#define ML_SYMBOL_CACHE_SUFFIX ".names"

struct ml_cached_place {
    uint64_t address;
    uint32_t first_symbol, symbols_count; /* 0: nothing is known there */
};

/* Empty: all zero. */
struct ml_symbol_cache {
    uint64_t state; /* 0: it holds always; else while ml_symbol_search_state says this */
    struct ml_text_segment text;
    struct ml_symbol *symbols;
    size_t symbols_count, symbols_capacity;
    struct ml_cached_place *places; /* sorted; new ones behind them as they came */
    size_t places_count, places_capacity;
    size_t read_count; /* of places: those that were read */
    void *bytes;       /* of the file; their texts stand in it */
};

void ml_symbol_cache_fini(struct ml_symbol_cache *cache);

/* Read it from `bytes`, which must live as long as what is found in it. `state`: what holds now, 0:
 * only what holds always is taken. False: it is none of ours, or has gone off; it stays empty. */
bool ml_symbol_cache_decode(
    struct ml_symbol_cache *cache, const void *bytes, size_t count_bytes, uint64_t state
);

/* The same from a file of this user's. */
bool ml_symbol_cache_read(struct ml_symbol_cache *cache, const char *path, uint64_t state);

/* What was read of an address; NULL: nothing. */
const struct ml_cached_place *
ml_symbol_cache_find(const struct ml_symbol_cache *cache, uint64_t address);

/* Take an address that was not found. The texts must live until it is encoded. False: no memory. */
bool ml_symbol_cache_add(
    struct ml_symbol_cache *cache, uint64_t address, const struct ml_symbol *symbols, size_t count
);

/* All of it, as bytes for free(). NULL: no memory, or too large. */
void *ml_symbol_cache_encode(struct ml_symbol_cache *cache, size_t *out_bytes);

#endif
