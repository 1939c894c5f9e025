/* A vfork child writes into its parent's heap, then becomes another program: vfork.c
 * [vfork|clone|spawn]. The parent's truth holds what the child allocated. Writes "end". */
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/oracle/ledger.h"

int main(int argc, char *argv[]);
LEDGER_PATH void before(void);
LEDGER_PATH void in_child(void);
LEDGER_PATH void after(void);
LEDGER_PATH int clone_life(void *program);
LEDGER_PATH void vfork_and_exec(char *program);
LEDGER_PATH void clone_and_exec(char *program);

static void *passed_on;
static pid_t child;

LEDGER_PATH void before(void) {
    static struct ledger_site site = {.chain = "before<main"};
    passed_on = ledger_alloc(&site, malloc(1111), 1111);
}

LEDGER_PATH void in_child(void) {
    static struct ledger_site under_vfork = {.chain = "in_child<vfork_and_exec<main"};
    static struct ledger_site under_clone = {.chain = "in_child<clone_life"};
    struct ledger_site *site = child == -2 ? &under_clone : &under_vfork;
    ledger_free(passed_on);
    free(passed_on);
    passed_on = ledger_alloc(site, malloc(2222), 2222);
    ledger_alloc(site, malloc(333), 333);
}

LEDGER_PATH void after(void) {
    static struct ledger_site site = {.chain = "after<main"};
    ledger_free(passed_on);
    free(passed_on);
    ledger_alloc(&site, malloc(44), 44);
}

static void become(char *program) {
    char *words[] = {program, NULL};
    execve(program, words, environ);
    _exit(127);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
LEDGER_PATH void vfork_and_exec(char *program) {
    child = -1;
    pid_t answer = vfork();
    if (answer == 0) {
        in_child();
        become(program);
    }
    child = answer;
}
#pragma GCC diagnostic pop

LEDGER_PATH int clone_life(void *program) {
    in_child();
    become(program);
    return 1;
}

LEDGER_PATH void clone_and_exec(char *program) {
    static _Alignas(16) char stack[256 * 1024];
    child = -2;
    child = clone(clone_life, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, program);
}

int main(int argc, char *argv[]) {
    const char *way = argc > 1 ? argv[1] : "vfork";
    char *program = argc > 2 ? argv[2] : (char *)(uintptr_t) "/bin/true";
    before();
    if (strcmp(way, "clone") == 0) {
        clone_and_exec(program);
    } else if (strcmp(way, "spawn") == 0) {
        char *words[] = {program, NULL};
        if (posix_spawn(&child, program, NULL, NULL, words, environ) != 0) {
            ledger_die("posix_spawn failed");
        }
    } else {
        vfork_and_exec(program);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) {
        ledger_die("the child did not end as it should");
    }
    after();
    ledger_write("end", LEDGER_EXACT | LEDGER_PEAK, argc, argv);
    return 0;
}
