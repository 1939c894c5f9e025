#include "client/unwind/range.h"

#include <stddef.h>

#include "client/symbols/loaded.h"
#include "client/unwind/arch.h"

static uintptr_t page_of(uintptr_t address) {
    return address & ~(uintptr_t)(ML_ARCH_PAGE_BYTES - 1);
}

static bool covers(const struct ml_unwind_range *range, uintptr_t address, uintptr_t end) {
    return address >= range->lo && end <= range->hi;
}

/* Extend a range outwards to `end`, page by page, as far as the pages can be read. */
static bool grow_up(struct ml_unwind_range *range, uintptr_t end) {
    if (end <= range->hi) {
        return true;
    }
    if ((end - range->hi) / ML_ARCH_PAGE_BYTES >= ML_UNWIND_RANGE_GROW_PAGES) {
        return false;
    }
    while (range->hi < end) {
        if (!ml_arch_readable(range->hi)) {
            return false;
        }
        range->hi += ML_ARCH_PAGE_BYTES;
    }
    return true;
}

/* Extend a range down to the page of `address`, when everything between can be read. */
static bool grow_down(struct ml_unwind_range *range, uintptr_t address) {
    uintptr_t lo = page_of(address);
    if (range->hi == 0 || address >= range->hi || lo > range->lo ||
        (range->lo - lo) / ML_ARCH_PAGE_BYTES > ML_UNWIND_RANGE_DOWN_PAGES) {
        return false;
    }
    for (uintptr_t page = lo; page < range->lo; page += ML_ARCH_PAGE_BYTES) {
        if (!ml_arch_readable(page)) {
            return false;
        }
    }
    range->lo = lo;
    return true;
}

void ml_unwind_range_forget(struct ml_unwind_ranges *ranges) {
    for (uint32_t i = 1; i < ML_UNWIND_RANGES; i++) {
        ranges->list[i] = (struct ml_unwind_range){0};
    }
}

uint32_t ml_unwind_range_enter(struct ml_unwind_ranges *ranges, uintptr_t sp, bool *out_changed) {
    uintptr_t word = sp - ML_ARCH_WORD_BYTES;
    *out_changed = false;
    if (covers(&ranges->list[ranges->current], word, sp) ||
        grow_down(&ranges->list[ranges->current], word)) {
        return ranges->current;
    }
    *out_changed = true;
    if (covers(&ranges->list[0], word, sp) || grow_down(&ranges->list[0], word)) {
        ml_unwind_range_forget(ranges);
        ranges->current = 0;
        return 0;
    }
    ml_unwind_range_forget(ranges);
    ranges->list[1].lo = page_of(word);
    ranges->list[1].hi = page_of(word) + ML_ARCH_PAGE_BYTES;
    ranges->current = 1;
    return 1;
}

bool ml_unwind_range_reach(
    struct ml_unwind_ranges *ranges, uint32_t index, uintptr_t address, uintptr_t end
) {
    struct ml_unwind_range *range = &ranges->list[index];
    if (address < range->lo || end < address) {
        return false;
    }
    if (end <= range->hi) {
        return true;
    }
    /* The own stack ends where its anchor is; readable memory behind it is not part of it. */
    return index != 0 && grow_up(range, end);
}

uint32_t ml_unwind_range_switch(struct ml_unwind_ranges *ranges, uintptr_t address, uintptr_t end) {
    if (end < address || !ml_arch_readable(page_of(address))) {
        return ML_UNWIND_RANGES;
    }
    for (uint32_t i = 0; i < ML_UNWIND_RANGES; i++) {
        struct ml_unwind_range *range = &ranges->list[i];
        if (range->hi != 0 && (address >= range->lo || grow_down(range, address)) &&
            address < range->hi) {
            return ml_unwind_range_reach(ranges, i, address, end) ? i : ML_UNWIND_RANGES;
        }
    }
    for (uint32_t i = 1; i < ML_UNWIND_RANGES; i++) {
        if (ranges->list[i].hi == 0) {
            ranges->list[i].lo = page_of(address);
            ranges->list[i].hi = page_of(address) + ML_ARCH_PAGE_BYTES;
            return ml_unwind_range_reach(ranges, i, address, end) ? i : ML_UNWIND_RANGES;
        }
    }
    return ML_UNWIND_RANGES;
}

/* Does the range, with a few pages more, reach the block that lies at a stack's outer end? */
static bool anchored(struct ml_unwind_range *range, uintptr_t anchor) {
    struct ml_unwind_range grown = *range;
    if (anchor < range->lo || anchor + ML_ARCH_WORD_BYTES < anchor ||
        (anchor > range->hi &&
         (anchor - range->hi) / ML_ARCH_PAGE_BYTES > ML_UNWIND_RANGE_ANCHOR_PAGES) ||
        !grow_up(&grown, anchor + ML_ARCH_WORD_BYTES)) {
        return false;
    }
    range->hi = page_of(anchor + ML_ARCH_WORD_BYTES - 1) + ML_ARCH_PAGE_BYTES;
    return true;
}

void ml_unwind_range_settle(struct ml_unwind_ranges *ranges) {
    struct ml_unwind_range *range = &ranges->list[ranges->current];
    struct ml_unwind_range *own = &ranges->list[0];
    if (own->hi != 0) {
        /* A jump far down the own stack began a separate range, which has now grown into it. */
        if (range != own && range->lo < own->lo && range->hi > own->lo) {
            own->lo = range->lo;
            ml_unwind_range_forget(ranges);
            ranges->current = 0;
        }
        return;
    }
    const uintptr_t kernel_block = ml_loaded_stack_end();
    if (anchored(range, ml_arch_thread_pointer()) ||
        (kernel_block != 0 && anchored(range, kernel_block))) {
        *own = *range;
        *range = (struct ml_unwind_range){0};
        ranges->current = 0;
    }
}
