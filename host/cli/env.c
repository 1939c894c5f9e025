/* `memlog env`. Room: host. Context: its own process. */
#include <stdio.h>

#include "host/cli/commands.h"
#include "host/cli/run.h"
#include "host/process/log.h"
#include "ipc/channel/channel.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"

enum { JOIN_TIMEOUT_MS = 10000 };

enum form { FORM_SHELL, FORM_PLAIN, FORM_JSON };

struct arguments {
    enum form form;
    const char *host;
};

static const struct ml_option options[] = {
    {.name = "--plain",
     ML_CHOICE_TO(struct arguments, form, FORM_PLAIN),
     .help = "KEY=VALUE lines, as for systemd's EnvironmentFile; without, for a shell's eval"},
    {.name = "--json", ML_CHOICE_TO(struct arguments, form, FORM_JSON), .help = "one object"},
    ML_ROW_HOST(struct arguments, host),
};

const struct ml_option_table ml_env_table = {
    .program = "memlog",
    .name = "env",
    .summary = "print what a program needs to join a running memlog",
    .usage = "[OPTIONS]",
    .about = "Prints the variables by which a program that is started elsewhere (by a service "
             "manager, a test runner, another shell) joins a running memlog. It is profiled, with "
             "all that it starts, while that memlog runs, and runs on by itself behind it.",
    ML_OPTIONS(options),
    .example = "eval \"$(memlog env)\" && python3 server.py",
};

/* In single quotes, within which a shell changes nothing. */
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
    struct ml_json json = ml_json_over(stdout);
    switch (form) {
    case FORM_JSON:
        ml_json_open(&json, '{');
        ml_commands_json_member(&json, "LD_PRELOAD", reply->preload);
        ml_commands_json_member(&json, "MEMLOG_SOCKET", reply->socket);
        ml_json_close(&json, '}');
        (void)putchar('\n');
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
    struct arguments arguments = {.form = FORM_SHELL};
    int exit_code = 0;
    if (!ml_commands_read(&ml_env_table, words, &arguments, NULL, &exit_code)) {
        return exit_code;
    }
    struct ml_channel *channel = ml_commands_reach_host(arguments.host);
    if (channel == NULL) {
        return ML_EXIT_FAILED;
    }
    const struct memlog_host_join_request request = {.version = MEMLOG_HOST_HOST_VERSION};
    struct memlog_host_join_reply reply;
    const enum ml_status status =
        memlog_host_join_wait(ml_channel_port(channel), &request, JOIN_TIMEOUT_MS, &reply);
    exit_code = ML_EXIT_FAILED;
    if (status != ML_OK) {
        ml_say_error("the running memlog does not answer: %s", ml_status_text(status));
    } else if (reply.preload.count_bytes == 0) {
        ml_say_error("the running memlog is linked into its program and takes in no others");
    } else {
        put_variables(arguments.form, &reply);
        exit_code = 0;
    }
    ml_channel_free(channel);
    return exit_code;
}
