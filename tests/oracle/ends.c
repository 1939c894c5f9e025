/* How a process can end, with everything it did until then on the books: ends.c
 * abort|segv|_exit|exit|return|raise|exec|killed. exec: becomes itself as `ends exec2`, which
 * writes "end2". killed: writes its truth as "marker", then goes on elsewhere until it is killed.
 * The others write "end" as the last thing they do. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/oracle/ledger.h"

/* Unmapped, and unknown to the compiler. */
static volatile int *volatile nowhere;

int main(int argc, char *argv[]);
LEDGER_PATH void live(size_t blocks);
LEDGER_PATH void second_life(void);
LEDGER_PATH void *after_marker(void *argument);

LEDGER_PATH void live(size_t count) {
    static struct ledger_site kept = {.chain = "live<main"};
    for (size_t i = 0; i < count; i++) {
        void *block = ledger_alloc(&kept, malloc(17 + i % 333), 17 + i % 333);
        if (i % 3) {
            ledger_free(block);
            free(block);
        }
    }
}

LEDGER_PATH void second_life(void) {
    static struct ledger_site site = {.chain = "second_life<main"};
    for (size_t i = 0; i < 10; i++) {
        ledger_alloc(&site, calloc(1, 5000), 5000);
    }
}

/* No end: whatever is on its way when the signal comes may be cut, but nothing of before the
 * marker. */
LEDGER_PATH void *after_marker(void *argument) {
    void *blocks[64] = {0};
    for (size_t i = 0;; i++) {
        free(blocks[i % 64]);
        blocks[i % 64] = malloc(32 + i % 500);
    }
    return argument;
}

__attribute__((no_sanitize("undefined"))) static void crash(void) {
    *nowhere = 1;
}

int main(int argc, char *argv[]) {
    const char *way = argc > 1 ? argv[1] : "return";
    unsigned flags = LEDGER_EXACT | LEDGER_PEAK;
    /* A crash is what is tested: no core file. */
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (strcmp(way, "exec2") == 0) {
        second_life();
        ledger_write("end2", flags, argc, argv);
        return 9;
    }
    live(1000);
    if (strcmp(way, "killed") == 0) {
        ledger_write("marker", LEDGER_PARTIAL, argc, argv);
        pthread_t thread;
        if (pthread_create(&thread, NULL, after_marker, NULL) != 0) {
            ledger_die("pthread_create failed");
        }
        after_marker(NULL);
    }
    ledger_write("end", flags, argc, argv);
    if (strcmp(way, "exec") == 0) {
        char *words[] = {argv[0], (char *)(uintptr_t) "exec2", NULL};
        execv("/proc/self/exe", words);
        ledger_die("exec failed");
    }
    if (strcmp(way, "abort") == 0) {
        abort();
    }
    if (strcmp(way, "segv") == 0) {
        crash();
    }
    if (strcmp(way, "_exit") == 0) {
        _exit(11);
    }
    if (strcmp(way, "raw") == 0) {
        syscall(SYS_exit_group, 13);
    }
    if (strcmp(way, "raise") == 0) {
        raise(SIGTERM);
    }
    if (strcmp(way, "exit") == 0) {
        exit(12);
    }
    return 10;
}
