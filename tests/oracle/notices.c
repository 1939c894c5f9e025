/* A program that takes note of whatever an attachment might do to it: waits that end early, late or
 * with EINTR, registers, errno, the signal mask, the signal stack. One kind of it a process, so
 * that this thread is the one that is borrowed. Ends when the file STOP is there, and says on
 * stdout what it saw.
 *
 *   notices KIND STOP    KIND: one of the rows below, or registers */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { WAIT_MS = 1500, SECOND_MS = 1000, NS_A_MS = 1000000 };

static int pipe_fds[2], epoll_fd, pair_fds[2], full_fds[2], queue_id, set_id;
static uint32_t word;
static unsigned long aio_context;
static sigset_t usr2;
static const struct timespec limit = {.tv_sec = 1, .tv_nsec = 500L * NS_A_MS};

static uint64_t now_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_MS + (uint64_t)now.tv_nsec / NS_A_MS;
}

/* ---- waits with a limit: each answers 0 where it ended by its limit, errno else */

static int answer(long result, int wanted) {
    return result < 0 && errno == wanted ? 0 : result < 0 ? errno : -1;
}

static int none(long result) {
    return result == 0 ? 0 : result < 0 ? errno : -1;
}

static int by_poll(void) {
    struct pollfd one = {.fd = pipe_fds[0], .events = POLLIN};
    return none(poll(&one, 1, WAIT_MS));
}

static int by_epoll(void) {
    struct epoll_event event;
    return none(epoll_wait(epoll_fd, &event, 1, WAIT_MS));
}

static int by_select(void) {
    fd_set set;
    struct timeval time_limit = {.tv_sec = 1, .tv_usec = 500000};
    FD_ZERO(&set);
    FD_SET(pipe_fds[0], &set);
    return none(select(pipe_fds[0] + 1, &set, NULL, NULL, &time_limit));
}

static int by_nanosleep(void) {
    struct timespec rest;
    return none(nanosleep(&limit, &rest));
}

static int by_clock(void) {
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += 2;
    at.tv_nsec -= 500L * NS_A_MS;
    if (at.tv_nsec < 0) {
        at.tv_sec--;
        at.tv_nsec += 1000L * NS_A_MS;
    }
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static int by_futex(void) {
    return answer(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0), ETIMEDOUT);
}

static int by_condition(void) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec at;
    (void)clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += 1;
    at.tv_nsec += 500L * NS_A_MS;
    at.tv_sec += at.tv_nsec / (1000L * NS_A_MS);
    at.tv_nsec %= 1000L * NS_A_MS;
    (void)pthread_mutex_lock(&mutex);
    const int result = pthread_cond_timedwait(&condition, &mutex, &at);
    (void)pthread_mutex_unlock(&mutex);
    return result == ETIMEDOUT ? 0 : result;
}

static int by_sigtimedwait(void) {
    return answer(sigtimedwait(&usr2, NULL, &limit), EAGAIN);
}

static int by_semaphore(void) {
    struct sembuf operation = {.sem_num = 0, .sem_op = -1};
    return answer(semtimedop(set_id, &operation, 1, &limit), EAGAIN);
}

static int by_receive(void) {
    char byte;
    return answer(recv(pair_fds[0], &byte, 1, 0), EAGAIN);
}

/* libc has no function for it. */
static int by_aio(void) {
    uint64_t event[4];
    return none(syscall(SYS_io_getevents, aio_context, 1, 1, event, &limit));
}

static int by_read(void) {
    char byte;
    return answer(read(pair_fds[0], &byte, 1), EAGAIN);
}

static int by_readv(void) {
    char byte;
    const struct iovec part = {.iov_base = &byte, .iov_len = 1};
    return answer(readv(pair_fds[0], &part, 1), EAGAIN);
}

static int by_recvmmsg(void) {
    char byte;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    return answer(recvmmsg(pair_fds[0], &message, 1, 0, NULL), EAGAIN);
}

/* Its peer reads nothing, and there is no room for more. */
static int by_write(void) {
    static const char many[4096];
    while (send(full_fds[0], many, sizeof(many), MSG_DONTWAIT) > 0) {
    }
    return answer(write(full_fds[0], many, sizeof(many)), EAGAIN);
}

/* ---- waits on small stacks, among memory that is none of the thread's stack */

enum { ROUND_BYTES = 65536, HANDLER_BYTES = 4096, COROUTINE_BYTES = 1536, FILLED = 0x5c };
static struct {
    uint8_t below[ROUND_BYTES];
    uint8_t stack[ROUND_BYTES];
    uint8_t above[ROUND_BYTES];
} small __attribute__((aligned(64)));
static ucontext_t coroutine, caller;
static int on_small_stack;

