#include "tests/browser/mini_browser.h"

#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAMED __attribute__((noipa, visibility("default")))

enum { UTILITIES = 2, RENDERERS = 3 };

/* Each kind's own size. */
enum {
    BROWSER_BYTES = 1001,
    GPU_BYTES = 1002,
    UTILITY_BYTES = 1003,
    ZYGOTE_BYTES = 1004,
    RENDERER_BYTES = 1005
};

NAMED void work_browser(void);
NAMED void work_gpu(void);
NAMED void work_utility(void);
NAMED void work_zygote(void);
NAMED void work_renderer(int count);

/* What is made stays: it is what the profile must show. */
static void *kept[MINI_BROWSER_BLOCKS];

NAMED void work_browser(void) {
    for (int i = 0; i < MINI_BROWSER_BLOCKS; i++) {
        kept[i] = malloc(BROWSER_BYTES);
    }
}

NAMED void work_gpu(void) {
    for (int i = 0; i < MINI_BROWSER_BLOCKS; i++) {
        kept[i] = malloc(GPU_BYTES);
    }
}

NAMED void work_utility(void) {
    for (int i = 0; i < MINI_BROWSER_BLOCKS; i++) {
        kept[i] = malloc(UTILITY_BYTES);
    }
}

NAMED void work_zygote(void) {
    for (int i = 0; i < MINI_BROWSER_BLOCKS; i++) {
        kept[i] = malloc(ZYGOTE_BYTES);
    }
}

NAMED void work_renderer(int count) {
    for (int i = 0; i < count; i++) {
        kept[i] = malloc(RENDERER_BYTES);
    }
}

static pid_t spawn(char *self, const char *type) {
    pid_t child = fork();
    if (child == 0) {
        char *words[] = {self, (char *)(size_t)type, NULL};
        execv("/proc/self/exe", words);
        _exit(127);
    }
    return child;
}

/* 0 when all children of this process ended with 0. */
static int wait_for_all(void) {
    int status = 0, worst = 0;
    while (wait(&status) > 0) {
        if (status != 0) {
            worst = 1;
        }
    }
    return worst;
}

/* A renderer's filter: it may compute and talk over what it holds; no files, sockets, processes. */
static int enter_seccomp(void) {
    static const char *const permitted[] = {
        "read",         "write",       "writev",       "pwritev2",
        "fstat",        "newfstatat",  "poll",         "ppoll",
        "mmap",         "munmap",      "mremap",       "mprotect",
        "madvise",      "brk",         "futex",        "exit",
        "exit_group",   "getpid",      "gettid",       "clock_gettime",
        "rt_sigaction", "getrandom",   "rt_sigreturn", "rt_sigprocmask",
        "sigaltstack",  "sched_yield",
    };
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    int failed = filter == NULL;
    for (size_t i = 0; i < sizeof(permitted) / sizeof(permitted[0]) && !failed; i++) {
        failed =
            seccomp_rule_add(filter, SCMP_ACT_ALLOW, seccomp_syscall_resolve_name(permitted[i]), 0);
    }
    failed = failed || seccomp_load(filter);
    seccomp_release(filter);
    return failed;
}

/* Forked, never exec'ed: the title is all that tells. Does its first allocation before the sandbox
 * closes, as browsers do. */
static int renderer_life(char *title) {
    memcpy(title, "--type=renderer", sizeof("--type=renderer") - 1);
    work_renderer(1);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || enter_seccomp() != 0) {
        return 1;
    }
    work_renderer(MINI_BROWSER_BLOCKS - 1);
    return 0;
}

/* Namespaces and an empty root where the kernel permits them; where it does not, the rest is still
 * tried. */
static int zygote_life(char *title) {
    work_zygote();
    int has_spaces =
        unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC) == 0;
    pid_t first = fork();
    if (first != 0) {
        return wait_for_all();
    }
    if (has_spaces && (chroot("/proc/self/fdinfo") != 0 || chdir("/") != 0)) {
        _exit(2);
    }
    for (int i = 0; i < RENDERERS; i++) {
        if (fork() == 0) {
            _exit(renderer_life(title));
        }
    }
    _exit(wait_for_all());
}

static int browser_life(char *self) {
    spawn(self, "--type=gpu");
    for (int i = 0; i < UTILITIES; i++) {
        spawn(self, "--type=utility");
    }
    spawn(self, "--type=zygote  "); /* as long as --type=renderer, which is written over it */
    work_browser();
    return wait_for_all();
}

int mini_browser_life(int argc, char *argv[]) {
    const char *type = argc > 1 ? argv[1] : "";
    if (strcmp(type, "--type=gpu") == 0) {
        work_gpu();
        return 0;
    }
    if (strcmp(type, "--type=utility") == 0) {
        work_utility();
        return 0;
    }
    if (strncmp(type, "--type=zygote", 13) == 0) {
        return zygote_life(argv[1]);
    }
    return browser_life(argv[0]);
}
