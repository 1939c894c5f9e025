#include "client/patch/entry_hooks.h"

#include <string.h>

#include "client/recording/hook_record.h"
#include "client/recording/sampler.h"
#include "client/recording/thrown.h"
#include "client/state/visible.h"

/* What the patched function was called with, and which it is. The hooks of functions that are
 * called most have one register less to keep. */
#define CALLED_WITH_FEW                                                                            \
    uintptr_t first, uintptr_t second, uintptr_t third, uintptr_t fourth,                          \
        const struct ml_patched *patched
#define CALLED                                                                                     \
    uintptr_t first, uintptr_t second, uintptr_t third, uintptr_t fourth, uintptr_t fifth,         \
        const struct ml_patched *patched

typedef uintptr_t function_of_few(uintptr_t, uintptr_t, uintptr_t, uintptr_t);
typedef uintptr_t function(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);
#define NEXT_OF_FEW() (((function_of_few *)(uintptr_t)patched->next)(first, second, third, fourth))
#define CALL_NEXT() (((function *)(uintptr_t)patched->next)(first, second, third, fourth, fifth))

/* A library's other code calls its allocator through the linkage table. A call that names the entry
 * itself is the allocator's: free, when it empties a thread's cache at the end of the thread, of
 * blocks that the program has freed long ago. */
static __attribute__((noinline)) bool
names_entry(const struct ml_patched *patched, uintptr_t return_address) {
    enum { CALL = 0xe8, CALL_BYTES = 5 };
    const uint8_t *call = (const uint8_t *)(return_address - CALL_BYTES);
    int32_t distance = 0;
    memcpy(&distance, call + 1, sizeof(distance));
    return call[0] == CALL && return_address + (uintptr_t)(intptr_t)distance == patched->entry;
}

static inline bool may_be_own_call(const struct ml_patched *patched, uintptr_t return_address) {
    return ML_ATTACHED && ml_unlikely(return_address - patched->own_start < patched->own_bytes);
}

static inline bool is_own_call(const struct ml_patched *patched, uintptr_t return_address) {
    return may_be_own_call(patched, return_address) && names_entry(patched, return_address);
}

/* Of the hook. */
#define RETURN_ADDRESS() ((uintptr_t)__builtin_return_address(0))
#define IS_OWN_CALL() is_own_call(patched, RETURN_ADDRESS())

static inline uintptr_t argument(uint8_t which, const uintptr_t *given) {
    return ml_likely(which < ML_ALLOCATOR_ARGUMENTS_MAX) ? given[which] : 0;
}

/* Of a text that the function copies, with its null. */
static __attribute__((noinline)) size_t
bytes_of_text(const struct ml_allocator_call *call, const uintptr_t *given) {
    const char *text = (const char *)argument(call->text_argument, given);
    const size_t most =
        call->size_argument != ML_ALLOCATOR_NONE ? argument(call->size_argument, given) : SIZE_MAX;
    size_t bytes = 0;
    while (text != NULL && bytes < most && text[bytes] != 0) {
        bytes++;
    }
    return bytes + 1;
}

/* SIZE_MAX where a count of elements is too large: the function fails, and nothing is recorded. */
static inline size_t bytes_of(const struct ml_patched *patched, const uintptr_t *given) {
    if (ml_unlikely(patched->call.text_argument != ML_ALLOCATOR_NONE)) {
        return bytes_of_text(&patched->call, given);
    }
    const size_t size = argument(patched->call.size_argument, given);
    if (ml_likely(patched->call.count_argument == ML_ALLOCATOR_NONE)) {
        return size;
    }
    size_t bytes = 0;
    return __builtin_mul_overflow(size, argument(patched->call.count_argument, given), &bytes)
               ? SIZE_MAX
               : bytes;
}

#define GIVEN                                                                                      \
    { first, second, third, fourth, fifth }

/* NULL: there is none. */
static inline const void *
made(const struct ml_patched *patched, const uintptr_t *given, uintptr_t result) {
    if (ml_likely(patched->call.out_argument == ML_ALLOCATOR_NONE)) {
        return (const void *)result;
    }
    return (int)result == 0 ? *(const void *const *)argument(patched->call.out_argument, given)
                            : NULL;
}

/* The hooks of functions that are called most jump to a function of their own that records, so that
 * a call which sampling skips saves no registers. */
#define RECORDED static ML_HOT ML_HOOK

/* The stack pointer behind the return, as in ml_unwind_entry, in a function that needs no frame
 * pointer. */
