/* The mini browser with client and host linked in: `linked MODE DIR [THREADS]`. Prints the dump's
 * path. So many threads allocate all the time, from before the client is started. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/memlog.h"
#include "host/lib/memlog_host.h"
#include "tests/browser/mini_browser.h"

/* This program stands two folders below the build's own, where memlog-service is. */
static void find_service(char *path, size_t path_bytes) {
    char own[2048] = "";
    ssize_t count = readlink("/proc/self/exe", own, sizeof(own) - 1);
    own[count > 0 ? count : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    (void)snprintf(path, path_bytes, "%s/../../memlog-service", own);
}

static _Noreturn void *allocate(void *context) {
    (void)context;
    for (;;) {
        void *volatile block = malloc(10); /* volatile: no compiler leaves it out */
        free(block);
    }
}

static void start_threads(int count) {
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        (void)pthread_create(&thread, NULL, allocate, NULL);
    }
}

static int root_life(int argc, char *argv[]) {
    char mode[64], error[512] = "", path[4096], service[4096];
    find_service(service, sizeof(service));
    char dir_option[] = "-o";
    (void)snprintf(mode, sizeof(mode), "--memlog=%s", argv[1]);
    char *options[] = {mode, dir_option, argv[2], NULL};
    const struct memlog_host_settings settings = {
        .options = options, .program = "mini_browser", .service_path = service};
    struct memlog_host *host = memlog_host_start(&settings, error, sizeof(error));
    if (host == NULL) {
        (void)fprintf(stderr, "no host: %s\n", error);
        return 3;
    }
    start_threads(argc == 4 ? (int)strtol(argv[3], NULL, 10) : 0);
    setenv("MEMLOG_SOCKET", memlog_host_socket(host), 1);
    if (memlog_start(memlog_host_socket(host)) != 0) {
        (void)fprintf(stderr, "the root did not reach its host\n");
        return 4;
    }
    char *root[] = {argv[0], NULL};
    int code = mini_browser_life(1, root);
    if (memlog_host_stop(host, path, sizeof(path)) != 0) {
        (void)fprintf(stderr, "no dump: %s\n", path);
        return 5;
    }
    (void)printf("%s\n", path);
    return code;
}

int main(int argc, char *argv[]) {
    if (argc >= 3) {
        return root_life(argc, argv);
    }
    if (memlog_start(NULL) != 0) {
        (void)fprintf(stderr, "%s did not reach the host\n", argc > 1 ? argv[1] : "a child");
        return 6;
    }
    return mini_browser_life(argc, argv);
}
