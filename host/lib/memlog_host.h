/* A host inside your own program: profiles this process and every process that it starts, as
 * `memlog run` would, without the program `memlog`. Room: host. Context: any thread, but one call
 * at a time for one host.
 *
 * One rule: the host runs on a thread of its own and leaves your process's signals, environment and
 * children alone. Its service is not your child.
 *
 *   struct memlog_host_settings settings = {.program = argv[0]};
 *   struct memlog_host *host = memlog_host_start(&settings, error, sizeof(error));
 *   setenv("MEMLOG_SOCKET", memlog_host_socket(host), 1);   for the children,
 *   setenv("LD_PRELOAD", "/path/to/libmemlog.so", 1);       unless they link the client
 *   memlog_host_page(host, NULL, url, sizeof(url));         for a person's browser
 *   ...
 *   memlog_host_stop(host, path, sizeof(path));             the final dump
 */
#ifndef MEMLOG_HOST_LIB_MEMLOG_HOST_H
#define MEMLOG_HOST_LIB_MEMLOG_HOST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEMLOG_HOST_EXPORT __attribute__((visibility("default")))

struct memlog_host;

struct memlog_host_settings {
    /* The options of `memlog run`, NULL-terminated, without program: "--memlog=minimal", "-o",
     * "dumps". NULL: none. Borrowed until memlog_host_stop. */
    char *const *options;
    /* What the profile is called; the folder of the dumps is named after it. Borrowed likewise. */
    const char *program;
    /* memlog-service, beside which memlog's other parts lie, too
     * (`pkg-config --variable=service memlog-host`). NULL: it lies beside this program, or in
     * ../lib/memlog. */
    const char *service_path;
    /* Receives one-line messages for people, on the host's thread. May be NULL. */
    void (*on_notice)(void *context, const char *text);
    void *context;
};

/* Start a host. This process becomes the root of the tree, with the role "browser". NULL: it
 * failed, `error` says why. */
MEMLOG_HOST_EXPORT struct memlog_host *
memlog_host_start(const struct memlog_host_settings *settings, char *error, size_t error_bytes);

/* Where processes connect: the value for MEMLOG_SOCKET. Lives as long as the host. Keep it secret:
 * a process that knows it can join if it is this user's or descends from the host. */
MEMLOG_HOST_EXPORT const char *memlog_host_socket(const struct memlog_host *host);

/* Take a dump of everything and wait until it is written. 0: `path` names it. -1: there is none,
 * and `path` says why. */
MEMLOG_HOST_EXPORT int memlog_host_dump(struct memlog_host *host, char *path, size_t path_bytes);

/* Open the live page, which `memlog run` has, too, until memlog_host_stop. `place` is "PORT" (0: a
 * free one), "ADDRESS:PORT" or "unix:PATH"; NULL: where --page of the options says, else 127.0.0.1
 * and a free port. An address that other machines reach is refused without --page-remote among the
 * options. 0: `url` is what a person opens; whoever has the token in it may look and act. -1: there
 * is no page, and `url` says why. */
MEMLOG_HOST_EXPORT int
memlog_host_page(struct memlog_host *host, const char *place, char *url, size_t url_bytes);

/* Take the final dump as above, and end the host. Recording stops in processes that still run. NULL
 * is allowed. */
MEMLOG_HOST_EXPORT int
memlog_host_stop(struct memlog_host *take_host, char *path, size_t path_bytes);

#ifdef __cplusplus
}
#endif

#endif