#define FRAME_HERE() ((uintptr_t)__builtin_dwarf_cfa())

/* The program's allocator may call its own functions by their entries, so every call that is passed
 * on has the guard. */
#define PASS_GUARDED(bytes, frame, call)                                                           \
    if (ml_sampler_passes(thread, (bytes))) {                                                      \
        ml_sampler_pass(thread, (frame));                                                          \
        const uintptr_t passed = (call);                                                           \
        ml_sampler_passed(thread);                                                                 \
        return passed;                                                                             \
    }

static inline uintptr_t allocate_from(const struct ml_unwind_entry *entry, CALLED) {
    struct ml_thread *thread = ml_this_thread();
    const uintptr_t given[] = GIVEN;
    const size_t bytes = bytes_of(patched, given);
    if (ml_hook_is_idle(thread)) {
        return CALL_NEXT();
    }
    const struct ml_hook hook = ml_hook_enter(thread, entry->sp);
    const uintptr_t result = CALL_NEXT();
    const void *block = hook.lane != NULL ? made(patched, given, result) : NULL;
    if (ml_likely(block != NULL)) {
        ml_hook_alloc(thread, &hook, entry, block, bytes);
    }
    ml_hook_leave(thread, &hook);
    return result;
}

RECORDED uintptr_t recorded_allocates(CALLED) {
    ML_HOOK_MAY_BE_LEFT();
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    return allocate_from(&entry, first, second, third, fourth, fifth, patched);
}

static ML_HOT ML_HOOK uintptr_t entry_allocates(CALLED) {
    ML_HOOK_MAY_BE_LEFT();
    if (IS_OWN_CALL()) {
        return CALL_NEXT();
    }
    struct ml_thread *thread = ml_this_thread();
    const uintptr_t given[] = GIVEN;
    PASS_GUARDED(bytes_of(patched, given), FRAME_HERE(), CALL_NEXT())
    return recorded_allocates(first, second, third, fourth, fifth, patched);
}

/* What all calls of a thread that records exactly have in common is done here, with its state in
 * registers. */
RECORDED uintptr_t recorded_allocates_first(CALLED_WITH_FEW) {
    ML_HOOK_MAY_BE_LEFT();
    struct ml_thread *thread = ml_this_thread();
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    if (ml_likely(ml_hook_enter_plain(thread, entry.sp))) {
        struct ml_lane *lane = thread->lane;
        const uintptr_t result = NEXT_OF_FEW();
        if (ml_likely(lane != NULL && result != 0)) {
            ml_hook_recorded(thread);
            ml_record_alloc_here(lane, &entry, (const void *)result, first);
            ml_hook_late(thread, (const void *)result);
        }
        ml_hook_leave_plain(thread);
        return result;
    }
    const struct ml_unwind_entry slow_entry = ml_unwind_entry_here();
    const struct ml_hook hook = ml_hook_enter_slow(thread, slow_entry.sp);
    const uintptr_t result = NEXT_OF_FEW();
    if (hook.lane != NULL && result != 0) {
        ml_hook_alloc(thread, &hook, &slow_entry, (const void *)result, first);
    }
    ml_hook_leave_slow(thread, &hook);
    return result;
}

#define ALLOCATE_FIRST(thread)                                                                     \
    PASS_GUARDED(first, FRAME_HERE(), NEXT_OF_FEW())                                               \
    if (ml_hook_is_idle(thread)) {                                                                 \
        return NEXT_OF_FEW();                                                                      \
    }                                                                                              \
    return recorded_allocates_first(first, second, third, fourth, patched)

/* What the hook cannot know without a call of its own is looked up here. */
RECORDED uintptr_t looked_allocates_first(CALLED_WITH_FEW) {
    ML_HOOK_MAY_BE_LEFT();
    if (IS_OWN_CALL()) {
        return NEXT_OF_FEW();
    }
    struct ml_thread *thread = ml_this_thread();
    ALLOCATE_FIRST(thread);
}

/* malloc, operator new and their like. */
static ML_HOT ML_HOOK uintptr_t entry_allocates_first(CALLED_WITH_FEW) {
    ML_HOOK_MAY_BE_LEFT();
    struct ml_thread *thread = ml_this_thread_at_once();
    if (ml_unlikely(thread == NULL) || may_be_own_call(patched, RETURN_ADDRESS())) {
        return looked_allocates_first(first, second, third, fourth, patched);
    }
    ALLOCATE_FIRST(thread);
}

