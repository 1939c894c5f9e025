/* `memlog upload`. Room: host. Context: its own process. */
#include <stdbool.h>
#include <stdio.h>

#include "host/cli/commands.h"
#include "host/cli/run.h"
#include "host/process/log.h"
#include "ipc/channel/channel.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"

/* Half an hour, because a server may ask for a retry after some minutes. */
enum { UPLOAD_TIMEOUT_MS = 1800000 };

struct arguments {
    bool wait;
    bool dry_run; /* only for --help: with it, main.c starts the analyzer instead */
    const char *host;
};

static const struct ml_option options[] = {
    {.name = "--wait",
     ML_FLAG_TO(struct arguments, wait),
     .help = "end when it has arrived, or not; without: when it is made"},
    ML_ROW_HOST(struct arguments, host),
    {.name = "--dry-run",
     ML_FLAG_TO(struct arguments, dry_run),
     .help = "show byte for byte what would leave of DUMP, and on stderr what was cut; nothing is "
             "sent ('memlog upload --dry-run --help' has its options)"},
};

const struct ml_option_table ml_upload_table = {
    .program = "memlog",
    .name = "upload",
    .summary = "send a pruned dump, or show what would be sent",
    .usage = "[--wait] [--host=PATH] | --dry-run [OPTIONS] DUMP",
    .about = "Takes a dump of a running memlog and sends it, pruned, to where its --upload says.",
    ML_OPTIONS(options),
    .example = "memlog upload --dry-run memlog.prog.4711/0001.exit.pftrace | less",
};

int ml_command_upload(char *const *words) {
    struct arguments arguments = {.host = NULL};
    int exit_code = 0;
    if (!ml_commands_read(&ml_upload_table, words, &arguments, NULL, &exit_code)) {
        return exit_code;
    }
    struct ml_channel *channel = ml_commands_reach_host(arguments.host);
    if (channel == NULL) {
        return ML_EXIT_FAILED;
    }
    const struct memlog_host_upload_request request = {
        .version = MEMLOG_HOST_HOST_VERSION, .wait = arguments.wait};
    struct memlog_host_upload_reply reply;
    const enum ml_status status =
        memlog_host_upload_wait(ml_channel_port(channel), &request, UPLOAD_TIMEOUT_MS, &reply);
    if (status != ML_OK) {
        ml_say_error("the running memlog does not answer: %s", ml_status_text(status));
    } else if (reply.trouble.count_bytes > 0) {
        ml_say_error(
            "%.*s%s%.*s",
            (int)reply.path.count_bytes,
            reply.path.count_bytes > 0 ? reply.path.data : "",
            reply.path.count_bytes > 0 ? " was not sent: " : "",
            (int)reply.trouble.count_bytes,
            reply.trouble.data
        );
    }
    if (status == ML_OK && reply.path.count_bytes > 0) {
        ml_commands_put_path(reply.path.data, reply.path.count_bytes);
    }
    const bool fine = status == ML_OK && reply.trouble.count_bytes == 0;
    ml_channel_free(channel);
    return fine ? 0 : ML_EXIT_FAILED;
}
