#include "client/unwind/unindexed.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#include "client/symbols/loaded.h"
#include "client/unwind/cfi_internal.h"
#include "client/unwind/objects.h"

enum {
    /* Of functions, in all objects: what is not used takes no memory. */
    PAIRS_MAX = ML_ATTACHED ? 1 << 18 : 1 << 15,
    OBJECTS_MAX = 16,
    /* In a process that runs, other threads may unload what is behind the program itself. */
    LOADED_MAX = ML_ATTACHED ? 1 : 4096,
    STEP_BYTES = 4,          /* tables and their entries begin there */
    COMMON_BYTES_MIN = 16,   /* of a common entry: its length, id, version, letters, the rest */
    COMMON_BYTES_MAX = 1024, /* it describes what functions have in common, and is short */
    /* A linker puts the table at an end of its segment, beside what else describes code. All that
     * takes less than so much for each byte of code, and a little. */
    BYTES_A_CODE_BYTE = 8,
    EDGE_BYTES_MIN = 1 << 16
};
static const uintptr_t EDGE_BYTES_MAX = (uintptr_t)1 << 27; /* to be read at a start */

/* Written by ml_unindexed_find alone. A forked child has its parent's. */
static struct ml_cfi_pair pairs[PAIRS_MAX];
static struct ml_cfi_table tables[OBJECTS_MAX];
static uint32_t tables_count;

/* ---- a segment */

struct scan {
    const struct ml_cfi_table *segment;
    uintptr_t code_lo, code_hi, base;
    struct ml_cfi_pair *pairs;
    size_t count, most;
};

static uint32_t word(uintptr_t at) {
    uint32_t value;
    memcpy(&value, (const void *)at, sizeof(value));
    return value;
}

static void add(struct scan *scan, uintptr_t at, const struct ml_cfi_entry *entry) {
    if (entry->pc_begin < scan->code_lo || entry->pc_end > scan->code_hi ||
        entry->pc_begin - scan->base > UINT32_MAX || at - scan->base > UINT32_MAX) {
        return;
    }
    if (scan->count < scan->most) {
        scan->pairs[scan->count] = (struct ml_cfi_pair
        ){.code = (uint32_t)(entry->pc_begin - scan->base), .entry = (uint32_t)(at - scan->base)};
    }
    scan->count++;
}

/* One entry: a common one, or a function's, whose common one is there. One that says nothing of
 * the object's code is passed over. */
static bool take(struct scan *scan, uintptr_t at) {
    struct ml_cfi_entry entry;
    const uint32_t id = word(at + sizeof(uint32_t));
    const uintptr_t id_at = at + sizeof(uint32_t);
    if (id == 0) {
        return ml_cfi_common_parse(scan->segment, at, &entry);
    }
    if (ml_cfi_entry_parse(scan->segment, at, &entry)) {
        add(scan, at, &entry);
        return true;
    }
    return id <= id_at - scan->segment->segment_lo &&
           ml_cfi_common_parse(scan->segment, id_at - id, &entry);
}

/* Entries one behind the other; returns where they end: at a length of 0, or at what is none. */
static uintptr_t take_all(struct scan *scan, uintptr_t at) {
    const uintptr_t end = scan->segment->segment_hi;
    while (end - at >= 2 * sizeof(uint32_t)) {
        const uint32_t length = word(at);
        if (length < sizeof(uint32_t) || length > end - at - sizeof(uint32_t) || !take(scan, at)) {
            break;
        }
        at += sizeof(uint32_t) + length;
    }
    return at;
}

/* Whether a table may begin there: most places are ruled out by their first words. */
static bool may_begin(const struct ml_cfi_table *segment, uintptr_t at) {
    struct ml_cfi_entry entry;
    const uint32_t length = word(at);
    return word(at + sizeof(uint32_t)) == 0 && length >= COMMON_BYTES_MIN - sizeof(uint32_t) &&
           length <= COMMON_BYTES_MAX && ml_cfi_common_parse(segment, at, &entry);
}

/* By code. A heap: no more memory, and no worst case. */
static void sift(struct ml_cfi_pair *list, size_t root, size_t count) {
    const struct ml_cfi_pair moved = list[root];
    for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        child += child + 1 < count && list[child].code < list[child + 1].code;
        if (list[child].code <= moved.code) {
            break;
        }
        list[root] = list[child];
        root = child;
    }
    list[root] = moved;
}

static void sort(struct ml_cfi_pair *list, size_t count) {
    for (size_t root = count / 2; root-- > 0;) {
        sift(list, root, count);
    }
    for (size_t last = count; last-- > 1;) {
        const struct ml_cfi_pair greatest = list[0];
        list[0] = list[last];
        list[last] = greatest;
        sift(list, 0, last);
    }
}