static void wait_there(int number) {
    (void)number;
    on_small_stack = by_nanosleep();
}

static void wait_in_coroutine(void) {
    on_small_stack = by_nanosleep();
}

static void fill_small(void) {
    memset(&small, FILLED, sizeof(small));
    on_small_stack = -2;
}

/* What the wait answered; -3: somebody has written where no stack is. */
static int judge_small(size_t stack_bytes) {
    for (size_t i = 0; i < sizeof(small); i++) {
        const bool is_stack = i >= ROUND_BYTES && i < ROUND_BYTES + stack_bytes;
        if (!is_stack && ((const uint8_t *)&small)[i] != FILLED) {
            return -3;
        }
    }
    return on_small_stack;
}

static int by_signal_stack(void) {
    const stack_t stack = {
        .ss_sp = small.stack, .ss_size = (size_t)getauxval(AT_MINSIGSTKSZ) + HANDLER_BYTES};
    stack_t before;
    struct sigaction action = {.sa_flags = SA_ONSTACK};
    action.sa_handler = wait_there;
    fill_small();
    (void)sigaction(SIGHUP, &action, NULL);
    (void)sigaltstack(&stack, &before);
    (void)raise(SIGHUP);
    (void)sigaltstack(&before, NULL);
    return judge_small(stack.ss_size);
}

/* Too small for any signal: the program gets none. */
static int by_coroutine(void) {
    fill_small();
    (void)getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = small.stack;
    coroutine.uc_stack.ss_size = COROUTINE_BYTES;
    coroutine.uc_link = &caller;
    makecontext(&coroutine, wait_in_coroutine, 0);
    (void)swapcontext(&caller, &coroutine);
    return judge_small(COROUTINE_BYTES);
}

/* ---- waits without one: a child says when they end */

static int in_poll(void) {
    struct pollfd one = {.fd = pipe_fds[0], .events = POLLIN};
    char byte;
    return poll(&one, 1, -1) == 1 && read(pipe_fds[0], &byte, 1) == 1 ? 0 : errno;
}

static int in_epoll(void) {
    struct epoll_event event;
    char byte;
    return epoll_wait(epoll_fd, &event, 1, -1) == 1 && read(pipe_fds[0], &byte, 1) == 1 ? 0 : errno;
}

static int in_read(void) {
    char byte;
    return read(pipe_fds[0], &byte, 1) == 1 ? 0 : errno;
}

static int in_sigwaitinfo(void) {
    return sigwaitinfo(&usr2, NULL) == SIGUSR2 ? 0 : errno;
}

static int in_msgrcv(void) {
    struct {
        long type;
        char byte;
    } message;
    return msgrcv(queue_id, &message, 1, 0, 0) == 1 ? 0 : errno;
}

static int in_semop(void) {
    struct sembuf operation = {.sem_num = 0, .sem_op = -1};
    return semop(set_id, &operation, 1) == 0 ? 0 : errno;
}

static void end_wait(pid_t parent) {
    const struct {
        long type;
        char byte;
    } message = {.type = 1, .byte = 'x'};
    struct sembuf operation = {.sem_num = 0, .sem_op = 1};
    (void)!write(pipe_fds[1], "x", 1);
    (void)kill(parent, SIGUSR2);
    (void)msgsnd(queue_id, &message, 1, 0);
    (void)semop(set_id, &operation, 1);
}

/* ---- registers */

#define XMM(n) "movdqu " #n "*16(%%rsi), %%xmm" #n "\n\t"
#define BACK(n) "movdqu %%xmm" #n ", " #n "*16(%%rdi)\n\t"
#define YMM(n) "vmovdqu " #n "*32(%%rsi), %%ymm" #n "\n\t"
#define YBACK(n) "vmovdqu %%ymm" #n ", " #n "*32(%%rdi)\n\t"
#define ALL(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) f(13) f(14) f(15)
#define SPIN "1: subq $1, %%rcx\n\tjnz 1b\n\t"

