#include "client/startup/libc.h"

#include "client/state/sys.h"
#include "client/symbols/symbols.h"

struct ml_libc ml_libc;

/* As glibc takes it from the limit at the start. */
static uint64_t default_stack_bytes(void) {
    enum { UNLIMITED_BYTES = 2 << 20, PAGE_BYTES = 4096 };
    struct rlimit limit = {0};
    if (ml_sys4(SYS_prlimit64, 0, RLIMIT_STACK, 0, (long)&limit) != 0) {
        return 0;
    }
    return limit.rlim_cur == RLIM_INFINITY ? UNLIMITED_BYTES
                                           : limit.rlim_cur & ~(uint64_t)(PAGE_BYTES - 1);
}

void ml_libc_resolve(void) {
    ml_symbol_next_function(&ml_libc.close, "close");
    ml_symbol_next_function(&ml_libc.dup2, "dup2");
    ml_symbol_next_function(&ml_libc.dup3, "dup3");
    ml_symbol_next_function(&ml_libc.close_range, "close_range");
    ml_symbol_next_function(&ml_libc.closefrom, "closefrom");
    ml_symbol_next_function(&ml_libc.execve, "execve");
    ml_symbol_next_function(&ml_libc.execvpe, "execvpe");
    ml_symbol_next_function(&ml_libc.fexecve, "fexecve");
    ml_symbol_next_function(&ml_libc.execveat, "execveat");
    ml_symbol_next_function(&ml_libc.posix_spawn, "posix_spawn");
    ml_symbol_next_function(&ml_libc.posix_spawnp, "posix_spawnp");
    ml_symbol_next_function(&ml_libc.system, "system");
    ml_symbol_next_function(&ml_libc.popen, "popen");
    ml_symbol_next_function(&ml_libc.getenv, "getenv");
    ml_symbol_next_function(&ml_libc.secure_getenv, "secure_getenv");
    ml_symbol_next_function(&ml_libc.wait4, "wait4");
    ml_symbol_next_function(&ml_libc.waitid, "waitid");
    ml_symbol_next_function(&ml_libc.exit_now, "_exit");
    ml_symbol_next_function(&ml_libc.prctl, "prctl");
    ml_symbol_next_function(&ml_libc.pthread_setname_np, "pthread_setname_np");
    ml_symbol_next_function(&ml_libc.dlclose, "dlclose");
    ml_symbol_next_function(&ml_libc.munmap, "munmap");
    ml_symbol_next_function(&ml_libc.mremap, "mremap");
    ml_symbol_next_function(&ml_libc.shmat, "shmat");
    ml_symbol_next_function(&ml_libc.shmdt, "shmdt");
    ml_symbol_next_function(&ml_libc.pthread_create, "pthread_create");
    ml_symbol_next_function(&ml_libc.thrd_create, "thrd_create");
    ml_symbol_next_function(&ml_libc.pthread_attr_getstacksize, "pthread_attr_getstacksize");
    ml_libc.stack_bytes = default_stack_bytes();
    ml_symbol_next_function(&ml_libc.mmap, "mmap"); /* behind the other four: it stands for them */
    ml_symbol_next_function(&ml_libc.syscall, "syscall");
    ml_symbol_next_function(&ml_libc.clone, "clone");
    ml_symbol_next_function(&ml_libc.fork, "_Fork");
}
