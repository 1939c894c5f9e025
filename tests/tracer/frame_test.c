#include "tracer/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

enum {
    STATE_NOTE = 0x202, /* NT_X86_XSTATE */
    RED_ZONE_BYTES = 128,
    MASK_BYTES = 8,
    GENERAL = 11,
    XMM_BYTES = 256,
    CONTEXT_AND_STATE_BYTES = 320 + 576, /* the frame of a thread that uses no more than SSE */
    SLEEP_MS = 400
};

/* As a libc's: where a signal handler returns to. */
__asm__(".globl ml_test_return_of_signal\n"
        "ml_test_return_of_signal: mov $15, %eax\n\tsyscall\n\tud2\n");
extern const char ml_test_return_of_signal[];

static int told[2]; /* the child is in its loop, or about to sleep */

/* ---- the tracer's side */

static void stop(pid_t child) {
    int status = 0;
    ck_assert_int_eq(ptrace(PTRACE_SEIZE, child, NULL, NULL), 0);
    ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, child, NULL, NULL), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSTOPPED(status));
}

static void take_image(pid_t child, struct ml_thread_image *image) {
    struct iovec state = {.iov_base = image->state, .iov_len = sizeof(image->state)};
    ck_assert_int_eq(ptrace(PTRACE_GETREGS, child, NULL, &image->registers), 0);
    ck_assert_int_eq(ptrace(PTRACE_GETREGSET, child, (void *)STATE_NOTE, &state), 0);
    ck_assert_int_eq(ptrace(PTRACE_GETSIGMASK, child, (void *)MASK_BYTES, &image->signal_mask), 0);
    image->state_bytes = state.iov_len;
    image->call = -1;
}

static bool read_memory(void *context, uint64_t address, void *out_bytes, size_t count_bytes) {
    const int *memory = context;
    return pread(*memory, out_bytes, count_bytes, (off_t)address) == (ssize_t)count_bytes;
}

/* Nothing of the child is as it was, but for what the frame holds. */
static void spoil(pid_t child, const struct ml_thread_image *image, uint64_t frame) {
    static struct ml_thread_image other;
    struct user_regs_struct registers;
    const uint64_t all = ~UINT64_C(0);
    memset(&registers, 0x77, sizeof(registers));
    registers.cs = image->registers.cs;
    registers.ss = image->registers.ss;
    registers.ds = image->registers.ds;
    registers.es = image->registers.es;
    registers.fs = image->registers.fs;
    registers.gs = image->registers.gs;
    registers.fs_base = image->registers.fs_base;
    registers.gs_base = image->registers.gs_base;
    registers.eflags = 0x202;
    registers.orig_rax = (unsigned long long)-1;
    registers.rip = (unsigned long long)(uintptr_t)ml_test_return_of_signal;
    registers.rsp = frame + 8;
    ck_assert_int_eq(ptrace(PTRACE_SETREGS, child, NULL, &registers), 0);
    ck_assert_int_eq(ptrace(PTRACE_SETSIGMASK, child, (void *)MASK_BYTES, &all), 0);
    other = *image;
    memset(other.state + 32, 0x3b, 8 * 16 + XMM_BYTES); /* x87 and xmm */
    struct iovec state = {.iov_base = other.state, .iov_len = other.state_bytes};
    ck_assert_int_eq(ptrace(PTRACE_SETREGSET, child, (void *)STATE_NOTE, &state), 0);
}

/* Stop it, put a frame below what it uses, make it another thread, and let it come back alone. */
static void send_round(pid_t child) {
    static struct ml_thread_image image;
    static uint8_t frame[ML_SIGNAL_FRAME_MAX_BYTES];
    char path[64];
    stop(child);
    take_image(child, &image);
    (void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)child);
    const int memory = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(memory, 0);
    image.call = ml_frame_restarted_call(&image.registers, read_memory, &(int){memory});
    const uint64_t at =
        (image.registers.rsp - RED_ZONE_BYTES - ML_SIGNAL_FRAME_MAX_BYTES) & ~UINT64_C(63);
    const size_t bytes =
        ml_signal_frame(&image, at, (uint64_t)(uintptr_t)ml_test_return_of_signal, frame);
    ck_assert_uint_gt(bytes, CONTEXT_AND_STATE_BYTES);
    ck_assert_uint_le(bytes, sizeof(frame));
    ck_assert_int_eq(pwrite(memory, frame, bytes, (off_t)at), (ssize_t)bytes);
    (void)close(memory);
    spoil(child, &image, at);
    ck_assert_int_eq(ptrace(PTRACE_DETACH, child, NULL, NULL), 0);
}

