/* Forks with live blocks, then both sides go separate ways: fork.c
 * [fork|deep|_Fork|syscall|clone|inline]. _Fork: the one that runs no handlers; syscall: the clone
 * system call by libc's syscall(); clone: libc's clone() onto a stack of its own; inline: the bare
 * instruction, which nobody can see. Each process writes its truth as "end". */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/oracle/ledger.h"

enum { SHARED_BLOCKS = 300 };

static void *shared[SHARED_BLOCKS];
static int main_argc;
static char **main_argv;

int main(int argc, char *argv[]);
LEDGER_PATH void grow_shared(void);
LEDGER_PATH void child_grow(unsigned count);
LEDGER_PATH void child_life(unsigned generations);
LEDGER_PATH int cloned_life(void *unused);
LEDGER_PATH void parent_grow(void);

LEDGER_PATH void grow_shared(void) {
    static struct ledger_site site = {.chain = "grow_shared<main"};
    for (size_t i = 0; i < SHARED_BLOCKS; i++) {
        shared[i] = ledger_alloc(&site, malloc(100 + i), 100 + i);
    }
}

static pid_t fork_inline(void) {
    long answer = SYS_clone;
    register long fourth __asm__("r10") = 0;
    register long fifth __asm__("r8") = 0;
    __asm__ volatile("syscall"
                     : "+a"(answer)
                     : "D"((long)SIGCHLD), "S"(0L), "d"(0L), "r"(fourth), "r"(fifth)
                     : "rcx", "r11", "memory");
    return (pid_t)answer;
}

static pid_t fork_by(const char *way) {
    if (strcmp(way, "syscall") == 0) {
        return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    }
    if (strcmp(way, "inline") == 0) {
        return fork_inline();
    }
    return strcmp(way, "_Fork") == 0 ? _Fork() : fork();
}

LEDGER_PATH void child_grow(unsigned count) {
    static struct ledger_site made = {.chain = "child_grow<child_life<main"};
    static struct ledger_site resized = {.chain = "child_grow<child_life<main"};
    for (unsigned i = 0; i < count; i++) {
        ledger_alloc(&made, malloc(1000 + i), 1000 + i);
    }
    /* Inherited blocks: some freed, some resized (own from then on), some left. */
    for (size_t i = 0; i < SHARED_BLOCKS; i += 3) {
        ledger_free(shared[i]);
        free(shared[i]);
        shared[i + 1] = ledger_resize(&resized, shared[i + 1], realloc(shared[i + 1], 5000), 5000);
        shared[i] = ledger_alloc(&made, malloc(10), 10);
    }
}

/* A child, and its own child in turn; returns as main does. */
LEDGER_PATH void child_life(unsigned generations) {
    ledger_forked();
    child_grow(50 + generations);
    if (generations > 0) {
        pid_t child = fork_by(main_argv[1]);
        if (child == 0) {
            ledger_forked();
            static struct ledger_site site = {.chain = "child_life<main"};
            ledger_alloc(&site, malloc(4242), 4242);
            ledger_write("end", LEDGER_EXACT | LEDGER_PEAK, main_argc, main_argv);
            _exit(5);
        }
        int status = 0;
        waitpid(child, &status, 0);
    }
    unsigned flags = LEDGER_EXACT | LEDGER_PEAK;
    /* Nobody sees the moment of a bare instruction: the parent may have gone on before the child's
     * first event. */
    if (strcmp(main_argv[1], "inline") != 0) {
        flags |= LEDGER_FORKED;
    }
    ledger_write("end", flags, main_argc, main_argv);
}

/* On the stack that clone() was given, without main. */
LEDGER_PATH int cloned_life(void *unused) {
    static struct ledger_site made = {.chain = "cloned_life"};
    (void)unused;
    ledger_forked();
    for (size_t i = 0; i < SHARED_BLOCKS; i += 2) {
        ledger_free(shared[i]);
        free(shared[i]);
        ledger_alloc(&made, malloc(77), 77);
    }
    ledger_write("end", LEDGER_EXACT | LEDGER_PEAK | LEDGER_FORKED, main_argc, main_argv);
    return 3;
}

static pid_t start_child(const char *way) {
    if (strcmp(way, "clone") == 0) {
        static _Alignas(16) char stack[256 * 1024];
        return clone(cloned_life, stack + sizeof(stack), SIGCHLD, NULL);
    }
    return fork_by(way);
}

LEDGER_PATH void parent_grow(void) {
    static struct ledger_site site = {.chain = "parent_grow<main"};
    for (size_t i = 0; i < SHARED_BLOCKS; i += 2) {
        ledger_free(shared[i]);
        free(shared[i]);
        shared[i] = ledger_alloc(&site, malloc(2 * i + 1), 2 * i + 1);
    }
}

int main(int argc, char *argv[]) {
    main_argc = argc;
    main_argv = argv;
    if (argc < 2) {
        ledger_die("fork fork|deep|_Fork|syscall|clone|inline");
    }
    const char *way = argv[1];
    grow_shared();
    pid_t child = start_child(way);
    if (child == 0) {
        child_life(strcmp(way, "deep") == 0 ? 1 : 0);
        _exit(3);
    }
    parent_grow();
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 3) {
        ledger_die("the child did not end as it should");
    }
    parent_grow();
    ledger_write("end", LEDGER_EXACT | LEDGER_PEAK, argc, argv);
    return 0;
}
