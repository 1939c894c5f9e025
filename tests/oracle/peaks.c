/* Two processes that hold most at different times: the tree's peak is neither one's, and not the
 * sum of both. peaks.c PLAN [waits]. Every step is in the order that the pipes between them
 * enforce. With "waits" it says "ready", and begins when it has read a line. The plans:
 *
 * phases: A up to 32 MiB and down, B up to 24 MiB and down, then both at 20 + 18: the tree's peak.
 *
 * handover: one holds 1 MiB, frees it and hands on to the other, 1,000 times: 1 MiB is the peak,
 * never 2.
 *
 * bursts: the same, but every fourth time it is taken and freed over and over before it is handed
 * on.
 *
 * sequence: one child after another holds 8 MiB and ends without freeing: 8 MiB is the peak, and
 * all of it stays live.
 *
 * Each process writes its own truth as "end"; the tree's is in the test that reads it. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/oracle/ledger.h"

enum { MIB = 1 << 20, ROUNDS = 1000, BURST = 300, CHILDREN = 3 };

static int to_a[2], to_b[2];

int main(int argc, char *argv[]);
LEDGER_PATH void *phase_one(size_t size);
LEDGER_PATH void *phase_two(size_t size);
LEDGER_PATH void *phase_three(size_t size);
LEDGER_PATH void *take_turn(size_t size);

LEDGER_PATH void *phase_one(size_t size) {
    static struct ledger_site site = {.chain = "phase_one<main"};
    return ledger_alloc(&site, malloc(size), size);
}

LEDGER_PATH void *phase_two(size_t size) {
    static struct ledger_site site = {.chain = "phase_two<main"};
    return ledger_alloc(&site, malloc(size), size);
}

LEDGER_PATH void *phase_three(size_t size) {
    static struct ledger_site site = {.chain = "phase_three<main"};
    return ledger_alloc(&site, malloc(size), size);
}

LEDGER_PATH void *take_turn(size_t size) {
    static struct ledger_site site = {.chain = "take_turn<main"};
    return ledger_alloc(&site, malloc(size), size);
}

static void drop(void *block) {
    ledger_free(block);
    free(block);
}

static void pass_to(int fd) {
    if (write(fd, "x", 1) != 1) {
        ledger_die("cannot hand on");
    }
}

static void wait_on(int fd) {
    char byte;
    if (read(fd, &byte, 1) != 1) {
        ledger_die("the other one is gone");
    }
}

static pid_t fork_child(void) {
    pid_t child = fork();
    if (child < 0) {
        ledger_die("fork failed");
    }
    if (child == 0) {
        ledger_forked();
    }
    return child;
}

static void join(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) {
        ledger_die("a child did not end as it should");
    }
}

/* A test stops somebody before the rest happens. */
static void wait_for_go(void) {
    static const char ready[] = "ready\n";
    if (write(STDOUT_FILENO, ready, sizeof(ready) - 1) != sizeof(ready) - 1) {
        ledger_die("cannot say that it is ready");
    }
    wait_on(STDIN_FILENO);
}

/* LEDGER_PATH functions are called from main alone, so that their chains end there. */
int main(int argc, char *argv[]) {
    const char *plan = argc > 1 ? argv[1] : "phases";
    unsigned flags = LEDGER_EXACT | LEDGER_PEAK;
    if (pipe(to_a) != 0 || pipe(to_b) != 0) {
        ledger_die("pipe failed");
    }
    if (strcmp(plan, "sequence") == 0) {
        for (int i = 0; i < CHILDREN; i++) {
            pid_t child = fork_child();
            if (child == 0) {
                phase_one(8 * MIB);
                ledger_write("end", flags, argc, argv);
                _exit(0);
            }
            join(child);
        }
        ledger_write("end", flags, argc, argv);
        return 0;
    }

    if (argc > 2) {
        wait_for_go();
    }
    bool is_a = false;
    pid_t child = fork_child();
    is_a = child != 0;
    int mine = is_a ? to_a[0] : to_b[0];
    int other = is_a ? to_b[1] : to_a[1];
    const bool in_bursts = strcmp(plan, "bursts") == 0;
    if (in_bursts || strcmp(plan, "handover") == 0) {
        for (int i = 0; i < ROUNDS; i++) {
            if (!is_a || i > 0) {
                wait_on(mine);
            }
            for (int j = 0; j < (in_bursts && i % 4 == 0 ? BURST : 1); j++) {
                drop(take_turn(MIB));
            }
            pass_to(other);
        }
    } else if (is_a) {
        drop(phase_one(32 * MIB));
        pass_to(other);
        wait_on(mine);
        phase_three(20 * MIB);
        pass_to(other);
        wait_on(mine);
    } else {
        wait_on(mine);
        drop(phase_two(24 * MIB));
        pass_to(other);
        wait_on(mine);
        phase_three(18 * MIB);
        pass_to(other);
    }
    ledger_write("end", flags, argc, argv);
    if (child == 0) {
        _exit(0);
    }
    join(child);
    return 0;
}
