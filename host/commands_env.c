/* `memlog env`. Room: host. Context: its own process. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "host/commands.h"
#include "host/run.h"
#include "host/voice.h"
#include "ipc/channel.h"
#include "mojom_like_idl/heap_host_mojom.h"

enum { JOIN_TIMEOUT_MS = 10000 };

enum form { FORM_SHELL, FORM_PLAIN, FORM_JSON };

/* False and a word on stderr: wrong usage. */
static bool parse(char *const *words, enum form *out_form, const char **out_host) {
    static const char *const known[] = {"--host", "--json", "--plain"};
    *out_form = FORM_SHELL;
    *out_host = NULL;
    for (size_t i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], "--json") == 0) {
            *out_form = FORM_JSON;
        } else if (strcmp(words[i], "--plain") == 0) {
            *out_form = FORM_PLAIN;
        } else if (strncmp(words[i], "--host=", 7) == 0) {
            *out_host = words[i] + 7;
        } else if (words[i][0] == '-') {
            return ml_commands_unknown(words[i], known, sizeof(known) / sizeof(known[0]));
        } else {
            ml_say_error("'%s' is not an option; memlog env starts no program", words[i]);
            return false;
        }
    }
    return true;
}

/* In quotes that a shell takes as they are. */
static void put_quoted(struct ml_string text) {
    (void)putchar('\'');
    for (uint32_t i = 0; i < text.count_bytes; i++) {
        if (text.data[i] == '\'') {
            (void)printf("'\\''");
        } else {
            (void)putchar(text.data[i]);
        }
    }
    (void)putchar('\'');
}

static void put_variables(enum form form, const struct memlog_host_join_reply *reply) {
    switch (form) {
    case FORM_JSON:
        (void)printf("{\"LD_PRELOAD\": ");
        ml_commands_json_text(reply->preload.data, reply->preload.count_bytes);
        (void)printf(", \"MEMLOG_SOCKET\": ");
        ml_commands_json_text(reply->socket.data, reply->socket.count_bytes);
        (void)printf("}\n");
        break;
    case FORM_PLAIN:
        (void)printf(
            "LD_PRELOAD=%.*s\nMEMLOG_SOCKET=%.*s\n",
            (int)reply->preload.count_bytes,
            reply->preload.data,
            (int)reply->socket.count_bytes,
            reply->socket.data
        );
        break;
    default:
        (void)printf("export LD_PRELOAD=");
        put_quoted(reply->preload);
        (void)printf("\"${LD_PRELOAD:+:$LD_PRELOAD}\"\nexport MEMLOG_SOCKET=");
        put_quoted(reply->socket);
        (void)putchar('\n');
        break;
    }
}

int ml_command_env(char *const *words) {
    enum form form = FORM_SHELL;
    const char *host = NULL;
    if (!parse(words, &form, &host)) {
        return ML_EXIT_USAGE;
    }
    struct ml_channel *channel = ml_commands_reach_host(host);
    if (channel == NULL) {
        return ML_EXIT_FAILED;
    }
    const struct memlog_host_join_request request = {.version = MEMLOG_HOST_HOST_VERSION};
    struct memlog_host_join_reply reply;
    const enum ml_status status =
        memlog_host_join_wait(ml_channel_port(channel), &request, JOIN_TIMEOUT_MS, &reply);
    int exit_code = ML_EXIT_FAILED;
    if (status != ML_OK) {
        ml_say_error("the running memlog does not answer: %s", ml_status_text(status));
    } else if (reply.preload.count_bytes == 0) {
        ml_say_error("the running memlog is linked into its program and takes in no others");
    } else {
        put_variables(form, &reply);
        exit_code = 0;
    }
    ml_channel_free(channel);
    return exit_code;
}
