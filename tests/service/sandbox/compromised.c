/* The service as an attacker would have it: inside the real sandbox, and then it tries things.
 *
 *   compromised [--user] [--container] [--without-unshare] [--level=auto|strict|none]
 * [--layers=BITS] [--worker] ATTACK
 *
 * --worker: the one that was taken over is a thread that was made on the way in.
 *
 * Exit code 0: the attack worked. 1: refused with an errno. 2: wrong usage. 3: the sandbox refused
 * to be entered. Killed by SIGSYS: the filter. What is missing of the sandbox goes to stdout. */
#include <ev.h>
#include <grp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/sandbox/sandbox.h"
#include "service/workers/workers.h"
#include "tests/service/container.h"
#include "tests/service/sandbox/attacks.h"

enum { WORKED = 0, REFUSED = 1, USAGE = 2, NOT_ENTERED = 3, NOBODY = 65534 };

static int become_user(void) {
    return setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
                   setresuid(NOBODY, NOBODY, NOBODY) == 0
               ? 0
               : -1;
}

static int attack(const char *name, pid_t host_pid) {
    switch (attack_try(name, host_pid)) {
    case ATTACK_WORKED:
        return WORKED;
    case ATTACK_REFUSED:
        return REFUSED;
    default:
        return USAGE;
    }
}

struct taking_over {
    const char *attack;
    pid_t host_pid;
    atomic_bool done;
    int answer;
};

/* The attack is the worker's; the other one waits for it. */
static void take_over(void *context, uint32_t item, unsigned worker) {
    struct taking_over *over = context;
    (void)item;
    if (worker == 0) {
        while (!atomic_load(&over->done)) {
        }
        return;
    }
    over->answer = attack(over->attack, over->host_pid);
    atomic_store(&over->done, true);
}

static void make_workers(void *context) {
    struct ml_workers **workers = context;
    *workers = ml_workers_new(2);
}

int main(int argc, char **argv) {
    struct ml_workers *workers = NULL;
    struct ml_sandbox_options options = {.context = &workers};
    bool by_worker = false;
    const char *name = "";
    const pid_t host_pid = getppid(); /* asked before the sandbox is up */
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--user") == 0) {
            if (become_user() != 0) {
                return USAGE;
            }
        } else if (strcmp(argv[i], "--container") == 0) {
            if (container_enter() != 0) {
                return USAGE;
            }
        } else if (strcmp(argv[i], "--without-unshare") == 0) {
            if (container_enter_without_unshare() != 0) {
                return USAGE;
            }
        } else if (strncmp(argv[i], "--level=", 8) == 0) {
            if (ml_sandbox_level_parse(argv[i] + 8, &options.level) != ML_OK) {
                return USAGE;
            }
        } else if (strncmp(argv[i], "--layers=", 9) == 0) {
            options.left_out_layers = ~(uint32_t)strtoul(argv[i] + 9, NULL, 0);
        } else if (strcmp(argv[i], "--worker") == 0) {
            by_worker = true;
            options.make_threads = make_workers;
        } else {
            name = argv[i];
        }
    }
    /* As in service/main.c: the loop is there before the sandbox is. */
    struct ev_loop *loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    struct ml_sandbox_report report;
    const enum ml_status status = ml_sandbox_enter(&options, &report);
    const ssize_t written = write(STDOUT_FILENO, report.missing, strlen(report.missing));
    if (status != ML_OK || loop == NULL || written < 0 ||
        ml_workers_count(workers) != (by_worker ? 2 : 1)) {
        _exit(NOT_ENTERED);
    }
    if (by_worker) {
        struct taking_over over = {.attack = name, .host_pid = host_pid, .answer = USAGE};
        ml_workers_run(workers, take_over, &over, 2);
        _exit(over.answer);
    }
    _exit(attack(name, host_pid));
}