static uintptr_t aligned(uintptr_t at) {
    return (at + STEP_BYTES - 1) & ~(uintptr_t)(STEP_BYTES - 1);
}

/* How far from its ends a segment is looked at. Data in between may be of any size, and looking
 * would bring all of it into memory. */
static uintptr_t edge_bytes(uintptr_t code_bytes) {
    const uintptr_t bytes = code_bytes < EDGE_BYTES_MAX / BYTES_A_CODE_BYTE
                                ? EDGE_BYTES_MIN + code_bytes * BYTES_A_CODE_BYTE
                                : EDGE_BYTES_MAX;
    return bytes < EDGE_BYTES_MAX ? bytes : EDGE_BYTES_MAX;
}

size_t ml_unindexed_scan(
    const struct ml_cfi_table *segment,
    uintptr_t code_lo,
    uintptr_t code_hi,
    uintptr_t base,
    struct ml_cfi_pair *out_pairs,
    size_t most
) {
    struct scan scan = {
        .segment = segment,
        .code_lo = code_lo,
        .code_hi = code_hi,
        .base = base,
        .pairs = out_pairs,
        .most = most};
    const uintptr_t end = segment->segment_hi;
    const uintptr_t edge = edge_bytes(code_lo < code_hi ? code_hi - code_lo : 0);
    uintptr_t at = aligned(segment->segment_lo);
    while (at >= STEP_BYTES && at < end && end - at >= COMMON_BYTES_MIN) {
        const size_t before = scan.count;
        const uintptr_t behind = may_begin(segment, at) ? take_all(&scan, at) : at;
        at = scan.count > before ? aligned(behind) : at + STEP_BYTES;
        if (at - segment->segment_lo >= edge && at < end && end - at > edge) {
            at = aligned(end - edge);
        }
    }
    if (scan.count > most) {
        return SIZE_MAX;
    }
    sort(out_pairs, scan.count);
    return scan.count;
}

/* ---- the objects */

static bool has_index(const ElfW(Phdr) * headers, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (headers[i].p_type == PT_GNU_EH_FRAME) {
            return true;
        }
    }
    return false;
}

static void bounds_of_code(
    const ElfW(Phdr) * headers, uint32_t count, uintptr_t bias, uintptr_t *out_lo, uintptr_t *out_hi
) {
    *out_lo = UINTPTR_MAX;
    *out_hi = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uintptr_t lo = bias + headers[i].p_vaddr;
        if (headers[i].p_type == PT_LOAD && (headers[i].p_flags & PF_X) != 0) {
            *out_lo = lo < *out_lo ? lo : *out_lo;
            *out_hi = lo + headers[i].p_filesz > *out_hi ? lo + headers[i].p_filesz : *out_hi;
        }
    }
}

/* Returns how many pairs are used then. */
static size_t
index_object(const ElfW(Phdr) * headers, uint32_t count, uintptr_t bias, size_t used) {
    uintptr_t code_lo = 0;
    uintptr_t code_hi = 0;
    bounds_of_code(headers, count, bias, &code_lo, &code_hi);
    for (uint32_t i = 0; i < count && tables_count < OBJECTS_MAX; i++) {
        const uintptr_t lo = bias + headers[i].p_vaddr;
        struct ml_cfi_table table = {.segment_lo = lo, .segment_hi = lo + headers[i].p_filesz};
        if (headers[i].p_type != PT_LOAD || (headers[i].p_flags & (PF_R | PF_W)) != PF_R) {
            continue;
        }
        table.base = lo < code_lo ? lo : code_lo;
        table.pairs = &pairs[used];
        const size_t found =
            ml_unindexed_scan(&table, code_lo, code_hi, table.base, &pairs[used], PAIRS_MAX - used);
        if (found == 0 || found == SIZE_MAX) {
            continue;
        }
        table.pairs_count = (uint32_t)found;
        tables[tables_count++] = table;
        used += found;
    }
    return used;
}

void ml_unindexed_find(void) {
    const struct link_map *map = ml_loaded_first();
    size_t used = 0;
    tables_count = 0;
    for (uint32_t i = 0; i < LOADED_MAX && map != NULL; i++) {
        const ElfW(Phdr) *headers = NULL;
        const uint32_t count = ml_object_headers(map, &headers);
        if (count > 0 && !has_index(headers, count)) {
            used = index_object(headers, count, map->l_addr, used);
        }
        map = map->l_next;
    }
}

struct ml_cfi_table ml_unindexed_table(uintptr_t segment_lo, uintptr_t segment_hi) {
    for (uint32_t i = 0; i < tables_count; i++) {
        if (tables[i].segment_lo == segment_lo && tables[i].segment_hi == segment_hi) {
            return tables[i];
        }
    }
    return (struct ml_cfi_table){0};
}
