#include "tests/oracle/ledger.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCKS_MAX = 1 << 17, /* slots of the block table; programs keep fewer than half alive */
    TEXT_MAX = 1 << 18,
    MODULES_MAX = 8
};

struct block {
    void *address; /* NULL: empty slot */
    size_t size_bytes;
    struct ledger_site *site; /* NULL: inherited from the parent */
};

static struct block blocks[BLOCKS_MAX];
static _Atomic(struct ledger_site *) sites;
static uint64_t live_bytes, live_blocks;
static uint64_t peak_bytes, peak_blocks;
static uint64_t inherited_bytes, inherited_blocks;

static const char *modules[MODULES_MAX];
static size_t modules_count;

static char text[TEXT_MAX];
static size_t text_bytes;

void ledger_die(const char *what) {
    ssize_t ignored = write(2, what, strlen(what));
    ignored += write(2, "\n", 1);
    (void)ignored;
    _exit(99);
}

static void list(struct ledger_site *site) {
    if (atomic_load_explicit(&site->listed, memory_order_relaxed) ||
        atomic_exchange(&site->listed, true)) {
        return;
    }
    site->next = atomic_load(&sites);
    while (!atomic_compare_exchange_weak(&sites, &site->next, site)) {
    }
}

void ledger_add(struct ledger_site *site, size_t size_bytes) {
    list(site);
    atomic_fetch_add_explicit(&site->total_bytes, size_bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&site->total_blocks, 1, memory_order_relaxed);
}

void ledger_sub(struct ledger_site *site, size_t size_bytes) {
    atomic_fetch_add_explicit(&site->freed_bytes, size_bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&site->freed_blocks, 1, memory_order_relaxed);
}

void ledger_mark_peak(void) {
    peak_bytes = 0;
    peak_blocks = 0;
    for (struct ledger_site *site = atomic_load(&sites); site; site = site->next) {
        site->peak_bytes = site->total_bytes - site->freed_bytes;
        site->peak_blocks = site->total_blocks - site->freed_blocks;
        peak_bytes += site->peak_bytes;
        peak_blocks += site->peak_blocks;
    }
}

static size_t home(const void *address) {
    uint64_t key = (uint64_t)(uintptr_t)address >> 4;
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 47); /* the upper 17 bits */
}

static struct block *find(const void *address) {
    size_t slot = home(address);
    while (blocks[slot].address && blocks[slot].address != address) {
        slot = (slot + 1) % BLOCKS_MAX;
    }
    return &blocks[slot];
}

/* Backward-shift deletion: no tombstones, so the table never fills up. */
static void forget(struct block *block) {
    size_t hole = (size_t)(block - blocks);
    blocks[hole].address = NULL;
    for (size_t slot = (hole + 1) % BLOCKS_MAX; blocks[slot].address;
         slot = (slot + 1) % BLOCKS_MAX) {
        size_t wish = home(blocks[slot].address);
        if ((slot - wish) % BLOCKS_MAX >= (slot - hole) % BLOCKS_MAX) {
            blocks[hole] = blocks[slot];
            blocks[slot].address = NULL;
            hole = slot;
        }
    }
}

void *ledger_alloc(struct ledger_site *site, void *address, size_t size_bytes) {
    if (!address) {
        ledger_die("ledger: an allocation failed that should not");
    }
    struct block *block = find(address);
    if (block->address) {
        ledger_die("ledger: the allocator gave out one block twice");
    }
    *block = (struct block){.address = address, .size_bytes = size_bytes, .site = site};
    ledger_add(site, size_bytes);
    live_bytes += size_bytes;
    live_blocks++;
    if (live_bytes > peak_bytes) {
        ledger_mark_peak();
    }
    return address;
}

void ledger_free(void *address) {
    if (!address) {
        return;
    }
    struct block *block = find(address);
    if (!block->address) {
        ledger_die("ledger: freed a block that was not there");
    }
    if (block->site) {
        ledger_sub(block->site, block->size_bytes);
        live_bytes -= block->size_bytes;
        live_blocks--;
    }
    forget(block);
}

void *ledger_resize(struct ledger_site *site, void *old, void *address, size_t size_bytes) {
    ledger_free(old);
    return ledger_alloc(site, address, size_bytes);
}

size_t ledger_size(void *address) {
    return find(address)->size_bytes;
}

void ledger_forked(void) {
    inherited_bytes = live_bytes;
    inherited_blocks = live_blocks;
    live_bytes = live_blocks = peak_bytes = peak_blocks = 0;
    for (struct ledger_site *site = atomic_load(&sites); site; site = site->next) {
        site->total_bytes = site->total_blocks = 0;
        site->freed_bytes = site->freed_blocks = 0;
        site->peak_bytes = site->peak_blocks = 0;
    }
    for (size_t slot = 0; slot < BLOCKS_MAX; slot++) {
        blocks[slot].site = NULL;
    }
}