/* Values in all registers, and a loop that touches none of them but one. */
static bool keeps_registers(uint64_t round) {
    static uint8_t in[512] __attribute__((aligned(64)));
    static uint8_t out[512] __attribute__((aligned(64)));
    const bool has_avx = __builtin_cpu_supports("avx") != 0;
    const size_t bytes = has_avx ? 512 : 256;
    uint64_t general[6] = {0};
    double old_stack = 0;
    uint32_t control = 0;
    const uint32_t wanted_control = 0x1f80u | (uint32_t)(round % 4) << 13;
    uint32_t usual_control = 0x1f80;
    for (size_t i = 0; i < sizeof(in); i++) {
        in[i] = (uint8_t)(i * 7 + round);
    }
    const double given = (double)round + 0.25;
    __asm__ volatile("ldmxcsr %0" : : "m"(wanted_control));
    __asm__ volatile(
        "fldl %[given]\n\tfldpi\n\tfldl2e\n\t"
        "movq $0x1234567, %%r8\n\tmovq %%r8, %%r9\n\taddq $1, %%r9\n\tmovq %%r9, %%r10\n\taddq $1, "
        "%%r10\n\t"
        "movq %%r10, %%r11\n\taddq $1, %%r11\n\tmovq %%r11, %%r12\n\taddq $1, %%r12\n\tmovq %%r12, "
        "%%r13\n\taddq $1, %%r13\n\t"
        "testl %[avx], %[avx]\n\tjz 2f\n\t" ALL(YMM) "jmp 3f\n\t2: " ALL(XMM
        ) "3: " SPIN "testl %[avx], %[avx]\n\tjz 4f\n\t" ALL(YBACK) "jmp 5f\n\t4: " ALL(BACK
        ) "5: "
          "movq %%r8, (%[general])\n\tmovq %%r9, 8(%[general])\n\tmovq %%r10, 16(%[general])\n\t"
          "movq %%r11, 24(%[general])\n\tmovq %%r12, 32(%[general])\n\tmovq %%r13, "
          "40(%[general])\n\t"
          "fstp %%st(0)\n\tfstp %%st(0)\n\tfstpl %[old]\n\tstmxcsr %[control]\n\t"
        : [old] "=m"(old_stack), [control] "=m"(control)
        : [given] "m"(given),
          [avx] "r"((int)has_avx),
          [general] "r"(general),
          "S"(in),
          "D"(out),
          "c"((uint64_t)20000000)
        : "r8",
          "r9",
          "r10",
          "r11",
          "r12",
          "r13",
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
          "st",
          "st(1)",
          "st(2)",
          "st(3)",
          "st(4)",
          "st(5)",
          "st(6)",
          "st(7)"
    );
    __asm__ volatile("ldmxcsr %0" : : "m"(usual_control));
    bool same = memcmp(in, out, bytes) == 0 && old_stack == given &&
                (control & 0x6000u) == (wanted_control & 0x6000u);
    for (uint64_t i = 0; i < 6; i++) {
        same = same && general[i] == 0x1234567 + i;
    }
    return same;
}

/* An allocation that goes well leaves errno alone. */
static bool keeps_errno(void) {
    errno = 4711;
    for (uint32_t i = 0; i < 200000; i++) {
        void *address = malloc(i % 3000 + 1);
        ((volatile char *)address)[0] = 1;
        free(address);
    }
    return errno == 4711;
}

static const struct row {
    const char *name;
    int (*wait)(void);
    bool has_limit;
} rows[] = {
    {"poll", by_poll, true},
    {"epoll_wait", by_epoll, true},
    {"select", by_select, true},
    {"nanosleep", by_nanosleep, true},
    {"clock_nanosleep", by_clock, true},
    {"futex", by_futex, true},
    {"pthread_cond_timedwait", by_condition, true},
    {"sigtimedwait", by_sigtimedwait, true},
    {"semtimedop", by_semaphore, true},
    {"recv", by_receive, true},
    {"io_getevents", by_aio, true},
    {"read", by_read, true},
    {"readv", by_readv, true},
    {"recvmmsg", by_recvmmsg, true},
    {"write", by_write, true},
    {"on a signal stack", by_signal_stack, true},
    {"in a coroutine", by_coroutine, true},
    {"endless poll", in_poll, false},
    {"endless epoll_wait", in_epoll, false},
    {"endless read", in_read, false},
    {"endless sigwaitinfo", in_sigwaitinfo, false},
    {"endless msgrcv", in_msgrcv, false},
    {"endless semop", in_semop, false},
};

/* ---- all of it */

