#include "client/startup/libc.h"

#include "client/symbols/symbols.h"

struct ml_libc ml_libc;

static void find(void *out_function, const char *name) {
    *(void **)out_function = ml_symbol_next(name).address;
}

void ml_libc_resolve(void) {
    find(&ml_libc.close, "close");
    find(&ml_libc.dup2, "dup2");
    find(&ml_libc.dup3, "dup3");
    find(&ml_libc.close_range, "close_range");
    find(&ml_libc.closefrom, "closefrom");
    find(&ml_libc.execve, "execve");
    find(&ml_libc.execvpe, "execvpe");
    find(&ml_libc.fexecve, "fexecve");
    find(&ml_libc.execveat, "execveat");
    find(&ml_libc.posix_spawn, "posix_spawn");
    find(&ml_libc.posix_spawnp, "posix_spawnp");
    find(&ml_libc.system, "system");
    find(&ml_libc.popen, "popen");
    find(&ml_libc.getenv, "getenv");
    find(&ml_libc.secure_getenv, "secure_getenv");
    find(&ml_libc.wait4, "wait4");
    find(&ml_libc.waitid, "waitid");
    find(&ml_libc.exit_now, "_exit");
    find(&ml_libc.prctl, "prctl");
    find(&ml_libc.pthread_setname_np, "pthread_setname_np");
    find(&ml_libc.dlclose, "dlclose");
    find(&ml_libc.syscall, "syscall");
    find(&ml_libc.clone, "clone");
    find(&ml_libc.fork, "_Fork");
}
