/* runner: no second chance */
#include "tests/client/unwind/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BUCKETS = 1 << 16, PRINT_FRAMES = 12, MEMO_BLOCKS = 256, CHECK_EVERY = 1000 };

/* Zero pages that stay untouched until used; the tests run inside signal handlers, so no malloc. */
static void *zero_pages(size_t bytes) {
    void *memory = mmap(
        NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0
    );
    return memory == MAP_FAILED ? NULL : memory;
}

struct ml_oracle *ml_oracle_new(struct ml_unwind_process *process, uint32_t library_every) {
    struct ml_oracle *oracle = zero_pages(sizeof *oracle);
    oracle->process = process != NULL ? process : zero_pages(sizeof *process);
    if (process == NULL) {
        oracle->process->memos.blocks = zero_pages((size_t)MEMO_BLOCKS * ML_MEMO_BLOCK_BYTES);
        oracle->process->memos.blocks_max = MEMO_BLOCKS;
    }
    oracle->bare = zero_pages(sizeof *process);
    oracle->thread = zero_pages(sizeof *oracle->thread);
    oracle->bare_thread = zero_pages(sizeof *oracle->bare_thread);
    oracle->nodes = zero_pages(sizeof *oracle->nodes * ML_ORACLE_NODES_MAX);
    oracle->buckets = zero_pages(sizeof *oracle->buckets * BUCKETS);
    oracle->library_every = library_every;
    ml_unwind_unload_begin(oracle->bare);
    if (library_every != 0 && ml_unwind_checker_open(&oracle->checker) != ML_OK) {
        fprintf(stderr, "libunwind.so.8 cannot be opened\n");
        abort();
    }
    return oracle;
}

void ml_oracle_free(struct ml_oracle *oracle) {
    munmap(oracle->bare, sizeof *oracle->bare);
    munmap(oracle->thread, sizeof *oracle->thread);
    munmap(oracle->bare_thread, sizeof *oracle->bare_thread);
    munmap(oracle->nodes, sizeof *oracle->nodes * ML_ORACLE_NODES_MAX);
    munmap(oracle->buckets, sizeof *oracle->buckets * BUCKETS);
    munmap(oracle, sizeof *oracle);
}

static uint32_t node_of(
    struct ml_oracle *oracle,
    uint32_t parent,
    enum ml_frame_kind kind,
    uint32_t module,
    uintptr_t pc
) {
    uint64_t hash =
        (pc ^ (uint64_t)parent << 40 ^ (uint64_t)kind << 36) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t *bucket = &oracle->buckets[hash >> 48];
    for (uint32_t id = *bucket; id != 0; id = oracle->nodes[id].chain) {
        const struct ml_oracle_node *node = &oracle->nodes[id];
        if (node->pc == pc && node->parent == parent && node->kind == kind &&
            node->module == module) {
            return id;
        }
    }
    if (oracle->node_count + 1 >= ML_ORACLE_NODES_MAX) {
        return 0;
    }
    uint32_t id = ++oracle->node_count;
    oracle->nodes[id] = (struct ml_oracle_node
    ){.pc = pc, .parent = parent, .module = module, .kind = kind, .chain = *bucket};
    *bucket = id;
    return id;
}

static void resolve(struct ml_oracle *oracle, struct ml_unwind_result result) {
    struct ml_unwind_thread *thread = oracle->thread;
    uint32_t node = result.kept != 0 ? ml_unwind_node(thread, result.kept - 1) : 0;
    for (uint32_t i = result.kept; i < result.count; i++) {
        node = node_of(
            oracle,
            node,
            ml_unwind_kind(thread, i),
            ml_unwind_module(thread, i),
            ml_unwind_address(thread, i)
        );
        if (node == 0) {
            return;
        }
        ml_unwind_set_node(thread, i, node);
    }
}

static void print_stack(const char *title, const struct ml_unwind_thread *thread) {
    fprintf(stderr, "%s: %u frames\n", title, thread->count);
    for (uint32_t i = thread->count; i-- > 0 && i + PRINT_FRAMES * 3 > thread->count;) {
        fprintf(
            stderr,
            "  %#lx kind %u slot %#lx fp %#lx recipe %#lx node %u\n",
            (unsigned long)ml_unwind_address(thread, i),
            ml_unwind_kind(thread, i),
            (unsigned long)thread->frames[i].slot,
            (unsigned long)thread->frames[i].fp,
            (unsigned long)thread->frames[i].recipe,
            ml_unwind_node(thread, i)
        );
    }
}

/* Same frames, kinds and modules? The modules' ids may differ between two processes' tables. */
static bool same_stack(const struct ml_unwind_thread *a, const struct ml_unwind_thread *b) {
    if (a->count != b->count) {
        return false;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        if (ml_unwind_kind(a, i) != ml_unwind_kind(b, i) ||
            ml_unwind_address(a, i) != ml_unwind_address(b, i)) {
            return false;
        }
    }
    return true;
}

static bool same_frame(
    const struct ml_unwind_thread *a, uint32_t i, const struct ml_unwind_thread *b, uint32_t k
) {
    return ml_unwind_kind(a, i) == ml_unwind_kind(b, k) &&
           ml_unwind_address(a, i) == ml_unwind_address(b, k);
}

/* Both cut behind the same outer frames, with the same frames within as far as both have them? */
static bool
same_but_for_the_cut(const struct ml_unwind_thread *a, const struct ml_unwind_thread *b) {
    uint32_t cut = 0;
    while (cut < a->count && cut < b->count && same_frame(a, cut, b, cut) &&
           ml_unwind_kind(a, cut) != ML_FRAME_CUT) {
        cut++;
    }
    if (cut >= a->count || cut >= b->count || !same_frame(a, cut, b, cut)) {
        return false;
    }
    for (uint32_t i = 1; i < a->count - cut && i < b->count - cut; i++) {
        if (!same_frame(a, a->count - i, b, b->count - i)) {
            return false;
        }
    }
    return true;
}

