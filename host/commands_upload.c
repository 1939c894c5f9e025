/* `memlog upload`. Room: host. Context: its own process. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "host/commands.h"
#include "host/run.h"
#include "host/voice.h"
#include "ipc/channel.h"
#include "mojom_like_idl/heap_host_mojom.h"

/* Half an hour: a server may ask for some minutes of patience. */
enum { UPLOAD_TIMEOUT_MS = 1800000 };

int ml_command_upload(char *const *words) {
    const char *host = NULL;
    bool wait = false;
    for (size_t i = 0; words[i] != NULL; i++) {
        static const char *const known[] = {"--wait", "--host", "--dry-run"};
        if (strcmp(words[i], "--wait") == 0) {
            wait = true;
        } else if (strncmp(words[i], "--host=", 7) == 0) {
            host = words[i] + 7;
        } else {
            const char *near = ml_suggest(words[i], known, 3);
            ml_say_error(
                near != NULL ? "'%s' is not known; did you mean '%s'?"
                             : "'%s' is not known; 'memlog upload %s' is",
                words[i],
                near != NULL ? near : known[0]
            );
            return ML_EXIT_USAGE;
        }
    }
    struct ml_channel *channel = ml_commands_reach_host(host);
    if (channel == NULL) {
        return ML_EXIT_FAILED;
    }
    const struct memlog_host_upload_request request = {
        .version = MEMLOG_HOST_HOST_VERSION, .wait = wait};
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
