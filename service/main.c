/* The profiling service: `memlog-service --sandbox=auto|strict|none [--workers=N]`, started by the
 * host with a socket as descriptor 3 and stderr as 2. Everything else comes over that socket. */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "service/process.h"
#include "service/workers/workers.h"

/* 1 .. ML_WORKERS_MAX. */
static bool parse_workers(const char *text, unsigned *out_workers) {
    unsigned workers = 0;
    for (; *text >= '0' && *text <= '9' && workers <= ML_WORKERS_MAX; text++) {
        workers = workers * 10 + (unsigned)(*text - '0');
    }
    *out_workers = workers;
    return *text == '\0' && workers >= 1 && workers <= ML_WORKERS_MAX;
}

int main(int argc, char **argv) {
    static const char sandbox_option[] = "--sandbox=";
    static const char workers_option[] = "--workers=";
    struct ml_sandbox_options sandbox = {0};
    unsigned workers = 0;
    bool understood =
        (argc == 2 || argc == 3) &&
        strncmp(argv[1], sandbox_option, sizeof(sandbox_option) - 1) == 0 &&
        ml_sandbox_level_parse(argv[1] + sizeof(sandbox_option) - 1, &sandbox.level) == ML_OK;
    if (understood && argc == 3) {
        understood = strncmp(argv[2], workers_option, sizeof(workers_option) - 1) == 0 &&
                     parse_workers(argv[2] + sizeof(workers_option) - 1, &workers);
    }
    if (!understood) {
        ml_process_say(
            "expected --sandbox=auto, strict or none, and perhaps --workers=1 to 16; the host "
            "starts this program",
            ""
        );
        _exit(ML_PROCESS_USAGE);
    }
    _exit((int)ml_process_run(&sandbox, workers));
}