/* ---- the child's side: what it ends with says what was wrong */

static void tell(void) {
    (void)!write(told[1], "x", 1);
}

/* A loop with a value in each register, until somebody sets `done`. */
static int compute(volatile int *done) {
    static uint8_t in[XMM_BYTES] __attribute__((aligned(16)));
    static uint8_t out[XMM_BYTES] __attribute__((aligned(16)));
    static uint64_t general[GENERAL];
    static double x87;
    static const double given = 1234.5;
    for (size_t i = 0; i < sizeof(in); i++) {
        in[i] = (uint8_t)(i * 13 + 1);
    }
    tell();
#define LOAD(n) "movdqu " #n "*16(%[in]), %%xmm" #n "\n\t"
#define SAVE(n) "movdqu %%xmm" #n ", " #n "*16(%[in])\n\t"
#define ALL(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14) f(15)
    __asm__ volatile(
        "push %%rbp\n\tpush %[general]\n\tpush %[out]\n\tfldl %[given]\n\t" ALL(LOAD
        ) "mov $101, %%rbx\n\tmov $102, %%r8\n\tmov $103, %%r9\n\tmov $104, %%r10\n\tmov $105, "
          "%%r11\n\t"
          "mov $106, %%r12\n\tmov $107, %%r13\n\tmov $108, %%r14\n\tmov $109, %%r15\n\tmov $110, "
          "%%rbp\n\t"
          "stc\n\t"
          "1: mov (%[done]), %%ecx\n\tjrcxz 1b\n\t"
          "setc %%cl\n\tmov (%%rsp), %[in]\n\t" ALL(SAVE
          ) "mov 8(%%rsp), %[in]\n\t"
            "mov %%rbx, (%[in])\n\tmov %%r8, 8(%[in])\n\tmov %%r9, 16(%[in])\n\tmov %%r10, "
            "24(%[in])\n\t"
            "mov %%r11, 32(%[in])\n\tmov %%r12, 40(%[in])\n\tmov %%r13, 48(%[in])\n\tmov %%r14, "
            "56(%[in])\n\t"
            "mov %%r15, 64(%[in])\n\tmov %%rbp, 72(%[in])\n\tmovzbl %%cl, %%ecx\n\tmov %%rcx, "
            "80(%[in])\n\t"
            "add $16, %%rsp\n\tpop %%rbp\n\t"
            "fstpl %[x87]\n\t"
        : [x87] "=m"(x87)
        : [in] "S"(in), [out] "a"(out), [general] "d"(general), [done] "D"(done), [given] "m"(given)
        : "rcx",
          "rbx",
          "r8",
          "r9",
          "r10",
          "r11",
          "r12",
          "r13",
          "r14",
          "r15",
          "memory",
          "cc",
          "xmm0",
          "xmm1",
          "xmm2",
          "xmm3",
          "xmm4",
          "xmm5",
          "xmm6",
          "xmm7",
          "xmm8",
          "xmm9",
          "xmm10",
          "xmm11",
          "xmm12",
          "xmm13",
          "xmm14",
          "xmm15",
          "st"
    );
    for (uint64_t i = 0; i < 10; i++) {
        if (general[i] != 101 + i) {
            return 10 + (int)i;
        }
    }
    return general[10] != 1 ? 20 : x87 != given ? 21 : memcmp(in, out, sizeof(in)) != 0 ? 22 : 0;
}

static uint64_t now_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static pid_t child_of(int (*what)(volatile int *), volatile int *shared) {
    ck_assert_int_eq(pipe(told), 0);
    const pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(what(shared));
    }
    char byte;
    ck_assert_int_eq(read(told[0], &byte, 1), 1);
    return child;
}

