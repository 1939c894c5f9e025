#include "client/unwind/cfi.h"

#include <string.h>

#include "client/unwind/cfi_internal.h"

enum {
    EH_FRAME_HDR_VERSION = 1,
    PE_OMIT = 0xff,
    PE_FORMAT_MASK = 0x0f,
    PE_ABSPTR = 0x00,
    PE_ULEB128 = 0x01,
    PE_UDATA2 = 0x02,
    PE_UDATA4 = 0x03,
    PE_UDATA8 = 0x04,
    PE_SLEB128 = 0x09,
    PE_SDATA2 = 0x0a,
    PE_SDATA4 = 0x0b,
    PE_SDATA8 = 0x0c,
    PE_BASE_MASK = 0xf0,
    PE_PCREL = 0x10,
    PE_DATAREL = 0x30,
    PE_TABLE = PE_DATAREL | PE_SDATA4, /* the only search table that linkers write */
    AUGMENTATION_MAX = 8,
    LEB_SHIFT_MAX = 63
};

uint64_t ml_cfi_fixed(struct ml_cfi_cursor *cursor, uint32_t bytes) {
    uint64_t value = 0;
    if (cursor->failed || cursor->end - cursor->pos < bytes) {
        cursor->failed = true;
        return 0;
    }
    const uint8_t *at = (const uint8_t *)cursor->pos;
    for (uint32_t i = 0; i < bytes; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    cursor->pos += bytes;
    return value;
}

static uint64_t leb(struct ml_cfi_cursor *cursor, bool sign) {
    uint64_t value = 0;
    uint32_t shift = 0;
    uint64_t byte;
    do {
        byte = ml_cfi_fixed(cursor, 1);
        if (shift > LEB_SHIFT_MAX) { /* padding is legal, more than ten bytes are not sane */
            cursor->failed = true;
            return 0;
        }
        value |= (byte & 0x7f) << shift;
        shift += 7;
    } while ((byte & 0x80) != 0);
    if (sign && (byte & 0x40) != 0 && shift <= LEB_SHIFT_MAX) {
        value |= ~UINT64_C(0) << shift;
    }
    return cursor->failed ? 0 : value;
}

uint64_t ml_cfi_uleb(struct ml_cfi_cursor *cursor) {
    return leb(cursor, false);
}

int64_t ml_cfi_sleb(struct ml_cfi_cursor *cursor) {
    return (int64_t)leb(cursor, true);
}

void ml_cfi_skip(struct ml_cfi_cursor *cursor, uint64_t bytes) {
    if (cursor->failed || cursor->end - cursor->pos < bytes) {
        cursor->failed = true;
        return;
    }
    cursor->pos += bytes;
}

/* The value in its format, before its base is added. */
static uint64_t pointer_value(struct ml_cfi_cursor *cursor, uint8_t encoding) {
    switch (encoding & PE_FORMAT_MASK) {
    case PE_ABSPTR:
    case PE_UDATA8:
    case PE_SDATA8:
        return ml_cfi_fixed(cursor, 8);
    case PE_ULEB128:
        return ml_cfi_uleb(cursor);
    case PE_SLEB128:
        return (uint64_t)ml_cfi_sleb(cursor);
    case PE_UDATA2:
        return ml_cfi_fixed(cursor, 2);
    case PE_SDATA2:
        return (uint64_t)(int16_t)ml_cfi_fixed(cursor, 2);
    case PE_UDATA4:
        return ml_cfi_fixed(cursor, 4);
    case PE_SDATA4:
        return (uint64_t)(int32_t)ml_cfi_fixed(cursor, 4);
    default:
        cursor->failed = true;
        return 0;
    }
}

uintptr_t
ml_cfi_pointer(struct ml_cfi_cursor *cursor, uint8_t encoding, const struct ml_cfi_table *table) {
    uintptr_t place = cursor->pos;
    uintptr_t value = pointer_value(cursor, encoding);
    switch (encoding & PE_BASE_MASK) {
    case 0:
        return value;
    case PE_PCREL:
        return place + value;
    case PE_DATAREL:
        return table->header + value;
    default:
        cursor->failed = true;
        return 0;
    }
}

/* Start a cursor over one length-prefixed entry; *out_id_at is where its id field stands. */
static struct ml_cfi_cursor
entry_open(const struct ml_cfi_table *table, uintptr_t at, uintptr_t *out_id_at) {
    struct ml_cfi_cursor cursor = ml_cfi_cursor_make(at, table->segment_hi);
    if (at < table->segment_lo) {
        cursor.failed = true;
    }
    uint64_t length = ml_cfi_fixed(&cursor, 4);
    if (length == UINT32_MAX) {
        length = ml_cfi_fixed(&cursor, 8);
    }
    if (cursor.failed || length < 4 || length > cursor.end - cursor.pos) {
        cursor.failed = true;
        return cursor;
    }
    cursor.end = cursor.pos + length;
    *out_id_at = cursor.pos;
    return cursor;
}

/* The letters behind "z": what the augmentation data holds, in their order. */
static void
augmentation_parse(struct ml_cfi_cursor *cursor, const char *letters, struct ml_cfi_entry *entry) {
    uint64_t bytes = ml_cfi_uleb(cursor);
    struct ml_cfi_cursor data = *cursor;
    ml_cfi_skip(cursor, bytes);
    if (cursor->failed) {
        return;
    }
    data.end = data.pos + bytes;
    for (; *letters != '\0'; letters++) {
        if (*letters == 'R') {
            entry->pointer_encoding = (uint8_t)ml_cfi_fixed(&data, 1);
        } else if (*letters == 'P') {
            uint8_t encoding = (uint8_t)ml_cfi_fixed(&data, 1);
            (void)pointer_value(&data, encoding);
        } else if (*letters == 'L') {
            ml_cfi_skip(&data, 1);
        } else if (*letters == 'S') {
            entry->signal_frame = true;
        } else {
            data.failed = true;
        }
    }
    cursor->failed = cursor->failed || data.failed;
}

bool ml_cfi_common_parse(
    const struct ml_cfi_table *table, uintptr_t at, struct ml_cfi_entry *entry
) {
    uintptr_t id_at = 0;
    struct ml_cfi_cursor cursor = entry_open(table, at, &id_at);
    uint64_t id = ml_cfi_fixed(&cursor, 4);
    uint64_t version = ml_cfi_fixed(&cursor, 1);
    char letters[AUGMENTATION_MAX] = "";
    uint32_t count = 0;
    do {
        letters[count] = (char)ml_cfi_fixed(&cursor, 1);
    } while (letters[count] != '\0' && ++count < AUGMENTATION_MAX);
    if (cursor.failed || id != 0 || count == AUGMENTATION_MAX || (version != 1 && version != 3)) {
        return false;
    }
    entry->code_align = ml_cfi_uleb(&cursor);
    entry->data_align = ml_cfi_sleb(&cursor);
    uint64_t return_column = version == 1 ? ml_cfi_fixed(&cursor, 1) : ml_cfi_uleb(&cursor);
    entry->pointer_encoding = PE_ABSPTR;
    entry->sized_augmentation = letters[0] == 'z';
    entry->signal_frame = false;
    if (entry->sized_augmentation) {
        augmentation_parse(&cursor, letters + 1, entry);
    } else if (letters[0] != '\0') {
        return false;
    }
    entry->initial = cursor;
    return !cursor.failed && return_column == ML_ARCH_RA;
}

bool ml_cfi_entry_parse(
    const struct ml_cfi_table *table, uintptr_t at, struct ml_cfi_entry *entry
) {
    uintptr_t id_at = 0;
    struct ml_cfi_cursor cursor = entry_open(table, at, &id_at);
    uint64_t common_distance = ml_cfi_fixed(&cursor, 4);
    if (cursor.failed || common_distance == 0 || common_distance > id_at - table->segment_lo ||
        !ml_cfi_common_parse(table, id_at - common_distance, entry)) {
        return false;
    }
    entry->pc_begin = ml_cfi_pointer(&cursor, entry->pointer_encoding, table);
    entry->pc_end =
        entry->pc_begin + pointer_value(&cursor, entry->pointer_encoding & PE_FORMAT_MASK);
    if (entry->sized_augmentation) {
        ml_cfi_skip(&cursor, ml_cfi_uleb(&cursor));
    }
    entry->program = cursor;
    return !cursor.failed && entry->pc_begin < entry->pc_end;
}

/* The sorted search table: pairs of offsets from the header, function start and its entry. */
static bool search(const struct ml_cfi_table *table, uintptr_t pc, uintptr_t *out_entry) {
    struct ml_cfi_cursor cursor = ml_cfi_cursor_make(table->header, table->segment_hi);
    uint8_t version = (uint8_t)ml_cfi_fixed(&cursor, 1);
    uint8_t frame_encoding = (uint8_t)ml_cfi_fixed(&cursor, 1);
    uint8_t count_encoding = (uint8_t)ml_cfi_fixed(&cursor, 1);
    uint8_t table_encoding = (uint8_t)ml_cfi_fixed(&cursor, 1);
    if (cursor.failed || version != EH_FRAME_HDR_VERSION || count_encoding == PE_OMIT ||
        table_encoding != PE_TABLE) {
        return false;
    }
    if (frame_encoding != PE_OMIT) {
        (void)pointer_value(&cursor, frame_encoding);
    }
    uint64_t count = pointer_value(&cursor, count_encoding);
    if (cursor.failed || count == 0 || count > (cursor.end - cursor.pos) / 8) {
        return false;
    }
    const uint8_t *pairs = (const uint8_t *)cursor.pos;
    uint64_t low = 0;
    uint64_t high = count; /* the answer is the last pair in [low, high) not above pc */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        int32_t start;
        memcpy(&start, pairs + middle * 8, sizeof start);
        if (table->header + (uintptr_t)(intptr_t)start <= pc) {
            low = middle;
        } else {
            high = middle;
        }
    }
    int32_t entry;
    memcpy(&entry, pairs + low * 8 + 4, sizeof entry);
    *out_entry = table->header + (uintptr_t)(intptr_t)entry;
    return true;
}

