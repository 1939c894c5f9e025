#include "base/entry/allocator_call.h"

#include <string.h>

#include <check.h>

#include "tests/suite.h"

enum {
    A = ML_ALLOCATOR_ALLOCATE,
    F = ML_ALLOCATOR_RELEASE,
    R = ML_ALLOCATOR_RESIZE,
    I = ML_ALLOCATOR_RESIZE_IN_PLACE
};

/* Whose a name is: 'a' of any allocator's, 'm' mimalloc's, 't' tcmalloc's, 'b' of both, 'p'
 * mimalloc's or without a prefix, '+' the language's. Its arguments, in their order: s size, n
 * count, b block, o where the block is stored, t text, . anything else. */
static const struct {
    const char *name;
    int act;
    char whose;
    const char *arguments;
} members[] = {
    {"malloc", A, 'a', "s"},
    {"calloc", A, 'a', "ns"},
    {"realloc", R, 'a', "bs"},
    {"reallocarray", R, 'a', "bns"},
    {"reallocf", R, 'a', "bs"},
    {"free", F, 'a', "b"},
    {"cfree", F, 'a', "b"},
    {"free_sized", F, 'a', "b."},
    {"free_aligned_sized", F, 'a', "b.."},
    {"aligned_alloc", A, 'a', ".s"},
    {"memalign", A, 'a', ".s"},
    {"posix_memalign", A, 'a', "o.s"},
    {"__posix_memalign", A, 'a', "o.s"},
    {"valloc", A, 'a', "s"},
    {"pvalloc", A, 'a', "s"},
    /* jemalloc */
    {"mallocx", A, 'a', "s."},
    {"rallocx", R, 'a', "bs."},
    {"xallocx", I, 'a', "bs.."},
    {"dallocx", F, 'a', "b."},
    {"sdallocx", F, 'a', "b.."},
    /* Firefox */
    {"moz_arena_malloc", A, 'a', ".s"},
    {"moz_arena_calloc", A, 'a', ".ns"},
    {"moz_arena_realloc", R, 'a', ".bs"},
    {"moz_arena_memalign", A, 'a', "..s"},
    {"moz_arena_free", F, 'a', ".b"},
    /* mimalloc */
    {"zalloc", A, 'm', "s"},
    {"malloc_small", A, 'm', "s"},
    {"zalloc_small", A, 'm', "s"},
    {"mallocn", A, 'm', "ns"},
    {"reallocn", R, 'm', "bns"},
    {"rezalloc", R, 'm', "bs"},
    {"recalloc", R, 'm', "bns"},
    {"strdup", A, 'p', "t"},
    {"strndup", A, 'p', "ts"},
    {"malloc_aligned", A, 'm', "s."},
    {"malloc_aligned_at", A, 'm', "s.."},
    {"zalloc_aligned", A, 'm', "s."},
    {"zalloc_aligned_at", A, 'm', "s.."},
    {"calloc_aligned", A, 'm', "ns."},
    {"calloc_aligned_at", A, 'm', "ns.."},
    {"realloc_aligned", R, 'm', "bs."},
    {"realloc_aligned_at", R, 'm', "bs.."},
    {"rezalloc_aligned", R, 'm', "bs."},
    {"rezalloc_aligned_at", R, 'm', "bs.."},
    {"recalloc_aligned", R, 'm', "bns."},
    {"aligned_recalloc", R, 'm', "bns."},
    {"recalloc_aligned_at", R, 'm', "bns.."},
    {"aligned_offset_recalloc", R, 'm', "bns.."},
    {"heap_calloc_aligned_at", A, 'm', ".ns.."},
    {"heap_realloc_aligned_at", R, 'm', ".bs.."},
    {"heap_rezalloc_aligned_at", R, 'm', ".bs.."},
    {"heap_recalloc_aligned", R, 'm', ".bns."},
    {"free_size", F, 'm', "b."},
    {"free_size_aligned", F, 'm', "b.."},
    {"free_aligned", F, 'm', "b."},
    {"new_n", A, 'm', "ns"},
    {"new_realloc", R, 'm', "bs"},
    {"new_reallocn", R, 'm', "bns"},
    {"heap_malloc", A, 'm', ".s"},
    {"heap_malloc_small", A, 'm', ".s"},
    {"heap_zalloc", A, 'm', ".s"},
    {"heap_calloc", A, 'm', ".ns"},
    {"heap_mallocn", A, 'm', ".ns"},
    {"heap_alloc_new", A, 'm', ".s"},
    {"heap_alloc_new_n", A, 'm', ".ns"},
    {"heap_strdup", A, 'm', ".t"},
    {"heap_strndup", A, 'm', ".ts"},
    {"heap_malloc_aligned", A, 'm', ".s."},
    {"heap_malloc_aligned_at", A, 'm', ".s.."},
    {"heap_zalloc_aligned", A, 'm', ".s."},
    {"heap_zalloc_aligned_at", A, 'm', ".s.."},
    {"heap_calloc_aligned", A, 'm', ".ns."},
    {"heap_realloc", R, 'm', ".bs"},
    {"heap_reallocn", R, 'm', ".bns"},
    {"heap_reallocf", R, 'm', ".bs"},
    {"heap_realloc_aligned", R, 'm', ".bs."},
    {"heap_rezalloc", R, 'm', ".bs"},
    {"heap_recalloc", R, 'm', ".bns"},
    {"heap_rezalloc_aligned", R, 'm', ".bs."},
    /* mimalloc's and tcmalloc's, and tcmalloc's alone */
    {"new", A, 'b', "s"},
    {"new_nothrow", A, 'b', "s."},
    {"new_aligned", A, 'b', "s."},
    {"new_aligned_nothrow", A, 'b', "s.."},
    {"newarray", A, 't', "s"},
    {"newarray_nothrow", A, 't', "s."},
    {"newarray_aligned", A, 't', "s."},
    {"newarray_aligned_nothrow", A, 't', "s.."},
    {"malloc_skip_new_handler", A, 't', "s"},
    {"delete", F, 't', "b"},
    {"delete_sized", F, 't', "b."},
    {"delete_nothrow", F, 't', "b."},
    {"delete_aligned", F, 't', "b."},
    {"delete_sized_aligned", F, 't', "b.."},
    {"delete_aligned_nothrow", F, 't', "b.."},
    {"deletearray", F, 't', "b"},
    {"deletearray_sized", F, 't', "b."},
    {"deletearray_nothrow", F, 't', "b."},
    {"deletearray_aligned", F, 't', "b."},
    {"deletearray_sized_aligned", F, 't', "b.."},
    {"deletearray_aligned_nothrow", F, 't', "b.."},
    /* C++ */
    {"_Znwm", A, '+', "s"},
    {"_Znam", A, '+', "s"},
    {"_ZnwmRKSt9nothrow_t", A, '+', "s."},
    {"_ZnamRKSt9nothrow_t", A, '+', "s."},
    {"_ZnwmSt11align_val_t", A, '+', "s."},
    {"_ZnamSt11align_val_t", A, '+', "s."},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", A, '+', "s.."},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", A, '+', "s.."},
    {"_Znwm12__hot_cold_t", A, '+', "s."},
    {"_ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t", A, '+', "s..."},
    {"_ZdlPv", F, '+', "b"},
    {"_ZdaPv", F, '+', "b"},
    {"_ZdlPvm", F, '+', "b."},
    {"_ZdaPvm", F, '+', "b."},
    {"_ZdlPvRKSt9nothrow_t", F, '+', "b."},
    {"_ZdaPvRKSt9nothrow_t", F, '+', "b."},
    {"_ZdlPvSt11align_val_t", F, '+', "b."},
    {"_ZdaPvSt11align_val_t", F, '+', "b."},
    {"_ZdlPvmSt11align_val_t", F, '+', "b.."},
    {"_ZdaPvmSt11align_val_t", F, '+', "b.."},
    {"_ZdlPvSt11align_val_tRKSt9nothrow_t", F, '+', "b.."},
    {"_ZdaPvSt11align_val_tRKSt9nothrow_t", F, '+', "b.."},
};