static void assert_ends_with(pid_t child, int code) {
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code) {
        ck_abort_msg("it ended with status %x", (unsigned)status);
    }
}

/* ---- tests */

/* A word that both see: in a file's page. */
static volatile int *shared_word(void) {
    FILE *file = tmpfile();
    ck_assert_int_eq(ftruncate(fileno(file), 4096), 0);
    volatile int *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    ck_assert(word != MAP_FAILED);
    return word;
}

START_TEST(a_thread_in_a_loop_comes_back_with_all_its_registers) {
    volatile int *done = shared_word();
    const pid_t child = child_of(compute, done);
    for (int i = 0; i < 50; i++) {
        send_round(child);
    }
    *done = 1;
    assert_ends_with(child, 0);
}
END_TEST

/* The calls that the kernel begins again, with and without a limit. */
static int sleep_long(volatile int *unused) {
    (void)unused;
    const struct timespec limit = {.tv_nsec = SLEEP_MS * 1000000L};
    const uint64_t since = now_ms();
    tell();
    if (syscall(SYS_nanosleep, &limit, NULL) != 0) {
        return errno;
    }
    return now_ms() - since < SLEEP_MS ? 100 : 0;
}

/* By libc's own code. */
static int sleep_by_libc(volatile int *unused) {
    (void)unused;
    const struct timespec limit = {.tv_nsec = SLEEP_MS * 1000000L};
    tell();
    return nanosleep(&limit, NULL) != 0 ? errno : 0;
}

static int poll_by_libc(volatile int *unused) {
    (void)unused;
    tell();
    return poll(NULL, 0, SLEEP_MS) != 0 ? errno : 0;
}

static int read_byte(volatile int *unused) {
    (void)unused;
    static int fds[2];
    char byte = 0;
    (void)!pipe(fds);
    const pid_t writer = fork();
    if (writer == 0) {
        const struct timespec limit = {.tv_nsec = SLEEP_MS * 1000000L};
        (void)nanosleep(&limit, NULL);
        _exit(write(fds[1], "y", 1) == 1 ? 0 : 1);
    }
    tell();
    const long got = syscall(SYS_read, fds[0], &byte, 1);
    return got == 1 && byte == 'y' ? 0 : got < 0 ? errno : 101;
}

static void pause_ms(long count) {
    const struct timespec pause = {.tv_nsec = count * 1000000L};
    (void)nanosleep(&pause, NULL);
}

START_TEST(a_thread_that_sleeps_makes_its_call_again) {
    int (*const calls[])(volatile int *) = {sleep_long, read_byte};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        const pid_t child = child_of(calls[i], NULL);
        pause_ms(100);
        send_round(child);
        pause_ms(50);
        send_round(child);
        assert_ends_with(child, 0);
    }
}
END_TEST

/* The kernel goes on with them by restart_syscall behind the first stop. */
START_TEST(a_thread_that_was_stopped_in_its_sleep_before_makes_its_call_again) {
    int (*const calls[])(volatile int *) = {sleep_by_libc, poll_by_libc};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        const pid_t child = child_of(calls[i], NULL);
        pause_ms(50);
        stop(child);
        ck_assert_int_eq(ptrace(PTRACE_DETACH, child, NULL, NULL), 0);
        pause_ms(50);
        send_round(child);
        assert_ends_with(child, 0);
    }
}
END_TEST

/* Its signal mask, its signal stack and what waits for it. */
static volatile sig_atomic_t came;

static void take_note(int number) {
    came = number;
}

static int keep_signals(volatile int *done) {
    static char stack[65536];
    const stack_t given = {.ss_sp = stack, .ss_size = sizeof(stack)};
    stack_t now;
    sigset_t set;
    (void)signal(SIGUSR1, take_note);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)sigaltstack(&given, NULL);
    (void)raise(SIGUSR1);
    tell();
    while (*done == 0) {
    }
    (void)sigaltstack(NULL, &now);
    (void)sigemptyset(&set);
    (void)sigprocmask(SIG_BLOCK, NULL, &set);
    if (came != 0 || sigismember(&set, SIGUSR1) != 1 || sigismember(&set, SIGUSR2) != 0) {
        return 1;
    }
    if (now.ss_sp != given.ss_sp || now.ss_size != given.ss_size || now.ss_flags != 0) {
        return 2;
    }
    (void)sigemptyset(&set);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    return came == SIGUSR1 ? 0 : 3;
}

