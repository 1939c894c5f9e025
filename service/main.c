/* The profiling service: `memlog-service --sandbox=auto|strict|none`, started by the host with a
 * socket as descriptor 3 and stderr as 2. Everything else comes over that socket. */
#include <string.h>
#include <unistd.h>

#include "service/process.h"

int main(int argc, char **argv) {
    static const char option[] = "--sandbox=";
    struct ml_sandbox_options options = {0};
    if (argc != 2 || strncmp(argv[1], option, sizeof(option) - 1) != 0 ||
        ml_sandbox_level_parse(argv[1] + sizeof(option) - 1, &options.level) != ML_OK) {
        ml_process_say("expected --sandbox=auto, strict or none; the host starts this program", "");
        _exit(ML_PROCESS_USAGE);
    }
    _exit((int)ml_process_run(&options));
}
