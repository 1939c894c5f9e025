#include "host/memory/words.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "host/memory/type_objects.h"

enum {
    READ_BYTES = 256 << 10,
    WORD_BYTES = sizeof(uint64_t),
    FIRST_CAPACITY = 1024,
    NS_PER_MS = 1000000,
    NS_PER_S = 1000000000
};

/* Mappings of files, one behind the other joined. */
struct target {
    uint64_t start, end;
};

struct reading {
    struct ml_memory_words *words;
    int fd;
    uint64_t until_ns;
    struct ml_type_objects *types; /* NULL: vtables are looked for */
    struct target *targets;        /* by address */
    uint32_t targets_count;
    uint64_t buffer[READ_BYTES / WORD_BYTES];
};

static uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* The file whose code lies nearest below. */
struct code {
    uint64_t inode;
    bool has_relro; /* the loader wrote to a part of its data, and took that right away */
};

static void follow_code(struct code *code, const struct ml_memory_region *region) {
    if ((region->permissions & ML_MEMORY_EXECUTE) != 0) {
        *code = (struct code){.inode = region->inode};
    } else if (region->inode == code->inode && (region->permissions & ML_MEMORY_WRITE) == 0) {
        code->has_relro = code->has_relro || region->figures_kb[ML_MEMORY_ANONYMOUS] > 0;
    }
}

/* Where vtables may lie: the loader has taken the right to write away from them. Of a file that was
 * linked without that (-z norelro) they lie in the data behind its code. */
static bool may_hold_vtables(const struct ml_memory_region *region, const struct code *code) {
    const bool is_data = (region->permissions & ML_MEMORY_WRITE) != 0;
    return !is_data || (region->inode == code->inode && !code->has_relro);
}

/* Python writes to its types. */
static bool may_hold_types(const struct ml_memory_region *region, const struct code *code) {
    return (region->permissions & ML_MEMORY_WRITE) != 0 && region->inode == code->inode;
}

static bool is_target(
    const struct reading *reading, const struct ml_memory_region *region, const struct code *code
) {
    return region->inode != 0 && region->end > region->start &&
           (region->permissions & ML_MEMORY_SHARED) == 0 &&
           (region->permissions & ML_MEMORY_READ) != 0 &&
           (reading->types == NULL ? may_hold_vtables(region, code) : may_hold_types(region, code));
}

/* Where blocks may lie. */
static bool is_source(const struct ml_memory_region *region) {
    const uint32_t both = ML_MEMORY_READ | ML_MEMORY_WRITE;
    return region->inode == 0 && region->end > region->start &&
           (region->permissions & both) == both && (region->permissions & ML_MEMORY_SHARED) == 0 &&
           region->figures_kb[ML_MEMORY_RESIDENT] > 0;
}

static void find_targets(struct reading *reading, const struct ml_memory_regions *regions) {
    struct code code = {.inode = 0};
    reading->targets = calloc((size_t)regions->count + 1, sizeof(*reading->targets));
    for (uint32_t i = 0; reading->targets != NULL && i < regions->count; i++) {
        const struct ml_memory_region *region = &regions->items[i];
        const uint32_t count = reading->targets_count;
        follow_code(&code, region);
        if (!is_target(reading, region, &code)) {
            continue;
        }
        if (count > 0 && reading->targets[count - 1].end == region->start) {
            reading->targets[count - 1].end = region->end;
        } else {
            reading->targets[reading->targets_count++] =
                (struct target){.start = region->start, .end = region->end};
        }
    }
}

static bool points_into_file(const struct reading *reading, uint64_t word) {
    uint32_t low = 0;
    uint32_t high = reading->targets_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (reading->targets[middle].end <= word) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < reading->targets_count && reading->targets[low].start <= word;
}

/* False: no room. */
static bool add(struct ml_memory_words *words, uint64_t address, uint64_t word) {
    if (words->count == ML_MEMORY_WORDS_MAX) {
        return false;
    }
    if (words->count == words->capacity) {
        const uint32_t capacity = words->capacity > 0 ? words->capacity * 2 : FIRST_CAPACITY;
        struct ml_memory_word *items = reallocarray(words->items, capacity, sizeof(*words->items));
        if (items == NULL) {
            return false;
        }
        words->items = items;
        words->capacity = capacity;
    }
    words->items[words->count++] = (struct ml_memory_word){.address = address, .word = word};
    return true;
}