enum { MEMBERS = sizeof members / sizeof members[0] };

static int place_of(const char *arguments, char role) {
    const char *at = strchr(arguments, role);
    return at == NULL ? ML_ALLOCATOR_NONE : (int)(at - arguments);
}

static int families_of(char whose) {
    const int mimalloc = 1 << ML_ALLOCATOR_FAMILY_MIMALLOC;
    const int tcmalloc = 1 << ML_ALLOCATOR_FAMILY_TCMALLOC;
    switch (whose) {
    case 'm':
        return mimalloc;
    case 't':
        return tcmalloc;
    case 'b':
        return mimalloc | tcmalloc;
    case 'p':
        return mimalloc | 1 << ML_ALLOCATOR_FAMILY_PLAIN;
    case '+':
        return 1 << ML_ALLOCATOR_FAMILY_PLAIN;
    default:
        return 0;
    }
}

START_TEST(every_name_has_its_meaning) {
    for (size_t i = 0; i < MEMBERS; i++) {
        const char *name = members[i].name;
        const char *arguments = members[i].arguments;
        struct ml_allocator_call call;
        ck_assert_msg(ml_allocator_call_of(name, strlen(name), &call), "%s", name);
        ck_assert_msg(call.act == members[i].act, "%s", name);
        ck_assert_msg(call.size_argument == place_of(arguments, 's'), "%s", name);
        ck_assert_msg(call.count_argument == place_of(arguments, 'n'), "%s", name);
        ck_assert_msg(call.block_argument == place_of(arguments, 'b'), "%s", name);
        ck_assert_msg(call.out_argument == place_of(arguments, 'o'), "%s", name);
        ck_assert_msg(call.text_argument == place_of(arguments, 't'), "%s", name);
        ck_assert_msg(call.arguments == strlen(arguments), "%s", name);
        ck_assert_msg(call.only_families == families_of(members[i].whose), "%s", name);
        /* The hooks rely on it: a sixth register carries a word of ours. */
        ck_assert_uint_ge(call.arguments, 1);
        ck_assert_uint_le(call.arguments, ML_ALLOCATOR_ARGUMENTS_MAX);
        /* What allocates has a size, what releases or resizes has a block. */
        ck_assert((call.act == A) == (call.block_argument == ML_ALLOCATOR_NONE));
        ck_assert(
            (call.act == F) ==
            (call.size_argument == ML_ALLOCATOR_NONE && call.text_argument == ML_ALLOCATOR_NONE)
        );
    }
}
END_TEST