START_TEST(its_signal_mask_and_its_signal_stack_are_kept) {
    volatile int *done = shared_word();
    const pid_t child = child_of(keep_signals, done);
    for (int i = 0; i < 20; i++) {
        send_round(child);
    }
    *done = 1;
    assert_ends_with(child, 0);
}
END_TEST

/* A thread of glibc 2.41: code and stack as they stand in one memory, from 0 on. */
enum { CODE_AT = 64, CALLER_AT = 192, STACK_AT = 256, MEMORY_BYTES = 512 };
struct small_memory {
    uint8_t bytes[MEMORY_BYTES];
};

static bool read_small(void *context, uint64_t address, void *out_bytes, size_t count_bytes) {
    const struct small_memory *memory = context;
    if (address > MEMORY_BYTES || count_bytes > MEMORY_BYTES - address) {
        return false;
    }
    memcpy(out_bytes, memory->bytes + address, count_bytes);
    return true;
}

static void put_word(struct small_memory *memory, size_t at, uint64_t word) {
    memcpy(memory->bytes + at, &word, sizeof(word));
}

static long call_of(struct small_memory *memory) {
    const struct user_regs_struct registers = {
        .orig_rax = SYS_restart_syscall, .rip = CODE_AT + 2, .rsp = STACK_AT};
    return ml_frame_restarted_call(&registers, read_small, memory);
}

START_TEST(the_number_of_a_call_that_can_be_cancelled_is_on_the_stack) {
    static const uint8_t load_rax[] = {0x48, 0x8b, 0x44, 0x24, 16};
    static const uint8_t passed_on[] = {0x48, 0x89, 0xf0, 0x48, 0x89, 0xd7, 0x48, 0x89, 0xce};
    static const uint8_t load_rsi[] = {
        0x48,
        0x8b,
        0x74,
        0x24,
        32,
        0x49,
        0x89,
        0xd0,
        0x48,
        0x89,
        0xfa,
        0x4c,
        0x89,
        0xdf,
        0xe8,
        1,
        2,
        3,
        4};
    struct small_memory one = {.bytes = {0}};
    memcpy(one.bytes + CODE_AT - sizeof(load_rax), load_rax, sizeof(load_rax));
    ck_assert_int_eq(call_of(&one), -1); /* what is there goes on otherwise */
    put_word(&one, STACK_AT + 16, SYS_poll);
    ck_assert_int_eq(call_of(&one), SYS_poll);
    put_word(&one, STACK_AT + 16, SYS_read);
    ck_assert_int_eq(call_of(&one), -1);

    struct small_memory several = {.bytes = {0}};
    memcpy(several.bytes + CODE_AT - 30, passed_on, sizeof(passed_on));
    memcpy(several.bytes + CALLER_AT - sizeof(load_rsi), load_rsi, sizeof(load_rsi));
    put_word(&several, STACK_AT + 8 + 32, SYS_clock_nanosleep);
    ck_assert_int_eq(call_of(&several), -1); /* nobody has called it */
    put_word(&several, STACK_AT, CALLER_AT);
    ck_assert_int_eq(call_of(&several), SYS_clock_nanosleep);
    put_word(&several, STACK_AT, ~UINT64_C(0)); /* no code is there */
    ck_assert_int_eq(call_of(&several), -1);
    put_word(&several, STACK_AT, STACK_AT);
    ck_assert_int_eq(call_of(&several), -1);
}
END_TEST

/* None of the state is in use: the frame is short. */
static struct ml_thread_image *unused_image(void) {
    enum { WHOLE_BYTES = 2696, SOFTWARE_AT = 464, ALL = 0xe7, LEGACY_BYTES = 512 };
    static struct ml_thread_image image;
    const uint64_t all = ALL;
    memset(image.state + LEGACY_BYTES, 0, sizeof(uint64_t));
    memcpy(image.state + SOFTWARE_AT, &all, sizeof(all));
    image.state_bytes = WHOLE_BYTES;
    return &image;
}

