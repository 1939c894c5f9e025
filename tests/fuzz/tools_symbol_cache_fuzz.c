/* A file of kept names, behind its seal: whoever writes into the cache folder can seal anything. */
#include <stdlib.h>
#include <string.h>

#include "ipc/trace/crc32.h"
#include "ipc/wire/writer.h"
#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/symbols/cache.h"

/* Magic, checksum and whose it is; the input is what follows. */
enum { MAGIC_BYTES = 8, SEALED_AT = 12, INPUT_AT = 20, STATE = 1 };

static void promises_kept(const struct ml_symbol_cache *cache, const uint8_t *end) {
    for (size_t i = 0; i < cache->symbols_count; i++) {
        const struct ml_symbol *symbol = &cache->symbols[i];
        const char *texts[] = {symbol->function, symbol->linkage, symbol->file};
        for (size_t t = 0; t < 3; t++) {
            REQUIRE((const uint8_t *)texts[t] + strlen(texts[t]) < end);
        }
    }
    for (size_t i = 0; i < cache->places_count; i++) {
        const struct ml_cached_place *place = &cache->places[i];
        REQUIRE(place->first_symbol + place->symbols_count <= cache->symbols_count);
        REQUIRE(place->symbols_count <= ML_SYMBOL_INLINES_MAX);
        REQUIRE(ml_symbol_cache_find(cache, place->address) == place);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    struct ml_symbol_cache empty = {0};
    struct ml_symbol_cache cache = {0};
    struct ml_symbol_cache again = {0};
    size_t head_bytes = 0;
    size_t again_bytes = 0;
    uint8_t *head = ml_symbol_cache_encode(&empty, &head_bytes);
    uint8_t *bytes = malloc(INPUT_AT + count_bytes);
    REQUIRE(head != NULL && bytes != NULL && head_bytes > INPUT_AT);
    memcpy(bytes, head, INPUT_AT);
    if (count_bytes > 0) {
        memcpy(bytes + INPUT_AT, data, count_bytes);
    }
    struct ml_writer checksum = ml_writer_into(bytes + MAGIC_BYTES, SEALED_AT - MAGIC_BYTES);
    ml_writer_u32(&checksum, ml_crc32(0, bytes + SEALED_AT, INPUT_AT - SEALED_AT + count_bytes));
    if (ml_symbol_cache_decode(&cache, bytes, INPUT_AT + count_bytes, STATE)) {
        promises_kept(&cache, bytes + INPUT_AT + count_bytes);
        uint8_t *encoded = ml_symbol_cache_encode(&cache, &again_bytes);
        REQUIRE(encoded != NULL);
        REQUIRE(ml_symbol_cache_decode(&again, encoded, again_bytes, STATE));
        REQUIRE(again.places_count == cache.places_count);
        ml_symbol_cache_fini(&again);
        free(encoded);
    } else {
        REQUIRE(cache.places_count == 0 && cache.symbols_count == 0);
    }
    ml_symbol_cache_fini(&cache);
    ml_symbol_cache_fini(&empty);
    free(bytes);
    free(head);
    return 0;
}
