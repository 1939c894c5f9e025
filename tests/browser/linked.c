/* The mini browser with client and host linked in: `linked MODE DIR`. Prints the dump's path. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/memlog.h"
#include "host/memlog_host.h"
#include "tests/browser/mini_browser.h"

static int root_life(char *argv[]) {
    char mode[64], error[512] = "", path[4096];
    char dir_option[] = "-o";
    (void)snprintf(mode, sizeof(mode), "--memlog=%s", argv[1]);
    char *options[] = {mode, dir_option, argv[2], NULL};
    const struct memlog_host_settings settings = {.options = options, .program = "mini_browser"};
    struct memlog_host *host = memlog_host_start(&settings, error, sizeof(error));
    if (host == NULL) {
        (void)fprintf(stderr, "no host: %s\n", error);
        return 3;
    }
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
    if (argc == 3) {
        return root_life(argv);
    }
    if (memlog_start(NULL) != 0) {
        (void)fprintf(stderr, "%s did not reach the host\n", argc > 1 ? argv[1] : "a child");
        return 6;
    }
    return mini_browser_life(argc, argv);
}