static void prepare(void) {
    const struct timeval receive_limit = {.tv_sec = 1, .tv_usec = 500000};
    struct epoll_event event = {.events = EPOLLIN};
    (void)!pipe(pipe_fds);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    (void)epoll_ctl(epoll_fd, EPOLL_CTL_ADD, pipe_fds[0], &event);
    (void)!socketpair(AF_UNIX, SOCK_STREAM, 0, pair_fds);
    (void)setsockopt(pair_fds[0], SOL_SOCKET, SO_RCVTIMEO, &receive_limit, sizeof(receive_limit));
    (void)syscall(SYS_io_setup, 1, &aio_context);
    (void)!socketpair(AF_UNIX, SOCK_STREAM, 0, full_fds);
    (void)setsockopt(full_fds[0], SOL_SOCKET, SO_SNDTIMEO, &receive_limit, sizeof(receive_limit));
    queue_id = msgget(IPC_PRIVATE, 0600);
    set_id = semget(IPC_PRIVATE, 1, 0600);
    (void)sigemptyset(&usr2);
    (void)sigaddset(&usr2, SIGUSR2);
    (void)sigaddset(&usr2, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &usr2, NULL);
    (void)sigdelset(&usr2, SIGUSR1);
}

struct seen {
    uint32_t rounds, wrong, interrupted;
    uint64_t shortest_ms, longest_ms;
};

static void see_wait(const struct row *row, struct seen *seen) {
    const pid_t parent = getpid();
    const pid_t child = row->has_limit ? 0 : fork();
    if (!row->has_limit && child == 0) {
        (void)nanosleep(&limit, NULL);
        end_wait(parent);
        _exit(0);
    }
    const uint64_t since_ms = now_ms();
    const int result = row->wait();
    const uint64_t took_ms = now_ms() - since_ms;
    seen->rounds++;
    seen->interrupted += result == EINTR;
    seen->wrong += result != 0;
    seen->shortest_ms = took_ms < seen->shortest_ms ? took_ms : seen->shortest_ms;
    seen->longest_ms = took_ms > seen->longest_ms ? took_ms : seen->longest_ms;
    if (child > 0) {
        int status = 0;
        struct {
            long type;
            char byte;
        } message;
        struct sembuf operation = {.sem_num = 0, .sem_op = -1, .sem_flg = IPC_NOWAIT};
        const struct timespec soon = {.tv_sec = 0};
        char byte;
        struct pollfd one = {.fd = pipe_fds[0], .events = POLLIN};
        (void)waitpid(child, &status, 0);
        /* What the other kinds would have been ended by. */
        while (poll(&one, 1, 0) == 1 && read(pipe_fds[0], &byte, 1) == 1) {
        }
        (void)sigtimedwait(&usr2, NULL, &soon);
        (void)msgrcv(queue_id, &message, 1, 0, IPC_NOWAIT);
        (void)semop(set_id, &operation, 1);
    }
}

int main(int count, char **words) {
    static uint8_t signal_stack[65536];
    const stack_t given = {.ss_sp = signal_stack, .ss_size = sizeof(signal_stack)};
    const struct row *row = NULL;
    struct seen seen = {.shortest_ms = UINT64_MAX};
    if (count < 3) {
        return 2;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        row = strcmp(words[1], rows[i].name) == 0 ? &rows[i] : row;
    }
    prepare();
    (void)sigaltstack(&given, NULL);
    (void)nanosleep(&(const struct timespec){.tv_nsec = 1}, NULL); /* bind it: that takes stack */
    (void)!write(1, "ready\n", 6);
    while (access(words[2], F_OK) != 0) {
        if (row != NULL) {
            see_wait(row, &seen);
        } else {
            seen.rounds++;
            seen.wrong +=
                strcmp(words[1], "errno") == 0 ? !keeps_errno() : !keeps_registers(seen.rounds);
        }
    }
    sigset_t mask;
    sigset_t wanted = usr2;
    stack_t now;
    (void)sigaddset(&wanted, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, NULL, &mask);
    (void)sigaltstack(NULL, &now);
    bool same_mask = true;
    for (int number = 1; number < 64; number++) {
        same_mask = same_mask && sigismember(&mask, number) == sigismember(&wanted, number);
    }
    (void)printf(
        "{\"rounds\": %u, \"wrong\": %u, \"interrupted\": %u, \"shortest_ms\": %llu, "
        "\"longest_ms\": %llu, "
        "\"mask\": %s, \"signal_stack\": %s}\n",
        seen.rounds,
        seen.wrong,
        seen.interrupted,
        (unsigned long long)seen.shortest_ms,
        (unsigned long long)seen.longest_ms,
        same_mask ? "true" : "false",
        now.ss_sp == given.ss_sp && now.ss_size == given.ss_size && now.ss_flags == given.ss_flags
            ? "true"
            : "false"
    );
    (void)msgctl(queue_id, IPC_RMID, NULL);
    (void)semctl(set_id, 0, IPC_RMID);
    return 3;
}
