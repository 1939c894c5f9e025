#include "tracer/frame.h"

#include <cpuid.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

enum {
    UC_FP_XSTATE_FLAG = 1,        /* of uc_flags: behind the old floating point state is more */
    UC_STACK_SEGMENT = 2,         /* ss is saved ... */
    UC_STRICT_RESTORE = 4,        /* ... and taken as it is */
    INVALID_STACK_FLAGS = 0x7fff, /* sigaltstack refuses it, and the thread's own stays */
    LEGACY_BYTES = 512,
    HEADER_BYTES = 64, /* behind it; its first word has a bit for each component in use */
    FIRST_EXTENDED = 2,
    ALWAYS_NAMED = 3, /* x87 and SSE: as bits */
    COMPONENTS = 63,
    STATE_LEAF = 0xd,    /* of cpuid: where each component lies */
    SOFTWARE_AT = 464,   /* in the legacy area: what the kernel says of the rest */
    CONTEXT_AT = 8,      /* in the frame */
    CONTEXT_BYTES = 304, /* of ucontext_t: as the kernel has it */
    STATE_AT = 320,      /* the next multiple of 64 */
    RED_ZONE_BYTES = 128,
    FRAME_STEP = 64,  /* a frame begins at a multiple of it */
    CALL_BYTES = 2,   /* the instruction `syscall` */
    FRONT_BYTES = 32, /* in front of it: its number is loaded there */
    LOAD_STACK_BYTES = 5,
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

static bool goes_on(uint64_t number) {
    return number == SYS_poll || number == SYS_nanosleep || number == SYS_futex ||
           number == SYS_clock_nanosleep;
}

/* mov $NUMBER,%eax */
static long number_in_code(const uint8_t code[FRONT_BYTES]) {
    enum { LOAD_EAX = 0xb8, LOAD_BYTES = 5 };
    for (size_t back = LOAD_BYTES; back <= FRONT_BYTES; back++) {
        const uint8_t *at = code + FRONT_BYTES - back;
        uint32_t number = 0;
        memcpy(&number, at + 1, sizeof(number));
        if (at[0] == LOAD_EAX && goes_on(number)) {
            return (long)number;
        }
    }
    return -1;
}

/* How far behind the stack pointer the last instruction of that kind reads, whose first bytes are
 * given, and whose last is that. -1: there is none. */
static int distance_in(const uint8_t code[FRONT_BYTES], const uint8_t load[LOAD_STACK_BYTES - 1]) {
    for (size_t at = FRONT_BYTES - LOAD_STACK_BYTES + 1; at > 0; at--) {
        if (memcmp(code + at - 1, load, LOAD_STACK_BYTES - 1) == 0) {
            return code[at - 1 + LOAD_STACK_BYTES - 1];
        }
    }
    return -1;
}

/* A process of one thread makes the call in the function that has its number as the last of seven
 * arguments, on the stack. One of several makes it in another function, which that one calls. */
long ml_frame_restarted_call(
    const struct user_regs_struct *registers, ml_frame_read *read, void *context
) {
    static const uint8_t load_rax[] = {0x48, 0x8b, 0x44, 0x24};
    static const uint8_t load_rsi[] = {0x48, 0x8b, 0x74, 0x24};
    static const uint8_t rax_of_rsi[] = {0x48, 0x89, 0xf0};
    uint8_t code[FRONT_BYTES];
    uint64_t stack = registers->rsp;
    uint64_t caller = 0;
    uint64_t number = 0;
    if (registers->orig_rax != SYS_restart_syscall ||
        !read(context, registers->rip - CALL_BYTES - FRONT_BYTES, code, sizeof(code))) {
        return -1;
    }
    const long in_code = number_in_code(code);
    if (in_code >= 0) {
        return in_code;
    }
    int distance = distance_in(code, load_rax);
    if (memmem(code, sizeof(code), rax_of_rsi, sizeof(rax_of_rsi)) != NULL) {
        const bool is_read = read(context, stack, &caller, sizeof(caller)) &&
                             read(context, caller - FRONT_BYTES, code, sizeof(code));
        distance = is_read ? distance_in(code, load_rsi) : -1;
        stack += sizeof(caller);
    }
    return distance >= 0 && read(context, stack + (uint64_t)distance, &number, sizeof(number)) &&
                   goes_on(number)
               ? (long)number
               : -1;
}

/* Where the thread goes on: an interrupted call is made again from its start, with its time limit
 * begun anew. The kernel's way of going on with the rest of the time is lost behind a return from a
 * signal: restart_syscall, as which a call goes on that was stopped before, would answer EINTR. */
static void make_again(struct user_regs_struct *registers, long call) {
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
        const bool goes_on = registers->orig_rax == SYS_restart_syscall && call >= 0;
        registers->rax = goes_on ? (unsigned long long)call : registers->orig_rax;
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

static uint64_t components_in_use(const struct ml_thread_image *image) {
    uint64_t in_use = 0;
    memcpy(&in_use, image->state + LEGACY_BYTES, sizeof(in_use));
    return in_use;
}

/* Up to the last component that is in use: the kernel takes the others for what they are at a
 * program's start. So an AMX state that a thread has no use of is not in its frame. */
static size_t used_bytes(const struct ml_thread_image *image) {
    size_t used = LEGACY_BYTES + HEADER_BYTES;
    const uint64_t in_use = components_in_use(image);
    for (uint32_t i = FIRST_EXTENDED; i < COMPONENTS; i++) {
        uint32_t size = 0;
        uint32_t at = 0;
        uint32_t flags = 0;
        uint32_t unused = 0;
        if ((in_use >> i & 1) != 0 &&
            __get_cpuid_count(STATE_LEAF, i, &size, &at, &flags, &unused) != 0 &&
            (size_t)at + size > used) {
            used = (size_t)at + size;
        }
    }
    return used < image->state_bytes ? used : image->state_bytes;
}

size_t ml_signal_frame_bytes(const struct ml_thread_image *image) {
    if (image->state_bytes < LEGACY_BYTES + HEADER_BYTES ||
        image->state_bytes > sizeof(image->state)) {
        return 0;
    }
    return STATE_AT + used_bytes(image) + MAGIC_BYTES;
}

uint64_t ml_signal_frame_place(
    const struct ml_thread_image *image, uint64_t stack_start, uint64_t stack_end
) {
    const size_t bytes = ml_signal_frame_bytes(image);
    const uint64_t whole = STATE_AT + image->state_bytes + MAGIC_BYTES;
    const uint64_t stack_pointer = image->registers.rsp;
    if (bytes == 0 || stack_pointer < stack_start || stack_pointer > stack_end ||
        stack_pointer - stack_start < RED_ZONE_BYTES + bytes + FRAME_STEP) {
        return 0;
    }
    const uint64_t steps = ~(uint64_t)(FRAME_STEP - 1);
    const uint64_t nearest = (stack_pointer - RED_ZONE_BYTES - bytes) & steps;
    const bool fits = stack_end - stack_start >= whole + FRAME_STEP;
    const uint64_t highest = fits ? (stack_end - whole) & steps : nearest;
    return highest < nearest ? highest : nearest;
}

size_t ml_signal_frame(
    const struct ml_thread_image *image,
    uint64_t address,
    uint64_t return_to,
    uint8_t out_frame[ML_SIGNAL_FRAME_MAX_BYTES]
) {
    _Static_assert(
        CONTEXT_AT + CONTEXT_BYTES <= STATE_AT && CONTEXT_BYTES <= sizeof(ucontext_t) &&
            STATE_AT + sizeof(image->state) + MAGIC_BYTES <= ML_SIGNAL_FRAME_MAX_BYTES,
        "it fits"
    );
    const size_t bytes = ml_signal_frame_bytes(image);
    uint64_t features = 0;
    if (bytes == 0) {
        return 0;
    }
    const size_t state_bytes = bytes - STATE_AT - MAGIC_BYTES;
    /* ptrace leaves the features that the processor saves where the frame has its own words. The
     * frame names those that it has: AMD's processors fault where the place of any that is named
     * cannot be read, in use or not, and it may end behind the stack. */
    memcpy(&features, image->state + SOFTWARE_AT, sizeof(features));
    features &= components_in_use(image) | ALWAYS_NAMED;
    struct user_regs_struct registers = image->registers;
    make_again(&registers, image->call);
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
    memcpy(out_frame + CONTEXT_AT, &context, CONTEXT_BYTES);
    const struct software_bytes software = {
        .magic1 = magic_first,
        .extended_bytes = (uint32_t)state_bytes + MAGIC_BYTES,
        .features = features,
        .state_bytes = (uint32_t)state_bytes};
    memcpy(out_frame + STATE_AT, image->state, state_bytes);
    memcpy(out_frame + STATE_AT + SOFTWARE_AT, &software, sizeof(software));
    memcpy(out_frame + STATE_AT + state_bytes, &magic_second, sizeof(magic_second));
    return bytes;
}
