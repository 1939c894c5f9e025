#include "service/session/coverage.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A heap of at least this part of the private memory explains it. */
enum { EXPLAINED_PART = 2 };

const char *ml_coverage_size(uint64_t bytes, char out_text[ML_COVERAGE_SIZE_BYTES]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned unit = 0;
    double value = (double)bytes;
    while (value >= 1024. && unit < 6) {
        value /= 1024.;
        unit++;
    }
    (void)snprintf(
        out_text, ML_COVERAGE_SIZE_BYTES, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]
    );
    return out_text;
}

void ml_coverage_note(struct ml_coverage *coverage, const struct ml_coverage_reading *reading) {
    coverage->last = *reading;
    if (reading->private_bytes >= coverage->largest.private_bytes) {
        coverage->largest = *reading;
    }
}

uint64_t ml_coverage_heap(uint64_t bytes, uint64_t blocks) {
    uint64_t heap_bytes = 0;
    return __builtin_mul_overflow(blocks, ML_COVERAGE_BLOCK_BYTES, &heap_bytes) ||
                   __builtin_add_overflow(heap_bytes, bytes, &heap_bytes)
               ? UINT64_MAX
               : heap_bytes;
}

bool ml_coverage_explains(uint64_t heap_bytes, uint64_t private_bytes) {
    return private_bytes <= ML_COVERAGE_SMALL_BYTES ||
           heap_bytes >= (private_bytes - ML_COVERAGE_SMALL_BYTES) / EXPLAINED_PART;
}

const char *ml_coverage_allocator(const struct ml_allocator *allocator) {
    static const struct {
        const char *file_begins, *name;
    } known[] = {
        {"libc.so.", "glibc"},
        {"libc-2.", "glibc"},
        {"libjemalloc", "jemalloc"},
        {"libtcmalloc", "tcmalloc"},
        {"libmimalloc", "mimalloc"},
        {"libtbbmalloc", "tbbmalloc"},
        {"libsnmalloc", "snmalloc"},
        {"librpmalloc", "rpmalloc"},
        {"libhoard", "hoard"},
        {"libscudo", "scudo"},
        {"libasan", "AddressSanitizer"},
        {"libclang_rt.asan", "AddressSanitizer"},
        {"liblsan", "LeakSanitizer"},
        {"libtsan", "ThreadSanitizer"},
        {"libhwasan", "HWAddressSanitizer"},
    };
    if (allocator->in_program) {
        return "inside the executable";
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strncmp(allocator->owner, known[i].file_begins, strlen(known[i].file_begins)) == 0) {
            return known[i].name;
        }
    }
    return allocator->owner[0] != 0 ? allocator->owner : "unknown";
}

/* Always true: something is reported. */
__attribute__((format(printf, 2, 3))) static bool
say(char out_unseen[ML_COVERAGE_UNSEEN_BYTES], const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(out_unseen, ML_COVERAGE_UNSEEN_BYTES, format, args);
    va_end(args);
    return true;
}

/* Report what the constructor and the host have found out. False: nothing. */
static bool tell_found(
    const struct ml_allocator *allocator,
    const struct ml_coverage_facts *facts,
    char out_unseen[ML_COVERAGE_UNSEEN_BYTES]
) {
    const char *served =
        facts->total_blocks == 0 ? "memlog sees nothing of it" : "memlog sees what it passes on";
    const struct ml_coverage_entries *entries = &facts->entries;
    if (entries->refused[0] != 0) {
        return say(
            out_unseen,
            "the executable has an allocator of its own, which memlog could not hook: %s",
            entries->refused
        );
    }
    if (allocator->in_front && allocator->in_program && entries->functions == 0) {
        return say(
            out_unseen, "the executable's own malloc is called instead of memlog's: %s", served
        );
    }
    if (allocator->in_front && !allocator->in_program) {
        return say(
            out_unseen,
            "the malloc of %s is called instead of memlog's: %s",
            allocator->owner,
            served
        );
    }
    if (allocator->entry_point[0] != 0 && entries->functions == 0) {
        return say(
            out_unseen,
            allocator->entry_point_of[0] == 0
                ? "the executable has an allocator of its own (%s%s), which memlog does not see"
                : "it calls %s of %s, which memlog does not see",
            allocator->entry_point,
            allocator->entry_point_of
        );
    }
    return (allocator->second_libc || facts->past.second_libc) &&
           say(out_unseen, "a second libc was loaded (dlmopen), whose malloc memlog does not see");
}

/* Report objects whose calls the client has seen to bypass memlog. */
static bool
tell_calls(const struct ml_coverage_past *past, char out_unseen[ML_COVERAGE_UNSEEN_BYTES]) {
    return past->calls && say(out_unseen,
                              "the allocator calls of %s%s go past memlog (opened with "
                              "RTLD_DEEPBIND?): they are not "
                              "seen",
                              past->file[0] != 0 ? past->file : "a library",
                              past->several ? " and other libraries" : "");
}

/* Report blocks that were allocated or freed past memlog. */
static bool
tell_past(const struct ml_coverage_facts *facts, char out_unseen[ML_COVERAGE_UNSEEN_BYTES]) {
    if (facts->past_is_sure && facts->unknown_frees > 0) {
        return say(
            out_unseen,
            "%" PRIu64 " %s freed whose allocation memlog did not see: something allocates past it "
            "(a library loaded with RTLD_DEEPBIND?)",
            facts->unknown_frees,
            facts->unknown_frees == 1 ? "block was" : "blocks were"
        );
    }
    return facts->past_is_sure && facts->missed_frees > 0 &&
           say(out_unseen,
               "%" PRIu64
               " %s given out again whose free memlog did not see: something frees past it "
               "(a library loaded with RTLD_DEEPBIND?)",
               facts->missed_frees,
               facts->missed_frees == 1 ? "address was" : "addresses were");
}