/* The words that were read from `address` on. False: no room. */
static bool take_words(struct reading *reading, uint64_t address, size_t count) {
    const uint64_t least = reading->targets[0].start;
    const uint64_t span = reading->targets[reading->targets_count - 1].end - least;
    for (size_t i = 0; i < count; i++) {
        const uint64_t word = reading->buffer[i];
        if (word - least < span && word % WORD_BYTES == 0 && points_into_file(reading, word) &&
            (reading->types == NULL || ml_type_objects_has(reading->types, word)) &&
            !add(reading->words, address + i * WORD_BYTES, word)) {
            return false;
        }
    }
    return true;
}

/* Resident pages from `start` to `end`. What is gone by now is passed over. False: it is enough. */
static bool read_range(struct reading *reading, uint64_t start, uint64_t end) {
    while (start < end) {
        const size_t wanted = end - start < READ_BYTES ? (size_t)(end - start) : READ_BYTES;
        const ssize_t count = pread(reading->fd, reading->buffer, wanted, (off_t)start);
        if (count < (ssize_t)WORD_BYTES) {
            return true;
        }
        reading->words->read_bytes += (uint64_t)count;
        if (!take_words(reading, start, (size_t)count / WORD_BYTES) ||
            now_ns() > reading->until_ns) {
            return false;
        }
        start += (uint64_t)count;
    }
    return true;
}

/* The region's runs begin at *at, or behind it. */
static bool read_region(
    struct reading *reading,
    const struct ml_memory_region *region,
    const struct ml_memory_pages *pages,
    uint32_t *at
) {
    if (!region->has_pages) {
        /* Without its pages it is resident as a whole, or not known to be. */
        return region->figures_kb[ML_MEMORY_RESIDENT] < region->figures_kb[ML_MEMORY_SIZE] ||
               read_range(reading, region->start, region->end);
    }
    while (*at < pages->count && pages->items[*at].address < region->start) {
        (*at)++;
    }
    for (; *at < pages->count && pages->items[*at].address < region->end; (*at)++) {
        const struct ml_memory_pages_run *run = &pages->items[*at];
        if (!read_range(reading, run->address, run->address + run->bytes)) {
            return false;
        }
    }
    return true;
}

static void read_all(
    struct reading *reading,
    const struct ml_memory_regions *regions,
    const struct ml_memory_pages *pages
) {
    uint32_t at = 0;
    bool is_all = true;
    for (uint32_t i = 0; is_all && i < regions->count; i++) {
        if (is_source(&regions->items[i])) {
            is_all = read_region(reading, &regions->items[i], pages, &at);
        }
    }
    reading->words->are_cut = !is_all;
}

static int open_of(pid_t pid, const char *file) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Too large for the reader's stack. NULL: no memory. */
static struct reading *new_reading(pid_t pid, bool are_python) {
    struct reading *reading = calloc(1, sizeof(*reading));
    struct ml_type_objects *types = are_python ? calloc(1, sizeof(*types)) : NULL;
    if (reading == NULL || (are_python && types == NULL)) {
        free(reading);
        free(types);
        return NULL;
    }
    reading->fd = open_of(pid, "mem");
    reading->types = types;
    if (types != NULL) {
        types->memory_fd = reading->fd;
        types->pages_fd = open_of(pid, "pagemap");
    }
    return reading;
}

static void free_reading(struct reading *take_reading) {
    ml_descriptor_close(&take_reading->fd);
    if (take_reading->types != NULL) {
        ml_descriptor_close(&take_reading->types->pages_fd);
    }
    free(take_reading->types);
    free(take_reading->targets);
    free(take_reading);
}

void ml_memory_words_init(
    struct ml_memory_words *words,
    bool are_python,
    pid_t pid,
    const struct ml_memory_regions *regions,
    const struct ml_memory_pages *pages
) {
    struct reading *reading = new_reading(pid, are_python);
    *words = (struct ml_memory_words){.are_python = are_python};
    if (reading == NULL) {
        return;
    }
    reading->words = words;
    reading->until_ns = now_ns() + (uint64_t)ML_MEMORY_WORDS_MOST_MS * NS_PER_MS;
    find_targets(reading, regions);
    words->were_read = reading->fd >= 0 && reading->targets_count > 0;
    if (words->were_read) {
        read_all(reading, regions, pages);
    }
    free_reading(reading);
}

void ml_memory_words_fini(struct ml_memory_words *words) {
    free(words->items);
    *words = (struct ml_memory_words){0};
}