START_TEST(a_frame_lies_near_and_has_the_whole_state_readable_behind_it) {
    enum { START = 1 << 20, STACK_BYTES = 1 << 14, END = START + STACK_BYTES, STEP = 64 };
    enum { STATE_AT = 320, END_BYTES = 4 };
    struct ml_thread_image *image = unused_image();
    const uint64_t whole = STATE_AT + image->state_bytes + END_BYTES;
    const size_t bytes = ml_signal_frame_bytes(image);
    ck_assert_uint_lt(bytes, whole);
    for (uint64_t left = 0; left <= STACK_BYTES; left += 8) {
        image->registers.rsp = START + left;
        const uint64_t below = START + left - RED_ZONE_BYTES;
        const uint64_t at = ml_signal_frame_place(image, START, END);
        if (at == 0) {
            ck_assert_uint_lt(left, RED_ZONE_BYTES + bytes + STEP);
            continue;
        }
        ck_assert_uint_eq(at % STEP, 0);
        ck_assert_uint_ge(at, START);
        ck_assert_uint_le(at + bytes, below);
        ck_assert_uint_le(at + whole, END);
        ck_assert_uint_gt(at + whole + STEP, below); /* no deeper than a signal's */
        ck_assert(at + bytes + STEP > below || at + whole + STEP > END);
    }
    /* A stack that has no room for the whole state has some for the frame. */
    image->registers.rsp = START + 2048;
    ck_assert_uint_gt(ml_signal_frame_place(image, START, START + 2048), 0);
    ck_assert_uint_eq(ml_signal_frame_place(image, START, START + 2000), 0);
    ck_assert_uint_eq(ml_signal_frame_place(image, START + 4096, END), 0);
}
END_TEST

/* A processor may read the place of each component that a frame names. */
START_TEST(a_frame_names_no_component_that_it_does_not_have) {
    enum { IN_USE_AT = 512, STATE_AT = 320, NAMED_AT = 464 + 8, AVX = 4, X87_AND_SSE = 3 };
    static uint8_t frame[ML_SIGNAL_FRAME_MAX_BYTES];
    struct ml_thread_image *image = unused_image();
    uint64_t named = 0;
    ck_assert_uint_gt(ml_signal_frame(image, 4096, 0, frame), 0);
    memcpy(&named, frame + STATE_AT + NAMED_AT, sizeof(named));
    ck_assert_uint_eq(named, X87_AND_SSE);
    image->state[IN_USE_AT] = AVX;
    ck_assert_uint_gt(ml_signal_frame(image, 4096, 0, frame), 0);
    memcpy(&named, frame + STATE_AT + NAMED_AT, sizeof(named));
    ck_assert_uint_eq(named, AVX | X87_AND_SSE);
}
END_TEST

START_TEST(a_state_that_the_kernel_would_not_take_gives_no_frame) {
    static struct ml_thread_image image;
    static uint8_t frame[ML_SIGNAL_FRAME_MAX_BYTES];
    const size_t wrong[] = {0, 512, 575, ML_SIGNAL_FRAME_MAX_BYTES};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        image.state_bytes = wrong[i];
        ck_assert_uint_eq(ml_signal_frame(&image, 4096, 0, frame), 0);
    }
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("frame");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_thread_in_a_loop_comes_back_with_all_its_registers);
    tcase_add_test(tests, a_thread_that_sleeps_makes_its_call_again);
    tcase_add_test(tests, a_thread_that_was_stopped_in_its_sleep_before_makes_its_call_again);
    tcase_add_test(tests, the_number_of_a_call_that_can_be_cancelled_is_on_the_stack);
    tcase_add_test(tests, its_signal_mask_and_its_signal_stack_are_kept);
    tcase_add_test(tests, a_frame_lies_near_and_has_the_whole_state_readable_behind_it);
    tcase_add_test(tests, a_frame_names_no_component_that_it_does_not_have);
    tcase_add_test(tests, a_state_that_the_kernel_would_not_take_gives_no_frame);
    return run_suite("frame", tests);
}
