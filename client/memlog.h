/* memlog's client as a library: link libmemlog.a into a program that cannot be preloaded, or that
 * wants to say when. The program has to be a dynamically linked one, since what the client stands
 * in front of is found in libc.so: with -static the linker says so. Room: client (public).
 * Context: any thread, but not inside an allocator.
 *
 * One rule: nothing here can fail in a way that the program has to handle. Without a host
 * everything is a no-op.
 *
 * A program that is not linked with it, and talks to the preload if that is there, says so:
 *
 *     #define MEMLOG_WEAK
 *     #include <memlog.h>
 *     if (memlog_dump) { memlog_dump("", "after start-up"); }
 *
 * Only position-independent code can (gcc's and clang's default on Debian): in code built with
 * -fno-pie the linker takes a weak function for none at all, and dlsym(RTLD_DEFAULT, "memlog_dump")
 * finds it. */
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

/* Connect to the host at that socket and start as it says. Call it once, early, while the process
 * has one thread: what was allocated before is not seen. A program with the preload, or one started
 * by `memlog run`, need not call it.
 *
 * Shape:  path of the host's client socket; NULL: the one in the environment (MEMLOG_SOCKET), which
 *         is then removed.
 * Errors: 0 when connected (recording or dormant); -1 when there is no host there, or no memory.
 *         errno is kept. */
int memlog_start(const char *socket_path);

/* 1 while this process is being recorded, 0 while it is not. */
int memlog_recording(void);

/* Ask the host for a dump, at a moment that the program knows best: `memlog dump` from inside. It
 * has everything that happened before the call, and is taken while the program goes on: what is
 * freed at once behind the call may be gone from it.
 *
 * Shape:  role: "browser", "renderer", "gpu", "utility", "other": the processes of that role alone;
 *         NULL or "": all. reason: why, for people, in the dump, the report and the page; any
 *         bytes, of which 256 are kept; NULL or "": nothing.
 * Bounds: never waits: a host that has no room for the message is not asked. A process may ask
 *         eight times in a row and then ten times a second, a run is given twenty dumps in a row
 *         and then one in ten seconds; more is counted (DIR/triggers.log, /metrics).
 * Errors: 0 when the host was asked, whose answer nobody waits for; -1 when it was not. errno is
 *         kept. From any thread, and from a signal handler. */
int memlog_dump(const char *role, const char *reason);

#ifdef __cplusplus
}
#endif

#endif
