#include "tools/analyzer/symbols/cache.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/trace/crc32.h"
#include "ipc/wire/reader.h"
#include "ipc/wire/writer.h"
#include "tools/analyzer/model/index.h"
#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/model/search.h"

/* Bytes of the shape in the header. */
enum {
    MAGIC_BYTES = 8,
    SEALED_AT = MAGIC_BYTES + 4, /* from here on the checksum's */
    HEAD_BYTES = SEALED_AT + 5 * 8 + 3 * 4,
    SYMBOL_BYTES = 4 * 4 + 1,
    PLACE_BYTES = 8 + 2 * 4
};
static const char magic[MAGIC_BYTES + 1] = "MLNAMES1";

/* A number of this analyzer's build id. Another analyzer may find more names in the same file. */
static int hash_notes(struct dl_phdr_info *info, size_t size, void *out_hash) {
    uint64_t *hash = out_hash;

    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_NOTE) {
            const char *notes = (const char *)info->dlpi_addr + header->p_vaddr;
            *hash = ml_hash(*hash, notes, header->p_memsz);
        }
    }
    return 1; /* the program itself comes first */
}

static uint64_t analyzer_id(void) {
    uint64_t hash = 0;

    (void)dl_iterate_phdr(hash_notes, &hash);
    return hash;
}

void ml_symbol_cache_fini(struct ml_symbol_cache *cache) {
    free(cache->symbols);
    free(cache->places);
    free(cache->bytes);
    *cache = (struct ml_symbol_cache){0};
}

struct head {
    uint64_t state;
    struct ml_text_segment text;
    uint32_t texts_bytes, symbols_count, places_count;
};

/* ml_reader's numbers, after each other; what comes behind a missing one is 0. */
static uint32_t take_u32(struct ml_reader *r, bool *ok) {
    uint32_t value = 0;

    *ok = *ok && ml_reader_u32(r, &value) == ML_OK;
    return value;
}

static uint64_t take_u64(struct ml_reader *r, bool *ok) {
    uint64_t value = 0;

    *ok = *ok && ml_reader_u64(r, &value) == ML_OK;
    return value;
}

static bool head_take(struct ml_reader *r, struct head *head) {
    const uint8_t *bytes = NULL;
    bool ok =
        ml_reader_bytes(r, MAGIC_BYTES, &bytes) == ML_OK && memcmp(bytes, magic, MAGIC_BYTES) == 0;
    uint32_t checksum = take_u32(r, &ok);

    ok = ok && ml_crc32(0, r->pos, ml_reader_left(r)) == checksum;
    ok = take_u64(r, &ok) == analyzer_id() && ok;
    head->state = take_u64(r, &ok);
    head->text.address = take_u64(r, &ok);
    head->text.offset = take_u64(r, &ok);
    head->text.size_bytes = take_u64(r, &ok);
    head->texts_bytes = take_u32(r, &ok);
    head->symbols_count = take_u32(r, &ok);
    head->places_count = take_u32(r, &ok);
    /* Checked before memory is allocated for them. */
    return ok && ml_reader_left(r) == head->texts_bytes +
                                          (uint64_t)head->symbols_count * SYMBOL_BYTES +
                                          (uint64_t)head->places_count * PLACE_BYTES;
}

/* The text at that offset; outside "" and not ok. */
static const char *
text_take(struct ml_reader *r, const char *texts, uint32_t texts_bytes, bool *ok) {
    uint32_t at = take_u32(r, ok);

    *ok = *ok && at < texts_bytes;
    return *ok ? texts + at : "";
}

static bool symbols_take(struct ml_reader *r, const struct head *head, struct ml_symbol *out) {
    const uint8_t *bytes = NULL;
    const char *texts = NULL;
    bool ok = ml_reader_bytes(r, head->texts_bytes, &bytes) == ML_OK;

    /* So each text ends within the bytes. */
    ok = ok && (head->texts_bytes == 0 || bytes[head->texts_bytes - 1] == '\0');
    texts = (const char *)bytes;
    for (uint32_t i = 0; ok && i < head->symbols_count; i++) {
        uint8_t inlined = 0;
        out[i].function = text_take(r, texts, head->texts_bytes, &ok);
        out[i].linkage = text_take(r, texts, head->texts_bytes, &ok);
        out[i].file = text_take(r, texts, head->texts_bytes, &ok);
        out[i].line = take_u32(r, &ok);
        ok = ok && ml_reader_u8(r, &inlined) == ML_OK && inlined <= 1;
        out[i].inlined = inlined;
    }
    return ok;
}

