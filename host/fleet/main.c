/* The program `memlog-fleet`: memlog starts it for `memlog fleet`. Room: host. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ev.h>

#include "base/shell_word.h"
#include "host/fleet/ask.h"
#include "host/fleet/client.h"
#include "host/fleet/options.h"
#include "host/fleet/watch.h"
#include "host/process/log.h"

enum { AGAIN_BYTES = 8192, WORD_BYTES = 4096 };

struct program {
    struct ml_fleet_options options;
    uint64_t given;
    char token[ML_FLEET_TOKEN_BYTES];
    char again[AGAIN_BYTES];
    bool stopped; /* by a signal */
    struct ev_loop *loop;
    ev_signal signals[2];
};

static void on_signal(struct ev_loop *loop, ev_signal *watcher, int events) {
    (void)events;
    ((struct program *)watcher->data)->stopped = true;
    ev_break(loop, EVBREAK_ALL);
}

/* ---- what it is told */

/* The command line alone first: it may say nothing that its question does not understand, while
 * the user's file is for all questions. */
static enum ml_option_outcome
read_words(struct program *program, char **words, struct ml_error_message *error) {
    static struct ml_option_default defaults[ML_OPTION_DEFAULTS_MAX];
    static struct ml_fleet_options scratch;
    size_t count = 0;
    words = ml_option_defaults_of(words, defaults, &count);
    words += words[0] != NULL; /* "fleet" */
    scratch = ml_fleet_options_default();
    const enum ml_option_outcome outcome =
        ml_option_table_read(&ml_fleet_table, words, &scratch, &program->given, error);
    if (outcome != ML_OPTIONS_READ) {
        return outcome;
    }
    ml_option_defaults(defaults, count);
    program->options = ml_fleet_options_default();
    return ml_option_table_read(&ml_fleet_table, words, &program->options, NULL, error);
}

/* What the commands that an answer names go on with, to reach the same collector. */
static void remember(struct program *program) {
    const struct {
        const char *name, *value;
    } words[] = {
        {"--at", program->options.at},
        {"--token-file", program->options.token_file},
        {"--ca", program->options.ca},
    };
    size_t at = 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        char word[WORD_BYTES];
        if (ml_option_given(&ml_fleet_table, program->given, words[i].name) &&
            ml_shell_word(words[i].value, word, sizeof(word)) &&
            at + strlen(word) + strlen(words[i].name) + 3 < sizeof(program->again)) {
            at += (size_t)snprintf(
                program->again + at, sizeof(program->again) - at, " %s=%s", words[i].name, word
            );
        }
    }
}

/* ---- what it does */

static int work(struct program *program) {
    const struct ml_fleet_options *options = &program->options;
    struct ml_error_message error = {.text = ""};
    const struct ml_fleet_address place = {
        .url = options->at, .ca = options->ca, .token = program->token};
    if (options->token_file != NULL &&
        ml_fleet_token_read(options->token_file, program->token, &error) != ML_OK) {
        ml_say_error("--token-file: %s", error.text);
        return ML_FLEET_EXIT_FAILED;
    }
    struct ml_fleet_client *client =
        ml_fleet_client_new(program->loop, &place, &program->stopped, &error);
    if (client == NULL) {
        ml_say_error("%s", error.text);
        return ML_FLEET_EXIT_FAILED;
    }
    const int exit_code =
        options->question == ML_FLEET_WATCH
            ? ml_fleet_watch_run(options, client, program->loop, &program->stopped)
            : ml_fleet_ask(client, options, program->again, stdout);
    ml_fleet_client_free(client);
    return exit_code;
}

static int run(struct program *program) {
    static const int numbers[] = {SIGINT, SIGTERM};
    (void)signal(SIGPIPE, SIG_IGN);
    program->loop = ev_default_loop(0);
    if (program->loop == NULL) {
        ml_say_error("memory ran out");
        return ML_FLEET_EXIT_FAILED;
    }
    for (size_t i = 0; i < 2; i++) {
        ev_signal_init(&program->signals[i], on_signal, numbers[i]);
        program->signals[i].data = program;
        ev_signal_start(program->loop, &program->signals[i]);
        ev_unref(program->loop); /* nothing is waited for but an answer */
    }
    const int exit_code = work(program);
    explicit_bzero(program->token, sizeof(program->token));
    return exit_code;
}

int main(int argc, char **argv) {
    static struct program program;
    struct ml_error_message error = {.text = ""};
    switch (read_words(&program, argv + (argc > 0 ? 1 : 0), &error)) {
    case ML_OPTIONS_HELP:
        ml_option_table_help(&ml_fleet_table, stdout);
        return fflush(stdout) == 0 ? EXIT_SUCCESS : ML_FLEET_EXIT_FAILED;
    case ML_OPTIONS_READ:
        if (ml_fleet_options_settle(&program.options, program.given, &error)) {
            break;
        }
        __attribute__((fallthrough));
    case ML_OPTIONS_WRONG:
        ml_say_error("%s", error.text);
        (void)fputs("Try 'memlog fleet --help'.\n", stderr);
        return ML_FLEET_EXIT_USAGE;
    }
    remember(&program);
    const int exit_code = run(&program);
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        ml_say_error("stdout cannot be written");
        return exit_code != 0 ? exit_code : ML_FLEET_EXIT_FAILED;
    }
    return exit_code;
}