/* The same in an index that was made at the start. */
static bool search_pairs(const struct ml_cfi_table *table, uintptr_t pc, uintptr_t *out_entry) {
    uint32_t low = 0;
    uint32_t high = table->pairs_count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (table->base + table->pairs[middle].code <= pc) {
            low = middle;
        } else {
            high = middle;
        }
    }
    *out_entry = table->pairs_count > 0 ? table->base + table->pairs[low].entry : 0;
    return table->pairs_count > 0;
}

static bool find_entry(const struct ml_cfi_table *table, uintptr_t pc, struct ml_cfi_entry *entry) {
    uintptr_t at = 0;
    const bool is_found = table->header != 0
                              ? table->header >= table->segment_lo && search(table, pc, &at)
                              : search_pairs(table, pc, &at);
    return is_found && ml_cfi_entry_parse(table, at, entry) && pc >= entry->pc_begin &&
           pc < entry->pc_end;
}

bool ml_cfi_find_row(
    const struct ml_cfi_table *table, uintptr_t pc, struct ml_cfi_scratch *scratch
) {
    struct ml_cfi_entry entry;
    if (!find_entry(table, pc, &entry)) {
        return false;
    }
    scratch->signal_frame = entry.signal_frame;
    return ml_cfi_run(table, &entry, pc, scratch);
}

bool ml_cfi_starts_function(const struct ml_cfi_table *table, uintptr_t pc) {
    struct ml_cfi_entry entry;
    return find_entry(table, pc, &entry) && entry.pc_begin == pc;
}