static bool places_take(struct ml_reader *r, const struct head *head, struct ml_cached_place *out) {
    bool ok = true;

    for (uint32_t i = 0; ok && i < head->places_count; i++) {
        out[i].address = take_u64(r, &ok);
        out[i].first_symbol = take_u32(r, &ok);
        out[i].symbols_count = take_u32(r, &ok);
        ok = ok && (i == 0 || out[i - 1].address < out[i].address) &&
             out[i].symbols_count <= ML_SYMBOL_INLINES_MAX &&
             out[i].first_symbol <= head->symbols_count &&
             out[i].symbols_count <= head->symbols_count - out[i].first_symbol;
    }
    return ok;
}

bool ml_symbol_cache_decode(
    struct ml_symbol_cache *cache, const void *bytes, size_t count_bytes, uint64_t state
) {
    struct ml_reader r = ml_reader_over(bytes, count_bytes);
    struct head head;

    if (!head_take(&r, &head) || (head.state != 0 && head.state != state)) {
        return false;
    }
    if (!ML_GROW(cache->symbols, cache->symbols_capacity, head.symbols_count + (size_t)1) ||
        !ML_GROW(cache->places, cache->places_capacity, head.places_count + (size_t)1) ||
        !symbols_take(&r, &head, cache->symbols) || !places_take(&r, &head, cache->places)) {
        ml_symbol_cache_fini(cache);
        return false;
    }
    cache->state = head.state;
    cache->text = head.text;
    cache->symbols_count = head.symbols_count;
    cache->places_count = head.places_count;
    cache->read_count = head.places_count;
    return true;
}

bool ml_symbol_cache_read(struct ml_symbol_cache *cache, const char *path, uint64_t state) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat status;
    uint8_t *bytes = NULL;
    size_t count = 0;
    bool ours = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                status.st_uid == geteuid() && status.st_size >= HEAD_BYTES &&
                status.st_size <= ML_SYMBOL_CACHE_FILE_MAX_BYTES;

    if (ours) {
        bytes = malloc((size_t)status.st_size);
    }
    while (bytes && count < (size_t)status.st_size) {
        ssize_t got = read(fd, bytes + count, (size_t)status.st_size - count);
        if (got <= 0) {
            break;
        }
        count += (size_t)got;
    }
    if (fd >= 0) {
        close(fd);
    }
    if (!bytes || !ml_symbol_cache_decode(cache, bytes, count, state)) {
        free(bytes);
        return false;
    }
    cache->bytes = bytes;
    return true;
}

const struct ml_cached_place *
ml_symbol_cache_find(const struct ml_symbol_cache *cache, uint64_t address) {
    size_t low = ml_keys_below(ML_KEYS(cache->places, cache->read_count, address), address);

    return low < cache->read_count && cache->places[low].address == address ? &cache->places[low]
                                                                            : NULL;
}

bool ml_symbol_cache_add(
    struct ml_symbol_cache *cache, uint64_t address, const struct ml_symbol *symbols, size_t count
) {
    if (!ML_GROW(cache->symbols, cache->symbols_capacity, cache->symbols_count + count) ||
        !ML_GROW(cache->places, cache->places_capacity, cache->places_count + 1)) {
        return false;
    }
    cache->places[cache->places_count++] = (struct ml_cached_place){
        .address = address,
        .first_symbol = (uint32_t)cache->symbols_count,
        .symbols_count = (uint32_t)count,
    };
    for (size_t i = 0; i < count; i++) {
        cache->symbols[cache->symbols_count++] = symbols[i];
    }
    return true;
}

static int order_places(const void *left, const void *right) {
    const struct ml_cached_place *a = left;
    const struct ml_cached_place *b = right;

    return (a->address > b->address) - (a->address < b->address);
}

/* The texts, each once. */
struct texts {
    char *bytes;
    size_t count, capacity;
    struct ml_index index; /* of where they begin */
    bool done;
};