RECORDED uintptr_t recorded_releases_first(CALLED_WITH_FEW) {
    ML_HOOK_MAY_BE_LEFT();
    if (IS_OWN_CALL()) {
        return NEXT_OF_FEW();
    }
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(void *);
    struct ml_thread *thread = ml_this_thread();
    const void *block = (const void *)first;
    if (ml_likely(ml_hook_enter_plain(thread, frame))) {
        struct ml_lane *lane = thread->lane;
        if (ml_likely(lane != NULL)) {
            ml_hook_recorded(thread);
            ml_record_free_here(lane, block, ML_OP_FREE);
            ml_hook_calling(thread, ML_PHASE_NEXT);
        }
        const uintptr_t result = NEXT_OF_FEW();
        ml_hook_leave_plain(thread);
        return result;
    }
    const struct ml_hook hook = ml_hook_enter_slow(thread, frame);
    (void)ml_hook_free(thread, &hook, block, ML_OP_FREE);
    const uintptr_t result = NEXT_OF_FEW();
    ml_hook_leave_slow(thread, &hook);
    return result;
}

/* The slow check of a free that the fast one could not skip. */
RECORDED uintptr_t looked_releases_first(CALLED_WITH_FEW) {
    struct ml_thread *thread = ml_this_thread();
    if (ml_sampler_filters(thread) && ml_sampler_drops_after_all(thread, (const void *)first)) {
        return NEXT_OF_FEW();
    }
    return recorded_releases_first(first, second, third, fourth, patched);
}

/* free, operator delete and their like. A free that is not recorded needs no guard: a nested one is
 * none either. */
static ML_HOT ML_HOOK uintptr_t entry_releases_first(CALLED_WITH_FEW) {
    struct ml_thread *thread = ml_this_thread_at_once();
    const void *block = (const void *)first;
    if (block == NULL) {
        return NEXT_OF_FEW();
    }
    if (ml_unlikely(thread == NULL)) {
        return looked_releases_first(first, second, third, fourth, patched);
    }
    if (ml_sampler_filters(thread)) {
        if (ml_likely(ml_sampler_drops(thread, block))) {
            return NEXT_OF_FEW();
        }
        return looked_releases_first(first, second, third, fourth, patched);
    }
    if (ml_hook_is_idle(thread)) {
        return NEXT_OF_FEW();
    }
    return recorded_releases_first(first, second, third, fourth, patched);
}

/* Whether the block's end needs no record. */
static inline bool ends_unsaid(struct ml_thread *thread, const void *block) {
    const bool drops = ml_sampler_filters(thread) && ml_sampler_drops(thread, block);
    return block == NULL || drops || ml_hook_is_idle(thread);
}

static inline uintptr_t release_from(uintptr_t frame, CALLED) {
    struct ml_thread *thread = ml_this_thread();
    const uintptr_t given[] = GIVEN;
    const void *block = (const void *)argument(patched->call.block_argument, given);
    if (ends_unsaid(thread, block)) {
        return CALL_NEXT();
    }
    const struct ml_hook hook = ml_hook_enter(thread, frame);
    (void)ml_hook_free(thread, &hook, block, ML_OP_FREE);
    const uintptr_t result = CALL_NEXT();
    ml_hook_leave(thread, &hook);
    return result;
}

static ML_HOT ML_HOOK uintptr_t entry_releases(CALLED) {
    ML_HOOK_MAY_BE_LEFT();
    if (IS_OWN_CALL()) {
        return CALL_NEXT();
    }
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(void *);
    return release_from(frame, first, second, third, fourth, fifth, patched);
}

/* A resized block is a free before the call and an allocation behind it. NULL for a size of 0 was a
 * free. A block that stays as it was is one whose free is taken back. */
static void resized(
    struct ml_thread *thread,
    const struct ml_hook *hook,
    const struct ml_unwind_entry *entry,
    enum ml_freed freed,
    const void *old_block,
    const void *new_block,
    size_t bytes
) {
    if (hook->lane == NULL) {
        return;
    }
    if (new_block != NULL) {
        ml_hook_alloc(thread, hook, entry, new_block, bytes);
    } else if (freed != ML_FREED_UNSAID && bytes != 0) {
        (void)ml_hook_recording(thread);
        ml_record_cancel(hook->lane);
        if (freed == ML_FREED_SAMPLED) {
            ml_sampled_set_add(&ml_process.sampled, (uintptr_t)old_block);
        }
    }
}

