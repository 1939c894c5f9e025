#include "client/recording/nested.h"

#include <ucontext.h>

#include "client/stream/module_record.h"
#include "client/unwind/foreign.h"

enum {
    /* The least that the kernel puts there: the red zone, registers, siginfo and FXSAVE's area. */
    SIGNAL_MIN_BYTES = 128 + 300 + 128 + 512,
    /* Frames farther apart are mostly on two stacks, and the search costs more than a walk. */
    LOOK_MAX_BYTES = 1 << 20,
    FRAME_ALIGNMENT = 16, /* of the word behind the return address */
    USER_CODE_SELECTOR = 0x33,
    FLAGS_ALWAYS = 2, /* of rflags: this bit is never 0 */
    FLAGS_BITS = 22
};

/* Bounds of the section of the hooks, from the linker. */
extern const char __start_memlog_hooks[] __attribute__((visibility("hidden"), weak));
extern const char __stop_memlog_hooks[] __attribute__((visibility("hidden"), weak));

/* The kernel's struct rt_sigframe: the handler's return address, then the context. */
struct signal_frame {
    uintptr_t restorer;
    ucontext_t context;
};

/* Up to the registers: the rest of the frame is not read. */
enum {
    LOOKED_AT_BYTES = offsetof(struct signal_frame, context.uc_mcontext.fpregs) + sizeof(void *)
};

/* Whether these words are a context that the kernel saved, interrupted between here and `outer`. */
__attribute__((no_sanitize("address", "undefined"))) static bool
looks_like_one(const struct signal_frame *frame, uintptr_t outer) {
    const greg_t *registers = frame->context.uc_mcontext.gregs;
    const uintptr_t stack = (uintptr_t)registers[REG_RSP];
    const uintptr_t floats = (uintptr_t)frame->context.uc_mcontext.fpregs;
    const uint64_t flags = (uint64_t)registers[REG_EFL];
    return frame->restorer != 0 &&
           ((uint64_t)registers[REG_CSGSFS] & 0xffff) == USER_CODE_SELECTOR &&
           (flags & FLAGS_ALWAYS) != 0 && flags >> FLAGS_BITS == 0 && stack > (uintptr_t)frame &&
           stack <= outer && (floats == 0 || (floats > (uintptr_t)frame && floats < stack));
}

static bool may_be_signals(uintptr_t inner, uintptr_t outer) {
    struct ml_foreign foreign = {0};
    if (outer - inner > LOOK_MAX_BYTES) {
        return true;
    }
    if (outer - inner < SIGNAL_MIN_BYTES) {
        return false;
    }
    uintptr_t at = (inner & ~(uintptr_t)(FRAME_ALIGNMENT - 1)) + FRAME_ALIGNMENT / 2;
    for (; at + LOOKED_AT_BYTES <= outer; at += FRAME_ALIGNMENT) {
        if (!ml_foreign_readable(&foreign, (const void *)at, LOOKED_AT_BYTES)) {
            return true; /* two stacks */
        }
        if (looks_like_one((const struct signal_frame *)at, outer)) {
            return true;
        }
    }
    return false;
}

/* Whether that address lies in a hook: one that has called the next allocator. */
static bool is_in_hook(uintptr_t pc) {
    return pc - (uintptr_t)__start_memlog_hooks <
           (uintptr_t)__stop_memlog_hooks - (uintptr_t)__start_memlog_hooks;
}

__attribute__((noinline)) enum ml_nested
ml_nested_what(struct ml_lane *lane, uintptr_t inner_frame, uintptr_t outer_frame) {
    struct ml_unwind_thread *unwind = &lane->unwind;
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    const struct ml_module_seen seen = {.function = ml_module_record, .context = lane};
    const uintptr_t outer_slot = outer_frame - ML_ARCH_WORD_BYTES;
    const struct ml_unwind_result result = ml_unwind(ml_process.unwind, unwind, &entry, &seen);
    uintptr_t within = 0; /* pc of the frame inside the present one */
    for (uint32_t i = result.count; i-- > 0;) {
        const struct ml_unwind_frame *frame = &unwind->frames[i];
        if (ml_unwind_kind(unwind, i) != ML_FRAME_ADDRESS) {
            break;
        }
        if ((frame->recipe & ML_UNWIND_FRAME_EXACT) != 0) {
            return ML_NESTED_SIGNAL;
        }
        if (frame->slot >= outer_slot) {
            return frame->slot == outer_slot && is_in_hook(within) ? ML_NESTED_OWN : ML_NESTED_NONE;
        }
        within = frame->pc;
    }
    return may_be_signals(inner_frame, outer_frame) ? ML_NESTED_SIGNAL : ML_NESTED_OWN;
}