/* Is the innermost frame's node the path of these frames? */
static bool node_is_path(const struct ml_oracle *oracle) {
    const struct ml_unwind_thread *thread = oracle->thread;
    uint32_t id = thread->count == 0 ? 0 : ml_unwind_node(thread, thread->count - 1);
    for (uint32_t i = thread->count; i-- > 0;) {
        const struct ml_oracle_node *node = &oracle->nodes[id];
        if (id == 0 || node->kind != ml_unwind_kind(thread, i) ||
            node->pc != ml_unwind_address(thread, i) ||
            node->module != ml_unwind_module(thread, i)) {
            return false;
        }
        id = node->parent;
    }
    return id == 0;
}

/* Our cached stack against libunwind's. */
static void ask_library(struct ml_oracle *oracle, const struct ml_unwind_entry *entry) {
    enum ml_unwind_verdict verdict =
        ml_unwind_checker_compare(&oracle->checker, oracle->thread, entry);
    oracle->library_checked++;
    oracle->library_unjudged += verdict == ML_UNWIND_UNJUDGED;
    oracle->wrong_library += verdict == ML_UNWIND_DIFFERENT;
}

static void count(struct ml_oracle *oracle, struct ml_unwind_result result) {
    oracle->events++;
    oracle->kept_frames += result.kept;
    oracle->all_frames += result.count;
    oracle->full += (result.flags & ML_UNWIND_FULL) != 0;
    oracle->cut += (result.flags & ML_UNWIND_CUT) != 0;
    oracle->broken += (result.flags & ML_UNWIND_BROKEN) != 0;
    oracle->deepest = result.count > oracle->deepest ? result.count : oracle->deepest;
}

static void module_seen(void *context, uint32_t module_id, const struct ml_image *image) {
    struct ml_oracle *oracle = context;
    (void)module_id;
    (void)image;
    oracle->modules_seen++;
}

/* Hold what the memo said before the walk against the walk's node, as the client's check mode does.
 */
static void
judge_memo(struct ml_oracle *oracle, const struct ml_unwind_entry *entry, uint32_t found) {
    struct ml_unwind_thread *thread = oracle->thread;
    const uint32_t node = thread->count == 0 ? 0 : ml_unwind_node(thread, thread->count - 1);
    oracle->memo_hits += found != 0;
    if ((found != 0 && found != node) || (oracle->events % CHECK_EVERY == 0 &&
                                          !ml_oracle_memo_holds(&thread->memo, oracle->process))) {
        oracle->wrong_memo++;
    }
    if (found == 0 && node != 0) {
        ml_unwind_memo_keep(thread, oracle->process, entry, node);
    }
}

__attribute__((noinline)) static void
compare(struct ml_oracle *oracle, const struct ml_unwind_entry *entry) {
    struct ml_module_seen seen = {.function = module_seen, .context = oracle};
    struct ml_module_seen deaf = {0};
    const uint32_t found = ml_unwind_memo_find(
        &oracle->thread->memo,
        &oracle->process->memos,
        atomic_load(&oracle->process->unloads),
        entry
    );
    struct ml_unwind_result result = ml_unwind(oracle->process, oracle->thread, entry, &seen);
    resolve(oracle, result);
    count(oracle, result);
    judge_memo(oracle, entry, found);
    if (oracle->quick) {
        ml_unwind_thread_clear(oracle->bare_thread);
    }
    (void
    )ml_unwind(oracle->quick ? oracle->process : oracle->bare, oracle->bare_thread, entry, &deaf);
    bool print = !oracle->quiet && oracle->wrong + oracle->wrong_nodes + oracle->wrong_library == 0;
    const bool same = same_stack(oracle->thread, oracle->bare_thread);
    const bool beside = !same && oracle->may_lie_beside &&
                        same_but_for_the_cut(oracle->thread, oracle->bare_thread);
    oracle->beside += beside;
    if (!same && !beside) {
        oracle->wrong++;
    } else if (!node_is_path(oracle) || !ml_oracle_thread_holds(oracle->thread)) {
        oracle->wrong_nodes++;
    } else if (oracle->library_every != 0 && oracle->events % oracle->library_every == 0) {
        ask_library(oracle, entry);
    }
    if (print && oracle->wrong + oracle->wrong_nodes + oracle->wrong_library != 0) {
        fprintf(stderr, "event %lu, kept %u\n", (unsigned long)oracle->events, result.kept);
        print_stack("cached", oracle->thread);
        print_stack("bare", oracle->bare_thread);
    }
}

__attribute__((noinline)) void ml_oracle_probe(struct ml_oracle *oracle) {
    struct ml_unwind_entry entry = ml_unwind_entry_here();
    compare(oracle, &entry);
    __asm__ volatile("" ::"r"(&entry) : "memory"); /* no tail call: the frame must stay */
}

__attribute__((noinline)) void ml_oracle_walk(struct ml_oracle *oracle) {
    struct ml_unwind_entry entry = ml_unwind_entry_here();
    struct ml_module_seen seen = {.function = module_seen, .context = oracle};
    struct ml_unwind_result result = ml_unwind(oracle->process, oracle->thread, &entry, &seen);
    for (uint32_t i = result.kept; i < result.count; i++) {
        ml_unwind_set_node(oracle->thread, i, i + 1); /* a table's lookup is not measured here */
    }
    count(oracle, result);
}

uint32_t ml_oracle_caller_module(const struct ml_oracle *oracle) {
    return ml_unwind_module(oracle->thread, oracle->thread->count - 1);
}
