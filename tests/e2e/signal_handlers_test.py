"""Signal handlers that interrupt the allocator, not memlog: what they allocate is recorded, children that they fork are processes of the
tree, and what an allocator asks of itself is still counted once."""
import unittest

import as_bare

# An allocator that a signal may interrupt (it takes memory and never gives any back), and that has it raised inside malloc(777).
# With a large frame between, it calls itself by name: in calloc, over words that look like the frame of a signal handler that has ended.
ALLOCATOR = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
enum { ALL = 1 << 28 };
static _Atomic size_t used;
static char *base;
static void *take(size_t alignment, size_t size) {
    if (base == NULL) base = mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t need = (size + alignment + 31) & ~(size_t)15;
    size_t at = __atomic_fetch_add((size_t *)&used, need, __ATOMIC_RELAXED);
    if (size > ALL || at + need > ALL) { errno = ENOMEM; return NULL; }
    char *block = base + at + 16;
    block = (char *)(((uintptr_t)block + alignment - 1) & ~(uintptr_t)(alignment - 1));
    ((size_t *)block)[-1] = size;
    return block;
}
/* memlog's own processes have it, too, and threads of their own. */
static int is_program(void) { return strncmp(program_invocation_short_name, "memlog", 6) != 0; }
void *malloc(size_t size) {
    if (size == 777 && is_program()) syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
    return take(16, size);
}
void free(void *block) { if (block != NULL && ((size_t *)block)[-1] == 778 && is_program()) syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1); }
__attribute__((noipa)) static void *deep(volatile char *room, size_t size) { room[0] = 1; return malloc(size); }
__attribute__((noipa)) static void *over(size_t size) { volatile char room[20000]; room[1] = 2; return deep(room, size); }
__attribute__((noipa)) static void old_signal(int number) { volatile char room[8000]; for (int i = 0; i < 8000; i++) room[i] = 0; }
__attribute__((noipa)) static void leave_old_frames(void) {
    struct sigaction now = {.sa_handler = old_signal}, before;
    sigaction(SIGUSR2, &now, &before);
    syscall(SYS_tgkill, getpid(), gettid(), SIGUSR2);
    sigaction(SIGUSR2, &before, NULL);
}
void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) { errno = ENOMEM; return NULL; }
    if (bytes == 888 && is_program()) { leave_old_frames(); return over(bytes); }
    return take(16, bytes);
}
void *realloc(void *block, size_t size) {
    void *moved = take(16, size);
    if (block && moved) { size_t old = ((size_t *)block)[-1]; memcpy(moved, block, old < size ? old : size); }
    return moved;
}
void *memalign(size_t alignment, size_t size) { return take(alignment < 16 ? 16 : alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **out, size_t alignment, size_t size) { *out = memalign(alignment, size); return *out ? 0 : ENOMEM; }
"""

PROGRAM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept;
static volatile int ways, in_child, rounds;
static volatile long handled;
static const char *way;
static sigjmp_buf back;
__attribute__((noipa)) static void by_handler(void) { kept = malloc(555); __asm__ volatile(""); }
__attribute__((noipa)) static void by_child(void) { for (int i = 0; i < 20; i++) kept = malloc(666); __asm__ volatile(""); }
__attribute__((noipa)) static void in_main(void) { kept = malloc(333); __asm__ volatile(""); }
static void done(int code) { fflush(stdout); _exit(code); }
static pid_t make_child(void) {
    if (strcmp(way, "_Fork") == 0) return _Fork();
    if (strcmp(way, "syscall") == 0) return (pid_t)syscall(SYS_fork);
    if (strcmp(way, "clone") == 0) return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    return fork();
}
static void handler(int number) {
    handled++;
    if (strcmp(way, "allocates") == 0) { by_handler(); return; }
    if (strcmp(way, "frees") == 0) { void *block = malloc(10); free(block); return; }
    if (strcmp(way, "jumps") == 0) { by_handler(); siglongjmp(back, 1); }
    pid_t pid = make_child();
    if (pid < 0) done(9);
    if (pid > 0) return;
    in_child = 1;
    if (strcmp(way, "works") == 0) { by_child(); _exit(0); }
    if (strcmp(way, "jumps out") == 0) siglongjmp(back, 1);
}
int main(int count, char **words) {
    struct sigaction action = {.sa_handler = handler};
    stack_t other = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    way = words[1];
    rounds = atoi(words[2]);
    if (count > 3) { sigaltstack(&other, NULL); action.sa_flags = SA_ONSTACK; }
    sigaction(SIGUSR1, &action, NULL);
    for (volatile int i = 0; i < rounds; i++) {
        if (sigsetjmp(back, 1) == 0) {
            if (strcmp(way, "frees") == 0) { void *block = malloc(778); free(block); } else { kept = malloc(777); }
        }
        if (in_child) { by_child(); _exit(0); }
        in_main();
    }
    while (wait(NULL) > 0) {}
    for (int i = 0; i < rounds; i++) kept = calloc(1, 888);
    printf("%ld\n", handled);
    return 0;
}
"""

# The clock's signals, wherever they come: in the allocator, in memlog, in between.
BY_CLOCK = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept;
static volatile long handled, children;
static volatile int in_child;
static int forks;
__attribute__((noipa)) static void by_handler(void) { kept = malloc(555); __asm__ volatile(""); }
__attribute__((noipa)) static void by_child(void) { for (int i = 0; i < 20; i++) kept = malloc(666); __asm__ volatile(""); }
static void handler(int number) {
    if (in_child) return;
    by_handler();
    handled++;
    if (forks && handled % 10 == 0) {
        pid_t pid = fork();
        if (pid == 0) { in_child = 1; struct itimerval off = {0}; setitimer(ITIMER_REAL, &off, NULL); return; }
        children++;
    }
}
int main(int count, char **words) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval on = {{0, 300}, {0, 300}}, off = {0};
    forks = count > 1;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &on, NULL);
    while (handled < 600 && !in_child) {
        void *block = malloc(24 + (size_t)handled % 100);
        kept = block;
        free(block);
    }
    setitimer(ITIMER_REAL, &off, NULL);
    if (in_child) { by_child(); _exit(0); }
    for (int status; wait(&status) > 0;) {
        if (!WIFEXITED(status)) printf("a child died of signal %d\n", WTERMSIG(status));
    }
    fprintf(stderr, "%ld %ld\n", handled, children);
    return 0;
}
"""

ROUNDS = 30


def blocks_from(entry, function):
    return sum(
        stack["total_blocks"] for stack in entry["stacks"] if any(frame["function"] == function for frame in stack["frames"])
    )


class SignalHandlers(as_bare.Case):
    def setUp(self):
        super().setUp()
        self.environment_of_it = as_bare.preloaded(self, self.build("allocator.so", ALLOCATOR, "-shared", "-fPIC"))
        self.program = self.build("handles", PROGRAM)

    def play(self, *words):
        report = self.assert_as_bare(self.program, *map(str, words), env=self.environment_of_it)
        entries = self.entries(report, "handles")
        parents = [entry for entry in entries if blocks_from(entry, "in_main") == ROUNDS]
        self.assertEqual(len(parents), 1, entries)
        (parent,) = parents
        self.assertEqual(parent["lost_events"], 0, parent)
        self.assertTrue(parent["complete"], parent)
        # What the allocator asks of itself is one block, not two.
        own = sum(stack["total_blocks"] for stack in parent["stacks"] if stack["total_bytes"] == 888 * stack["total_blocks"])
        self.assertEqual(own, ROUNDS)
        return parent, [entry for entry in entries if entry is not parent]

    def test_what_a_handler_allocates_is_recorded(self):
        for more in ((), ("alternate stack",)):
            parent, others = self.play("allocates", ROUNDS, *more)
            self.assertEqual(others, [])
            self.assertEqual(blocks_from(parent, "by_handler"), ROUNDS)
            (stack,) = [stack for stack in parent["stacks"] if stack["frames"][0]["function"] == "by_handler"]
            functions = [frame["function"] for frame in stack["frames"]]
            self.assertIn("main", functions, "the stack goes on behind the signal")

    def test_what_a_handler_frees_is_recorded(self):
        parent, _ = self.play("frees", ROUNDS)
        self.assertEqual(parent["unknown_frees"], 0, parent)
        self.assertEqual(sum(stack["live_blocks"] for stack in parent["stacks"] if stack["total_bytes"] == 10 * stack["total_blocks"]), 0)

    def test_what_a_handler_allocates_that_jumps_out_is_recorded(self):
        parent, _ = self.play("jumps", ROUNDS)
        self.assertEqual(blocks_from(parent, "by_handler"), ROUNDS)

    def test_a_child_that_a_handler_forks_and_works_in_is_recorded(self):
        for way in ("works", "jumps out"):
            _, children = self.play(way, ROUNDS)
            self.assertEqual(len(children), ROUNDS)
            for child in children:
                self.assertEqual(blocks_from(child, "by_child"), 20)
                self.assertTrue(child["complete"], child)

    def test_a_child_that_goes_on_behind_the_handler_is_recorded(self):
        for way in ("fork", "_Fork", "syscall", "clone"):
            _, children = self.play(way, ROUNDS)
            self.assertEqual(len(children), ROUNDS, way)
            for child in children:
                self.assertEqual(blocks_from(child, "by_child"), 20, way)
                # The block that the interrupted malloc gives in the child too.
                self.assertEqual(child["lost_events"], 1, (way, child))
                self.assertEqual(child["accounting"]["dropped"]["nested"], 1, (way, child))

    def test_wherever_the_signal_comes(self):
        program = self.build("by_clock", BY_CLOCK)
        for words in ((), ("forks",)):
            run = self.memlog(program, *words, env=self.environment_of_it)
            self.assertEqual((run.code, run.out), (0, b""))
            handled, children = map(int, run.err.split())
            report = self.exit_report(run)
            entries = self.entries(report, "by_clock")
            self.assertEqual(len(entries), 1 + children)
            self.assertEqual(blocks_from(max(entries, key=lambda entry: entry["events"]), "by_handler"), handled)
            grown = [entry for entry in entries if blocks_from(entry, "by_child") == 20]
            self.assertEqual(len(grown), children)


if __name__ == "__main__":
    unittest.main(verbosity=2)