START_TEST(what_releases_or_resizes_is_needed_unless_it_passes_on) {
    for (size_t i = 0; i < MEMBERS; i++) {
        const char *name = members[i].name;
        struct ml_allocator_call call;
        ck_assert(ml_allocator_call_of(name, strlen(name), &call));
        const bool passes_on = strcmp(name, "cfree") == 0 || strcmp(name, "reallocarray") == 0;
        ck_assert_msg(call.is_needed == (call.act != A && !passes_on), "%s", name);
        const bool fails_free = strcmp(name, "reallocf") == 0 || strcmp(name, "heap_reallocf") == 0;
        ck_assert_msg(call.is_released_on_failure == fails_free, "%s", name);
    }
}
END_TEST

START_TEST(no_other_name_is_a_member) {
    static const char *const others[] = {
        "",
        "m",
        "mallo",
        "mallocs",
        "Malloc",
        "xmalloc",
        "malloc_usable_size",
        "malloc_size",
        "malloc_trim",
        "mallinfo",
        "mallopt",
        "nallocx",
        "sallocx",
        "freeaddrinfo",
        "smallocx_54eaed1d8b56b1aa528be3bdd1877e59c56fa90c", /* returns two words */
        "heap_recalloc_aligned_at",                          /* six arguments */
        "reallocarr",
        "expand",
        "heap_destroy",
        "heap_new", /* a heap, no block */
        "realpath",
        "__rust_alloc", /* ends in malloc */
        "moz_xmalloc",
        "_Z",
        "_Zn",
        "_Znw",
        "_Znwj", /* 32 bits */
        "_Znxm",
        "_ZnwmPv", /* placement */
        "_ZnwmSt11align_val_",
        "_ZnwmRKSt9nothrow_tSt11align_val_t",
        "_Zdl",
        "_ZdlP",
        "_ZdlPvS_",
        "_ZdlPvmRKSt9nothrow_t",
        "_ZdlPvmm",
        "_ZN4base14UncheckedAllocEm",
        "deletearray_aligned_nothrow_",
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct ml_allocator_call call;
        ck_assert_msg(!ml_allocator_call_of(others[i], strlen(others[i]), &call), "%s", others[i]);
    }
    struct ml_allocator_call call;
    ck_assert(ml_allocator_call_of("malloc_and_more", 6, &call)); /* the length counts, no null */
    ck_assert(!ml_allocator_call_of("malloc", 5, &call));
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("allocator_call");
    tcase_add_test(tcase, every_name_has_its_meaning);
    tcase_add_test(tcase, what_releases_or_resizes_is_needed_unless_it_passes_on);
    tcase_add_test(tcase, no_other_name_is_a_member);
    return run_suite("base/entry/allocator_call", tcase);
}
