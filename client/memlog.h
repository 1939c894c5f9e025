/* memlog's client as a library: link libmemlog.a into a program that cannot be preloaded, or that
 * wants to say when. Room: client (public). Context: any thread, but not inside an allocator.
 *
 * One rule: nothing here can fail in a way that the program has to handle. Without a host
 * everything is a no-op. */
#ifndef MEMLOG_CLIENT_MEMLOG_H
#define MEMLOG_CLIENT_MEMLOG_H

#ifdef __cplusplus
extern "C" {
#endif

/* Connect to the host at that socket and start as it says. Call it once, early, while the process
 * has one thread: what was allocated before is not seen. A program with the preload, or one started
 * by `memlog run`, need not call it.
 *
 * Shape:  path of the host's client socket; NULL: the one in the environment (MEMLOG_SOCKET), which
 * is then removed. Errors: 0 when connected (recording or dormant); -1 when there is no host there,
 * or no memory. errno is kept. */
int memlog_start(const char *socket_path);

/* 1 while this process is being recorded, 0 while it is not. */
int memlog_recording(void);

#ifdef __cplusplus
}
#endif

#endif
