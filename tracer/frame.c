#include "tracer/frame.h"

#include <string.h>
#include <ucontext.h>

enum {
    UC_FP_XSTATE_FLAG = 1,        /* of uc_flags: behind the old floating point state is more */
    UC_STACK_SEGMENT = 2,         /* ss is saved ... */
    UC_STRICT_RESTORE = 4,        /* ... and taken as it is */
    INVALID_STACK_FLAGS = 0x7fff, /* sigaltstack refuses it, and the thread's own stays */
    LEGACY_BYTES = 512,
    SOFTWARE_AT = 464, /* in the legacy area: what the kernel says of the rest */
    CALL_BYTES = 2,    /* the instruction `syscall` */
    MAGIC_BYTES = 4
};
static const uint32_t magic_first = 0x46505853;  /* FP_XSTATE_MAGIC1 */
static const uint32_t magic_second = 0x46505845; /* FP_XSTATE_MAGIC2 */

/* As the kernel has it in front of its uc_mcontext, and where glibc's ucontext_t has it, too. */
struct software_bytes {
    uint32_t magic1;
    uint32_t extended_bytes;
    uint64_t features;
    uint32_t state_bytes;
    uint32_t padding[7];
};

/* Where the thread goes on: an interrupted call is made again from its start, with its time limit
 * begun anew. The kernel's way of going on with the rest of the time is lost behind a return from a
 * signal. */
static void make_again(struct user_regs_struct *registers) {
    enum {
        RESTART_SYS = 512,
        RESTART_NO_INTERRUPT = 513,
        RESTART_NO_HAND = 514,
        RESTART_BLOCK = 516
    };
    const long result = (long)registers->rax;
    if ((long)registers->orig_rax >= 0 &&
        (result == -RESTART_SYS || result == -RESTART_NO_INTERRUPT || result == -RESTART_NO_HAND ||
         result == -RESTART_BLOCK)) {
        registers->rax = registers->orig_rax;
        registers->rip -= CALL_BYTES;
    }
}

static void put_registers(const struct user_regs_struct *from, ucontext_t *to) {
    greg_t *all = to->uc_mcontext.gregs;
    all[REG_R8] = (greg_t)from->r8;
    all[REG_R9] = (greg_t)from->r9;
    all[REG_R10] = (greg_t)from->r10;
    all[REG_R11] = (greg_t)from->r11;
    all[REG_R12] = (greg_t)from->r12;
    all[REG_R13] = (greg_t)from->r13;
    all[REG_R14] = (greg_t)from->r14;
    all[REG_R15] = (greg_t)from->r15;
    all[REG_RDI] = (greg_t)from->rdi;
    all[REG_RSI] = (greg_t)from->rsi;
    all[REG_RBP] = (greg_t)from->rbp;
    all[REG_RBX] = (greg_t)from->rbx;
    all[REG_RDX] = (greg_t)from->rdx;
    all[REG_RAX] = (greg_t)from->rax;
    all[REG_RCX] = (greg_t)from->rcx;
    all[REG_RSP] = (greg_t)from->rsp;
    all[REG_RIP] = (greg_t)from->rip;
    all[REG_EFL] = (greg_t)from->eflags;
    all[REG_CSGSFS] = (greg_t
    )((from->cs & 0xffff) | (from->gs & 0xffff) << 16 | (from->fs & 0xffff) << 32 |
      (from->ss & 0xffff) << 48);
}

size_t ml_signal_frame(
    const struct ml_thread_image *image,
    uint64_t address,
    uint64_t return_to,
    uint8_t out_frame[ML_SIGNAL_FRAME_MAX_BYTES]
) {
    enum { CONTEXT_AT = 8, STATE_AT = 1024 };
    _Static_assert(CONTEXT_AT + sizeof(ucontext_t) <= STATE_AT, "it fits");
    const size_t bytes = STATE_AT + image->state_bytes + MAGIC_BYTES;
    uint64_t features = 0;
    if (image->state_bytes < LEGACY_BYTES + 64 || bytes > ML_SIGNAL_FRAME_MAX_BYTES) {
        return 0;
    }
    /* ptrace leaves the features that the processor saves where the frame has its own words. */
    memcpy(&features, image->state + SOFTWARE_AT, sizeof(features));
    struct user_regs_struct registers = image->registers;
    make_again(&registers);
    ucontext_t context;
    memset(&context, 0, sizeof(context));
    context.uc_flags = UC_FP_XSTATE_FLAG | UC_STACK_SEGMENT | UC_STRICT_RESTORE;
    context.uc_stack.ss_flags = INVALID_STACK_FLAGS;
    put_registers(&registers, &context);
    /* The state's address, as the process sees it. */
    context.uc_mcontext.fpregs = (fpregset_t)(uintptr_t)(address + STATE_AT);
    memcpy(&context.uc_sigmask, &image->signal_mask, sizeof(image->signal_mask));
    memset(out_frame, 0, STATE_AT);
    memcpy(out_frame, &return_to, sizeof(return_to));
    memcpy(out_frame + CONTEXT_AT, &context, sizeof(context));
    const struct software_bytes software = {
        .magic1 = magic_first,
        .extended_bytes = (uint32_t)image->state_bytes + MAGIC_BYTES,
        .features = features,
        .state_bytes = (uint32_t)image->state_bytes};
    memcpy(out_frame + STATE_AT, image->state, image->state_bytes);
    memcpy(out_frame + STATE_AT + SOFTWARE_AT, &software, sizeof(software));
    memcpy(out_frame + STATE_AT + image->state_bytes, &magic_second, sizeof(magic_second));
    return bytes;
}