static uint32_t text_put(struct texts *texts, const char *text) {
    size_t bytes = strlen(text) + 1;
    uint64_t hash = ml_hash(0, text, bytes);
    size_t at = 0;

    for (uint32_t item = ml_index_first(&texts->index, hash, &at); item != ML_INDEX_NONE;
         item = ml_index_next(&texts->index, hash, &at)) {
        if (texts->bytes && strcmp(texts->bytes + item, text) == 0) {
            return item;
        }
    }
    if (!texts->done || texts->count + bytes > ML_SYMBOL_CACHE_FILE_MAX_BYTES ||
        !ML_GROW(texts->bytes, texts->capacity, texts->count + bytes) ||
        !ml_index_add(&texts->index, hash, (uint32_t)texts->count)) {
        texts->done = false;
        return 0;
    }
    memcpy(texts->bytes + texts->count, text, bytes);
    texts->count += bytes;
    return (uint32_t)(texts->count - bytes);
}

/* The symbols' bytes, while their texts are gathered. */
static void symbols_put(struct ml_writer *w, const struct ml_symbol_cache *cache, struct texts *t) {
    for (size_t i = 0; i < cache->symbols_count; i++) {
        const struct ml_symbol *symbol = &cache->symbols[i];
        ml_writer_u32(w, text_put(t, symbol->function));
        ml_writer_u32(w, text_put(t, symbol->linkage));
        ml_writer_u32(w, text_put(t, symbol->file));
        ml_writer_u32(w, symbol->line);
        ml_writer_u8(w, symbol->inlined);
    }
}

/* The whole into `bytes`, which is as large as it needs. */
static void put_all(
    uint8_t *bytes,
    size_t count_bytes,
    const struct ml_symbol_cache *cache,
    const struct texts *texts,
    const uint8_t *symbols
) {
    struct ml_writer w = ml_writer_into(bytes, count_bytes);
    struct ml_writer checksum = ml_writer_into(bytes + MAGIC_BYTES, SEALED_AT - MAGIC_BYTES);

    ml_writer_bytes(&w, magic, MAGIC_BYTES);
    ml_writer_u32(&w, 0);
    ml_writer_u64(&w, analyzer_id());
    ml_writer_u64(&w, cache->state);
    ml_writer_u64(&w, cache->text.address);
    ml_writer_u64(&w, cache->text.offset);
    ml_writer_u64(&w, cache->text.size_bytes);
    ml_writer_u32(&w, (uint32_t)texts->count);
    ml_writer_u32(&w, (uint32_t)cache->symbols_count);
    ml_writer_u32(&w, (uint32_t)cache->places_count);
    if (texts->count > 0) {
        ml_writer_bytes(&w, texts->bytes, texts->count);
    }
    ml_writer_bytes(&w, symbols, cache->symbols_count * SYMBOL_BYTES);
    for (size_t i = 0; i < cache->places_count; i++) {
        ml_writer_u64(&w, cache->places[i].address);
        ml_writer_u32(&w, cache->places[i].first_symbol);
        ml_writer_u32(&w, cache->places[i].symbols_count);
    }
    ml_writer_u32(&checksum, ml_crc32(0, bytes + SEALED_AT, count_bytes - SEALED_AT));
}

void *ml_symbol_cache_encode(struct ml_symbol_cache *cache, size_t *out_bytes) {
    size_t symbols_bytes = cache->symbols_count * SYMBOL_BYTES;
    uint8_t *symbols = malloc(symbols_bytes + 1);
    struct texts texts = {.done = symbols != NULL};
    struct ml_writer w = ml_writer_into(symbols, symbols ? symbols_bytes : 0);
    uint8_t *bytes = NULL;

    ML_SORT(cache->places, cache->places_count, order_places);
    if (symbols) {
        symbols_put(&w, cache, &texts);
    }
    *out_bytes = HEAD_BYTES + texts.count + symbols_bytes + cache->places_count * PLACE_BYTES;
    if (texts.done && *out_bytes <= ML_SYMBOL_CACHE_FILE_MAX_BYTES) {
        bytes = malloc(*out_bytes);
    }
    if (bytes) {
        put_all(bytes, *out_bytes, cache, &texts, symbols);
    }
    free(symbols);
    free(texts.bytes);
    ml_index_fini(&texts.index);
    return bytes;
}