static inline uintptr_t resize_from(const struct ml_unwind_entry *entry, CALLED) {
    struct ml_thread *thread = ml_this_thread();
    const uintptr_t given[] = GIVEN;
    const void *block = (const void *)argument(patched->call.block_argument, given);
    const size_t bytes = bytes_of(patched, given);
    const bool in_place = patched->call.act == ML_ALLOCATOR_RESIZE_IN_PLACE;
    enum ml_freed freed = ML_FREED_UNSAID;
    if (ml_hook_is_idle(thread)) {
        return CALL_NEXT();
    }
    const struct ml_hook hook = ml_hook_enter(thread, entry->sp);
    if (block != NULL) {
        freed = ml_hook_free(thread, &hook, block, ML_OP_RESIZE);
    }
    const uintptr_t result = CALL_NEXT();
    /* In place the answer is the size that the block has now. */
    const void *new_block = !in_place ? (const void *)result : result >= bytes ? block : NULL;
    if (new_block != NULL || !patched->call.is_released_on_failure) {
        resized(thread, &hook, entry, freed, block, new_block, bytes);
    }
    ml_hook_leave(thread, &hook);
    return result;
}

RECORDED uintptr_t recorded_resizes(CALLED) {
    ML_HOOK_MAY_BE_LEFT();
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    return resize_from(&entry, first, second, third, fourth, fifth, patched);
}

static ML_HOT ML_HOOK uintptr_t entry_resizes(CALLED) {
    ML_HOOK_MAY_BE_LEFT();
    if (IS_OWN_CALL()) {
        return CALL_NEXT();
    }
    struct ml_thread *thread = ml_this_thread();
    const uintptr_t given[] = GIVEN;
    if (ends_unsaid(thread, (const void *)argument(patched->call.block_argument, given))) {
        PASS_GUARDED(bytes_of(patched, given), FRAME_HERE(), CALL_NEXT())
    }
    return recorded_resizes(first, second, third, fourth, fifth, patched);
}

/* ---- functions whose callers know them */

/* What ml_patched_keep has saved: the registers as the caller left them. */
struct kept {
    uintptr_t xmm[32];
    uintptr_t r11, r10, r9, rdi, rsi, rdx, rcx, rax;
    uintptr_t rbp, r8;
    uintptr_t return_address;
};

__attribute__((used)) static ML_HOOK uintptr_t
keeping_hook(const struct ml_patched *patched, const struct kept *kept) {
    ML_HOOK_MAY_BE_LEFT();
    const uintptr_t first = kept->rdi;
    const uintptr_t second = kept->rsi;
    const uintptr_t third = kept->rdx;
    const uintptr_t fourth = kept->rcx;
    const uintptr_t fifth = kept->r8;
    const struct ml_unwind_entry entry = {
        .pc = kept->return_address, .sp = (uintptr_t)(kept + 1), .fp = kept->rbp};
    if (is_own_call(patched, kept->return_address)) {
        return CALL_NEXT();
    }
    struct ml_thread *thread = ml_this_thread();
    const uintptr_t given[] = GIVEN;
    switch ((enum ml_allocator_act)patched->call.act) {
    case ML_ALLOCATOR_ALLOCATE:
        PASS_GUARDED(bytes_of(patched, given), entry.sp, CALL_NEXT())
        return allocate_from(&entry, first, second, third, fourth, fifth, patched);
    case ML_ALLOCATOR_RELEASE:
        return release_from(entry.sp, first, second, third, fourth, fifth, patched);
    default:
        return resize_from(&entry, first, second, third, fourth, fifth, patched);
    }
}

/* Comes from a stub, which has pushed r8 and put its function there. A nested call finds it as the
 * outer hook (client/recording/nested.h). */
