/* system and popen start a shell with the program's environment inside libc, out of a hook's reach.
 * Room: client. Context: any thread; a thread that waits for a shell may be cancelled.
 *
 * One rule: during the call `environ` is a copy with our variables added, shared by all threads in
 * such a call. The last of them restores the original. Changes that another thread makes meanwhile
 * are kept, without our variables. Other threads may still read an old copy, so its memory is never
 * freed. Meanwhile other forks and starts get the program's own environment, and getenv reads that
 * too; only a direct read of `environ` finds the copy. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/startup/exec_preload.h"
#include "client/startup/lending.h"
#include "client/startup/libc.h"
#include "client/state/left.h"
#include "client/state/sys.h"
#include "client/state/visible.h"

enum {
    COPIES = 8, /* that take turns: far more than a reader is behind */
    PAGE_BYTES = 4096
};

struct copy {
    char *start;
    size_t bytes;
};

/* A lock: the pid of the process whose thread is at work here; 0: free. The pid identifies a lock
 * that a fork copied. */
static _Atomic uint32_t owner;
static struct {
    uint32_t pid;
    uint32_t users; /* threads in a call */
    int lent_fd;    /* of their shells; negative: none */
    char **before;
    char **preloaded;
    uint32_t turn;
    struct copy copies[COPIES];
} shared = {.lent_fd = ML_LENDING_NOT_NEEDED};

/* This thread is in a call. */
static __thread bool inside __attribute__((tls_model("initial-exec")));

/* No shell is being started any more, or not by this process. */
static void keep_connection(void) {
    if (shared.lent_fd >= 0) {
        ml_lending_to_shells(shared.lent_fd, false);
        shared.lent_fd = ML_LENDING_NOT_NEEDED;
    }
}

static void lock(void) {
    const uint32_t pid = (uint32_t)ml_sys0(SYS_getpid);
    uint32_t seen = 0;
    while (!atomic_compare_exchange_strong(&owner, &seen, pid)) {
        if (seen == pid) {
            (void)ml_sys0(SYS_sched_yield);
            seen = 0;
        }
    }
    if (shared.pid != pid) {
        if (shared.users > 0 && environ == shared.preloaded) {
            environ = shared.before;
        }
        keep_connection();
        shared.pid = pid;
        shared.users = 0;
    }
}

static void unlock(void) {
    atomic_store(&owner, 0);
}