/* What the process has in common with others now, as it has forked or they map its files, was its
 * own before: at most as much as it had more then. */
static uint64_t
shared_since(const struct ml_coverage_reading *reading, const struct ml_coverage_facts *facts) {
    const uint64_t more_bytes = reading->private_bytes > facts->view_private_bytes
                                    ? reading->private_bytes - facts->view_private_bytes
                                    : 0;
    return more_bytes < facts->shared_files_bytes ? more_bytes : facts->shared_files_bytes;
}

/* By its mappings. They are never read of a process that ends soon; then by their sum. */
static uint64_t
files_of(const struct ml_coverage_reading *reading, const struct ml_coverage_facts *facts) {
    return facts->files_bytes != 0 ? facts->files_bytes : reading->files_bytes;
}

/* What is not the heap's, by the mappings or by their sum. Files are in both, also those that the
 * program mapped, so the larger one counts; saturating. */
static uint64_t
others_of(const struct ml_coverage_reading *reading, const struct ml_coverage_facts *facts) {
    uint64_t by_mappings = facts->mapped_bytes;
    if (__builtin_add_overflow(by_mappings, facts->files_bytes, &by_mappings) ||
        __builtin_add_overflow(by_mappings, shared_since(reading, facts), &by_mappings)) {
        return UINT64_MAX;
    }
    return by_mappings > reading->files_bytes ? by_mappings : reading->files_bytes;
}

/* Report pages of an allocator inside the executable that are more than all blocks that were ever
 * seen at once can have left. The compiler may have put its functions into their callers, or a
 * caller goes past its names: no hook of an entry sees that. */
static bool tell_past_entries(
    const struct ml_coverage_reading *reading,
    const struct ml_coverage_facts *facts,
    char out_unseen[ML_COVERAGE_UNSEEN_BYTES]
) {
    char pages_text[ML_COVERAGE_SIZE_BYTES];
    char heap_text[ML_COVERAGE_SIZE_BYTES];
    const uint64_t most_bytes = ml_coverage_heap(reading->most_bytes, reading->most_blocks);
    return facts->from_startup && facts->entries.functions > 0 &&
           !ml_coverage_explains(most_bytes, facts->allocator_bytes) &&
           say(out_unseen,
               "%s private memory of the allocator inside the executable holds no block that "
               "memlog saw, and it never saw more than %s at once: calls go past its functions "
               "(inlined by the compiler?)",
               ml_coverage_size(facts->allocator_bytes, pages_text),
               ml_coverage_size(reading->most_bytes, heap_text));
}

/* Report the same where its pages do not show it: what is allocated so may be little, or gone. */
static bool
tell_inlined(const struct ml_coverage_past *past, char out_unseen[ML_COVERAGE_UNSEEN_BYTES]) {
    return past->inlined &&
           say(out_unseen,
               "the compiler has put functions of the allocator inside the executable into their "
               "callers: blocks of these calls are not seen");
}

/* Report memory of which the heap, with what is known to be mapped by others, is next to nothing,
 * or of which a part is older than the recording. */
static void tell_unexplained(
    const struct ml_coverage_reading *reading,
    const struct ml_coverage_facts *facts,
    char out_unseen[ML_COVERAGE_UNSEEN_BYTES]
) {
    char private_text[ML_COVERAGE_SIZE_BYTES];
    char heap_text[ML_COVERAGE_SIZE_BYTES];
    /* The heap at its largest: the allocator may keep what was freed. */
    const uint64_t most_bytes = ml_coverage_heap(reading->most_bytes, reading->most_blocks);
    uint64_t known_bytes = most_bytes;
    if (__builtin_add_overflow(known_bytes, others_of(reading, facts), &known_bytes)) {
        known_bytes = UINT64_MAX;
    }
    if (!ml_coverage_explains(known_bytes, reading->private_bytes)) {
        (void)say(
            out_unseen,
            "of %s private memory the heap explains %s: the rest is memory that the program maps "
            "itself, or that memlog does not see%s",
            ml_coverage_size(reading->private_bytes, private_text),
            ml_coverage_size(reading->most_bytes, heap_text),
            facts->from_startup ? "" : ", or was there before it was recorded"
        );
    } else if (!facts->from_startup) {
        (void)say(out_unseen, "what it had allocated before it was recorded is not known");
    }
}

void ml_coverage_tell(
    const struct ml_coverage *coverage,
    const struct ml_coverage_facts *facts,
    struct ml_coverage_told *out_told
) {
    const struct ml_coverage_reading *reading =
        facts->running ? &coverage->last : &coverage->largest;
    *out_told = (struct ml_coverage_told
    ){.was_read = reading->was_read,
      .heap_bytes = reading->heap_bytes,
      .private_bytes = reading->private_bytes,
      .mapped_bytes = facts->mapped_bytes,
      .files_bytes = files_of(reading, facts),
      .shared_bytes = shared_since(reading, facts),
      .hooked_functions = facts->entries.functions,
      .allocator = ml_coverage_allocator(&coverage->allocator)};
    if (!tell_found(&coverage->allocator, facts, out_told->unseen) &&
        !tell_calls(&facts->past, out_told->unseen) && !tell_past(facts, out_told->unseen) &&
        !tell_past_entries(reading, facts, out_told->unseen) &&
        !tell_inlined(&facts->past, out_told->unseen)) {
        tell_unexplained(reading, facts, out_told->unseen);
    }
}
