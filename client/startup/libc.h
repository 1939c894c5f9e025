/* The libc functions that the client hooks, besides the allocator. Room: client (private). Context:
 * resolved once, in the constructor; NULL where the libc has none. */
#ifndef MEMLOG_CLIENT_STARTUP_LIBC_H
#define MEMLOG_CLIENT_STARTUP_LIBC_H

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>

struct ml_libc {
    int (*close)(int);
    int (*dup2)(int, int);
    int (*dup3)(int, int, int);
    int (*close_range)(unsigned, unsigned, int);
    void (*closefrom)(int);
    int (*execve)(const char *, char *const[], char *const[]);
    int (*execvpe)(const char *, char *const[], char *const[]);
    int (*fexecve)(int, char *const[], char *const[]);
    int (*execveat)(int, const char *, char *const[], char *const[], int);
    int (*posix_spawn
    )(pid_t *,
      const char *,
      const posix_spawn_file_actions_t *,
      const posix_spawnattr_t *,
      char *const[],
      char *const[]);
    int (*posix_spawnp
    )(pid_t *,
      const char *,
      const posix_spawn_file_actions_t *,
      const posix_spawnattr_t *,
      char *const[],
      char *const[]);
    int (*system)(const char *);
    FILE *(*popen)(const char *, const char *);
    char *(*getenv)(const char *);
    char *(*secure_getenv)(const char *);
    pid_t (*wait4)(pid_t, int *, int, struct rusage *);
    int (*waitid)(idtype_t, id_t, siginfo_t *, int);
    void (*exit_now)(int) __attribute__((noreturn)); /* _exit */
    int (*prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
    int (*pthread_setname_np)(pthread_t, const char *);
    int (*dlclose)(void *);
    void *(*mmap)(void *, size_t, int, int, int, off_t); /* mmap64 is the same */
    int (*munmap)(void *, size_t);
    void *(*mremap)(void *, size_t, size_t, int, ...);
    void *(*shmat)(int, const void *, int);
    int (*shmdt)(const void *);
    int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*thrd_create)(pthread_t *, int (*)(void *), void *);
    int (*pthread_attr_getstacksize)(const pthread_attr_t *, size_t *);
    uint64_t stack_bytes; /* of a thread whose creator does not say; 0: not known */
    void *syscall;        /* jumped to, never called: see hooks/clone.c */
    void *clone;          /* likewise */
    void *fork;           /* _Fork; likewise */
};

extern struct ml_libc ml_libc;

/* Find them all; again is harmless. */
void ml_libc_resolve(void);

/* For hooks of that function, which may be called before the constructor has run. In a running
 * process the functions are set before an entry leads to a hook. */
#if ML_ATTACHED
#    define ML_LIBC_READY(function)                                                                \
        do {                                                                                       \
        } while (0)
#else
#    define ML_LIBC_READY(function)                                                                \
        do {                                                                                       \
            if (__builtin_expect(ml_libc.function == NULL, 0)) {                                   \
                ml_libc_resolve();                                                                 \
            }                                                                                      \
        } while (0)
#endif

#endif