/* Memory for a copy, never freed; NULL: there is none. */
static char *take_copy(size_t bytes) {
    struct copy *copy = &shared.copies[shared.turn++ % COPIES];
    if (copy->bytes < bytes) {
        const size_t wanted = (2 * bytes + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
        const long at = ml_sys6(
            SYS_mmap, 0, (long)wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0
        );
        if (at < 0 && at > -PAGE_BYTES) {
            return NULL;
        }
        *copy = (struct copy){.start = (char *)at, .bytes = wanted};
    }
    return copy->start;
}

/* The last call has returned: restore the original. If the program has changed the environment
 * meanwhile, remove our variables from that one, which may still use strings of the copy. */
static void put_back(void) {
    keep_connection();
    if (environ == shared.preloaded) {
        environ = shared.before;
    } else if (environ != NULL) {
        shared.copies[(shared.turn - 1) % COPIES] = (struct copy){.bytes = 0};
        (void)ml_exec_preload_take(environ);
    }
}

/* Whether the environment is a copy with ours now. */
static bool enter(void) {
    static const char shell[] = "/bin/sh";
    size_t entries = 0;
    size_t preload_bytes = 0;
    if (!ml_exec_preload_is_on() || !ml_exec_preload_program(AT_FDCWD, shell, 0)) {
        return false;
    }
    const int lent_fd = ml_exec_preload_lend(shell, true);
    if (lent_fd == ML_LENDING_IMPOSSIBLE) {
        return false;
    }
    lock();
    bool entered = shared.users > 0 && environ == shared.preloaded;
    if (entered) {
        shared.users++;
    } else if (ml_exec_preload_count(environ, &entries, &preload_bytes)) {
        const size_t pointers_bytes = (entries + ML_EXEC_PRELOAD_EXTRA) * sizeof(char *);
        char *copy =
            take_copy(pointers_bytes + preload_bytes + (size_t)ML_EXEC_PRELOAD_SOCKET_MAX_BYTES);
        if (copy != NULL) {
            char *preload_space = copy + pointers_bytes;
            shared.before = environ;
            shared.preloaded = (char **)(void *)copy;
            ml_exec_preload_environment(
                environ,
                entries,
                shared.preloaded,
                preload_space,
                preload_bytes,
                preload_space + preload_bytes,
                lent_fd
            );
            shared.lent_fd = lent_fd;
            if (lent_fd >= 0) {
                ml_lending_to_shells(lent_fd, true);
            }
            shared.users++; /* first: a child that is forked here looks at it */
            atomic_thread_fence(memory_order_release);
            environ = shared.preloaded;
            entered = true;
        }
    }
    inside = entered;
    unlock();
    return entered;
}

static void leave(void) {
    lock();
    inside = false;
    if (shared.users == 1) {
        put_back();
        atomic_thread_fence(memory_order_release);
    }
    shared.users -= shared.users > 0 ? 1 : 0;
    unlock();
}

char *const *ml_exec_preload_without_shells(char *const *environment) {
    const bool is_copy = environment != NULL && environment == environ &&
                         environment == __atomic_load_n(&shared.preloaded, __ATOMIC_ACQUIRE) &&
                         __atomic_load_n(&shared.users, __ATOMIC_RELAXED) > 0;
    return is_copy ? shared.before : environment;
}

/* A child has none of the other threads. An older glibc's system itself forks before it starts the
 * shell: that child keeps our variables. */
static void after_fork_in_child(void) {
    if (!inside) {
        if (shared.users > 0 && environ != NULL && environ != shared.preloaded) {
            (void)ml_exec_preload_take(environ); /* the program has changed it */
        }
        environ = (char **)(uintptr_t)ml_exec_preload_without_shells(environ);
        keep_connection();
        shared.users = 0;
    }
}

__attribute__((constructor)) static void begin(void) {
    (void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* The thread is cancelled while it waits. */
__attribute__((used)) static int shell_passed_by(ML_LEFT_PARAMETERS) {
    (void)version;
    (void)kind;
    (void)thrown;
    (void)context;
    if ((actions & ML_LEFT_CLEANUP_PHASE) != 0) {
        leave();
    }
    return ML_LEFT_GO_ON;
}

static __attribute__((noinline)) int preloaded_system(const char *command) {
    ML_LEFT_BY(shell_passed_by);
    const int result = ml_libc.system(command);
    leave();
    return result;
}

static __attribute__((noinline)) FILE *preloaded_popen(const char *command, const char *mode) {
    ML_LEFT_BY(shell_passed_by);
    FILE *result = ml_libc.popen(command, mode);
    leave();
    return result;
}

/* Look up a variable in the program's own environment; `real` searches the present one. */
static char *own_value(const char *name, char *(*real)(const char *)) {
    char *const *preloaded = __atomic_load_n(&shared.preloaded, __ATOMIC_ACQUIRE);
    /* A changed one with our variables, or a copy by the time that it is searched: a first shell
     * starts while we look. */
    if (preloaded == NULL || environ != preloaded) {
        return ml_exec_preload_own_value(name, real(name));
    }
    const size_t name_bytes = strlen(name);
    for (char *const *own = shared.before; own != NULL && *own != NULL; own++) {
        if (strncmp(*own, name, name_bytes) == 0 && (*own)[name_bytes] == '=') {
            return *own + name_bytes + 1;
        }
    }
    return NULL;
}

ML_VISIBLE char *getenv(const char *name) {
    ML_LIBC_READY(system);
    return own_value(name, ml_libc.getenv);
}

ML_VISIBLE char *secure_getenv(const char *name) {
    ML_LIBC_READY(system);
    return getauxval(AT_SECURE) != 0 ? NULL : own_value(name, ml_libc.secure_getenv);
}

ML_VISIBLE int system(const char *command) {
    ML_LIBC_READY(system);
    return command != NULL && enter() ? preloaded_system(command) : ml_libc.system(command);
}

ML_VISIBLE FILE *popen(const char *command, const char *mode) {
    ML_LIBC_READY(system);
    return enter() ? preloaded_popen(command, mode) : ml_libc.popen(command, mode);
}
