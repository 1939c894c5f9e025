/* Threads that fork all the time: children that allocate and end, that execute this program, by
 * fork, vfork and posix_spawn. Each must end with its number.
 *
 *   forks             the parent
 *   forks child N     a child that was executed */
#include "tests/oracle/steady/steady.h"

#include <errno.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { THREADS = 4, CODES = 200, EXECUTES_EACH = 16 };
static const char *self;
static _Atomic uint32_t ended;

static int work(uint64_t seed) {
    for (uint64_t i = 0; i < 20; i++) {
        if (!steady_blocks(seed + i)) {
            return 255;
        }
    }
    return (int)(seed % CODES);
}

static pid_t make(uint64_t turn) {
    char number[32];
    char child_word[] = "child";
    char *words[] = {(char *)(uintptr_t)self, child_word, number, NULL};
    pid_t child = -1;
    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)turn);
    switch (turn % EXECUTES_EACH) {
    case 0:
        return posix_spawn(&child, self, NULL, NULL, words, environ) == 0 ? child : -1;
    case 1:
        child = vfork();
        break;
    default:
        child = fork();
    }
    if (child == 0) {
        if (turn % EXECUTES_EACH < 3) {
            (void)execve(self, words, environ);
            _exit(254);
        }
        _exit(work(turn));
    }
    return child;
}

static void *run(void *argument) {
    uint64_t random = (uint64_t)(uintptr_t)argument * 7919 + 1;
    while (!steady_is_over()) {
        int status = 0;
        const uint64_t turn = steady_next(&random);
        const pid_t child = make(turn);
        steady_count(steady_blocks(turn), "the parent's blocks", 0);
        if (child < 0) {
            steady_count(false, "fork", errno);
            continue;
        }
        if (waitpid(child, &status, 0) != child) {
            steady_count(false, "waitpid", errno);
            continue;
        }
        steady_count(
            WIFEXITED(status) && WEXITSTATUS(status) == (int)(turn % CODES),
            turn % EXECUTES_EACH < 3 ? "the status of one that was executed" : "a child's status",
            status
        );
        steady_sleep_us(3000);
    }
    atomic_fetch_add(&ended, 1);
    return NULL;
}

int main(int count, char **words) {
    self = "/proc/self/exe";
    if (count > 2 && strcmp(words[1], "child") == 0) {
        return work(strtoull(words[2], NULL, 10));
    }
    for (uintptr_t i = 0; i < THREADS; i++) {
        steady_thread(run, (void *)i);
    }
    steady_wait();
    while (atomic_load(&ended) < THREADS) {
        steady_sleep_us(1000);
    }
    return steady_end();
}
