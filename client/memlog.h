/* memlog's client as a library. Link libmemlog.a into a program that cannot be preloaded, or that
 * chooses itself when recording starts. Link that program dynamically: the client hooks functions
 * of libc.so, and the linker refuses -static. Room: client (public).
 * Context: any thread, but not inside an allocator.
 *
 * One rule: nothing here can fail in a way that the program has to handle. Without a host
 * everything is a no-op.
 *
 * A program that is not linked with libmemlog.a can call the preloaded client if there is one:
 *
 *     #define MEMLOG_WEAK
 *     #include <memlog.h>
 *     if (memlog_dump) { memlog_dump("", "after start-up"); }
 *
 * This needs position-independent code (gcc's and clang's default on Debian). With -fno-pie the
 * linker resolves a weak function to NULL; use dlsym(RTLD_DEFAULT, "memlog_dump") there. */
#ifndef MEMLOG_CLIENT_MEMLOG_H
#define MEMLOG_CLIENT_MEMLOG_H

#ifdef MEMLOG_WEAK
#    pragma weak memlog_start
#    pragma weak memlog_recording
#    pragma weak memlog_dump
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Connect to the host at that socket and record if the host says so. Call it once, early, while the
 * process has one thread: earlier allocations are not recorded. A program with the preload, or one
 * started by `memlog run`, need not call it.
 *
 * Shape:  path of the host's client socket; NULL: take it from MEMLOG_SOCKET and remove that
 *         variable.
 * Errors: 0 when connected (recording or dormant); -1 when there is no host there, or no memory.
 *         errno is kept. */
int memlog_start(const char *socket_path);

/* 1 while this process is being recorded, 0 while it is not. */
int memlog_recording(void);

/* Ask the host for a dump, as `memlog dump` does, at a moment that the program chooses. The dump
 * holds everything that happened before the call. It is taken while the program continues, so a
 * block freed right after the call may be missing.
 *
 * Shape:  role: "browser", "renderer", "gpu", "utility", "other": the processes of that role alone;
 *         NULL or "": all. reason: why, for people, in the dump, the report and the page; any
 *         bytes, of which 256 are kept; NULL or "": nothing.
 * Bounds: never waits: a full socket drops the request. A process may ask eight times in a row and
 *         then ten times a second. A run gets twenty dumps in a row and then one in ten seconds.
 *         Further requests are only counted (DIR/triggers.log, /metrics).
 * Errors: 0 when the request was sent (its answer is not awaited), else -1. errno is kept. Callable
 *         from any thread and from a signal handler. */
int memlog_dump(const char *role, const char *reason);

#ifdef __cplusplus
}
#endif

#endif