void ledger_module(const char *name) {
    if (modules_count == MODULES_MAX) {
        ledger_die("ledger: too many modules");
    }
    modules[modules_count++] = name;
}

static void put(const char *string) {
    size_t count = strlen(string);
    if (count > TEXT_MAX - text_bytes) {
        ledger_die("ledger: the truth is too long");
    }
    memcpy(text + text_bytes, string, count);
    text_bytes += count;
}

static void put_number(uint64_t number) {
    char digits[24];
    size_t at = sizeof(digits) - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    put(digits + at);
}

static void put_field(const char *name, uint64_t number) {
    put("\"");
    put(name);
    put("\": ");
    put_number(number);
    put(", ");
}

static void put_string(const char *string) {
    put("\"");
    for (const char *at = string; *at; at++) {
        char one[3] = {*at, '\0', '\0'};
        if (*at == '"' || *at == '\\') {
            one[0] = '\\';
            one[1] = *at;
        }
        put(one);
    }
    put("\"");
}

static void put_site(const struct ledger_site *site) {
    put("{\"chain\": ");
    put_string(site->chain);
    put(", ");
    put_field("live_bytes", site->total_bytes - site->freed_bytes);
    put_field("live_blocks", site->total_blocks - site->freed_blocks);
    put_field("peak_bytes", site->peak_bytes);
    put_field("peak_blocks", site->peak_blocks);
    put_field("total_bytes", site->total_bytes);
    put("\"total_blocks\": ");
    put_number(site->total_blocks);
    put("}");
}

static void put_flag(const char *name, unsigned flags, unsigned flag) {
    put("\"");
    put(name);
    put(flags & flag ? "\": true, " : "\": false, ");
}

/* dir/PID-LABELsuffix into out. */
static void
put_path(char *out, size_t capacity, const char *dir, const char *label, const char *suffix) {
    text_bytes = 0;
    put(dir);
    put("/");
    put_number((uint64_t)getpid());
    put("-");
    put(label);
    put(suffix);
    if (text_bytes >= capacity) {
        ledger_die("ledger: ORACLE_DIR is too long");
    }
    memcpy(out, text, text_bytes);
    out[text_bytes] = '\0';
    text_bytes = 0;
}

static void save(const char *dir, const char *label) {
    char draft[512], final[512];
    size_t count_bytes = text_bytes;
    static char body[TEXT_MAX];
    memcpy(body, text, count_bytes);
    put_path(draft, sizeof(draft), dir, label, ".draft");
    put_path(final, sizeof(final), dir, label, ".json");
    int fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        ledger_die("ledger: cannot write below ORACLE_DIR");
    }
    for (size_t done = 0; done < count_bytes;) {
        ssize_t count = write(fd, body + done, count_bytes - done);
        if (count <= 0) {
            ledger_die("ledger: cannot write");
        }
        done += (size_t)count;
    }
    if (close(fd) != 0 || rename(draft, final) != 0) {
        ledger_die("ledger: cannot rename");
    }
}

void ledger_write(const char *label, unsigned flags, int argc, char *const argv[]) {
    const char *dir = getenv("ORACLE_DIR");
    if (!dir) {
        return;
    }
    text_bytes = 0;
    put("{");
    put_field("pid", (uint64_t)getpid());
    put("\"label\": ");
    put_string(label);
    put(", \"argv\": [");
    for (int i = 0; i < argc; i++) {
        put(i ? ", " : "");
        put_string(argv[i]);
    }
    put("], \"modules\": [");
    for (size_t i = 0; i < modules_count; i++) {
        put(i ? ", " : "");
        put_string(modules[i]);
    }
    put("], ");
    put_flag("exact", flags, LEDGER_EXACT);
    put_flag("peak_known", flags, LEDGER_PEAK);
    put_flag("partial", flags, LEDGER_PARTIAL);
    put_flag("inherited_known", flags, LEDGER_FORKED);
    put_field("inherited_bytes", inherited_bytes);
    put_field("inherited_blocks", inherited_blocks);
    put_field("peak_bytes", peak_bytes);
    put_field("peak_blocks", peak_blocks);
    put("\"sites\": [");
    for (const struct ledger_site *site = atomic_load(&sites); site; site = site->next) {
        put_site(site);
        put(site->next ? ",\n" : "");
    }
    put("]}\n");
    save(dir, label);
}