extern const char ml_patched_keep[] __attribute__((visibility("hidden")));
__asm__(".pushsection memlog_hooks, \"ax\", @progbits\n"
        ".globl ml_patched_keep\n"
        ".hidden ml_patched_keep\n"
        ".type ml_patched_keep, @function\n"
        "ml_patched_keep:\n"
        ".cfi_startproc\n"
        ".cfi_def_cfa_offset 16\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 24\n"
        ".cfi_offset %rbp, -24\n"
        "mov %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "push %rax\n push %rcx\n push %rdx\n push %rsi\n push %rdi\n"
        "push %r9\n push %r10\n push %r11\n"
        "sub $256, %rsp\n"
        "movups %xmm0, (%rsp)\n movups %xmm1, 16(%rsp)\n"
        "movups %xmm2, 32(%rsp)\n movups %xmm3, 48(%rsp)\n"
        "movups %xmm4, 64(%rsp)\n movups %xmm5, 80(%rsp)\n"
        "movups %xmm6, 96(%rsp)\n movups %xmm7, 112(%rsp)\n"
        "movups %xmm8, 128(%rsp)\n movups %xmm9, 144(%rsp)\n"
        "movups %xmm10, 160(%rsp)\n movups %xmm11, 176(%rsp)\n"
        "movups %xmm12, 192(%rsp)\n movups %xmm13, 208(%rsp)\n"
        "movups %xmm14, 224(%rsp)\n movups %xmm15, 240(%rsp)\n"
        "mov %r8, %rdi\n"
        "mov %rsp, %rsi\n"
        "and $-16, %rsp\n"
        "call keeping_hook\n"
        "lea -320(%rbp), %rsp\n"
        "movups (%rsp), %xmm0\n movups 16(%rsp), %xmm1\n"
        "movups 32(%rsp), %xmm2\n movups 48(%rsp), %xmm3\n"
        "movups 64(%rsp), %xmm4\n movups 80(%rsp), %xmm5\n"
        "movups 96(%rsp), %xmm6\n movups 112(%rsp), %xmm7\n"
        "movups 128(%rsp), %xmm8\n movups 144(%rsp), %xmm9\n"
        "movups 160(%rsp), %xmm10\n movups 176(%rsp), %xmm11\n"
        "movups 192(%rsp), %xmm12\n movups 208(%rsp), %xmm13\n"
        "movups 224(%rsp), %xmm14\n movups 240(%rsp), %xmm15\n"
        "add $256, %rsp\n"
        "pop %r11\n pop %r10\n pop %r9\n pop %rdi\n pop %rsi\n pop %rdx\n pop %rcx\n"
        "add $8, %rsp\n"
        "pop %rbp\n"
        ".cfi_def_cfa %rsp, 16\n"
        "pop %r8\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size ml_patched_keep, . - ml_patched_keep\n"
        ".popsection\n");

enum { FEW = 4 };

static bool is_size_first(const struct ml_allocator_call *call) {
    return call->act == ML_ALLOCATOR_ALLOCATE && call->arguments <= FEW &&
           call->size_argument == 0 && call->count_argument == ML_ALLOCATOR_NONE &&
           call->out_argument == ML_ALLOCATOR_NONE && call->text_argument == ML_ALLOCATOR_NONE;
}

static bool is_block_first(const struct ml_allocator_call *call) {
    return call->act == ML_ALLOCATOR_RELEASE && call->arguments <= FEW && call->block_argument == 0;
}

static bool has_few(const struct ml_allocator_call *call) {
    return is_size_first(call) || is_block_first(call);
}

static const void *hook_for(const struct ml_allocator_call *call) {
    if (has_few(call)) {
        return (const void *)(uintptr_t
        )(is_size_first(call) ? entry_allocates_first : entry_releases_first);
    }
    switch ((enum ml_allocator_act)call->act) {
    case ML_ALLOCATOR_ALLOCATE:
        return (const void *)(uintptr_t)entry_allocates;
    case ML_ALLOCATOR_RELEASE:
        return (const void *)(uintptr_t)entry_releases;
    default:
        return (const void *)(uintptr_t)entry_resizes;
    }
}

/* [push %r8]; mov $patched, %r9, or %r8 for a hook of few and one that keeps registers;
 * jmp *0(%rip); the hook's address. */
void ml_patched_stub(
    const struct ml_patched *patched, bool keeps, uint8_t out_code[ML_PATCHED_STUB_BYTES]
) {
    static const uint8_t push[] = {0x41, 0x50};
    static const uint8_t into_r8[] = {0x49, 0xb8};
    static const uint8_t into_r9[] = {0x49, 0xb9};
    static const uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0};
    const void *hook = keeps ? (const void *)ml_patched_keep : hook_for(&patched->call);
    uint8_t *at = out_code;
    memset(out_code, 0xcc, ML_PATCHED_STUB_BYTES);
    if (keeps) {
        at = mempcpy(at, push, sizeof(push));
    }
    at = mempcpy(at, keeps || has_few(&patched->call) ? into_r8 : into_r9, sizeof(into_r8));
    at = mempcpy(at, &patched, sizeof(patched));
    at = mempcpy(at, jump, sizeof(jump));
    memcpy(at, &hook, sizeof(hook));
}
