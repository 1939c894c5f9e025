#include "host/fleet/watch.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ev.h>

#include "base/shell_word.h"
#include "host/fleet/ask.h"
#include "host/process/log.h"
#include "host/process/loop.h"

enum { TEXT_BYTES = 4096, RETRY_FIRST_S = 10 };

static uint64_t now_ms(void) {
    struct timespec now = {.tv_sec = 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- telling */

/* False, after a message: it is not on the disk. */
static bool save(const struct ml_fleet_watch *watch) {
    struct ml_error_message error = {.text = ""};
    if (ml_fleet_watch_state_save(&watch->state, &error)) {
        return true;
    }
    ml_say_error("%s; what was found is told again when this watch is started again", error.text);
    return false;
}

/* Said when it begins and when it has gone by, not at each try. */
static void say_webhook(struct ml_fleet_watch *watch, const char *trouble) {
    const bool is_down = trouble != NULL;
    if (is_down && !watch->is_webhook_down) {
        ml_say_error(
            "--webhook: %s: %zu kept, and tried again",
            trouble,
            json_array_size(watch->state.pending)
        );
    } else if (!is_down && watch->is_webhook_down) {
        ml_say_error("--webhook: it takes findings again");
    }
    watch->is_webhook_down = is_down;
}

/* Send what is pending, the oldest first. False: some of it stays. */
static bool deliver(struct ml_fleet_watch *watch) {
    while (watch->webhook != NULL && json_array_size(watch->state.pending) > 0) {
        struct ml_error_message error = {.text = ""};
        const json_t *one = json_array_get(watch->state.pending, 0);
        char *text = json_dumps(one, JSON_COMPACT | JSON_ENSURE_ASCII);
        const bool done =
            text != NULL &&
            ml_fleet_client_tell(watch->webhook, text, ml_fleet_text(one, "id"), &error) == ML_OK;
        free(text);
        if (!done && *watch->stopped) {
            return false;
        }
        if (!done) {
            watch->send_failures++;
            say_webhook(watch, error.text[0] != '\0' ? error.text : "no memory");
            return false;
        }
        say_webhook(watch, NULL);
        watch->sent++;
        (void)json_array_remove(watch->state.pending, 0);
        if (!save(watch)) {
            return false;
        }
    }
    return true;
}

/* ---- a round */

static void say_rows(const struct ml_fleet_watch *watch) {
    static const char next[] = "next: memlog fleet diff --program=";
    for (size_t i = 0; i < watch->rows_count; i++) {
        const struct ml_fleet_watch_row *row = &watch->rows[i];
        char text[TEXT_BYTES];
        ml_fleet_watch_say(row, text, sizeof(text));
        (void)puts(text);
        if (row->outcome == ML_FLEET_WATCH_GREW &&
            ml_shell_word(json_string_value(row->program), text, sizeof(text))) {
            (void)printf("%s%s\n", next, text);
        }
    }
}

/* False, after a message: something could not be asked, or not be kept. */
static bool round_of(struct ml_fleet_watch *watch) {
    struct ml_error_message error = {.text = ""};
    bool done = ml_fleet_watch_round(watch, &error);
    if (done) {
        watch->rounds_done++;
        watch->last_done_s = floor((double)now_ms() / 1000);
    } else if (!*watch->stopped) {
        watch->rounds_failed++;
        ml_say_error("%s", error.text);
    }
    if (ml_fleet_watch_note(watch, now_ms()) > 0) {
        done = save(watch) && done;
    }
    return done;
}

static int once(struct ml_fleet_watch *watch) {
    const bool is_asked = round_of(watch);
    bool grew = false;
    for (size_t i = 0; i < watch->rows_count; i++) {
        grew = grew || watch->rows[i].outcome == ML_FLEET_WATCH_GREW;
    }
    if (!watch->options->quiet) {
        say_rows(watch);
    }
    const bool is_told = deliver(watch);
    if (grew) {
        return ML_FLEET_EXIT_GREW;
    }
    if (!is_asked || !is_told) {
        return ML_FLEET_EXIT_FAILED;
    }
    if (watch->options->program != NULL && watch->rows_count == 0) {
        ml_say_error("no report is of that program: 'memlog fleet programs' lists them");
        return ML_FLEET_EXIT_LACKING;
    }
    return EXIT_SUCCESS;
}

/* ---- again and again */

static void on_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)events;
    (void)watcher;
    ev_break(loop, EVBREAK_ALL);
}

static void wait_for(struct ml_fleet_watch *watch, double seconds) {
    ev_timer timer;
    ml_timer_init(&timer, on_timer, NULL);
    ml_timer_start(watch->loop, &timer, seconds);
    while (ev_is_active(&timer) && !*watch->stopped) {
        (void)ev_run(watch->loop, 0);
    }
    ev_timer_stop(watch->loop, &timer);
}

/* Until the next round; a webhook that takes nothing is tried again meanwhile. */
static void rest(struct ml_fleet_watch *watch) {
    double left = watch->options->every_s;
    double retry = RETRY_FIRST_S;
    while (left > 0 && !*watch->stopped) {
        const double seconds = json_array_size(watch->state.pending) > 0 && watch->webhook != NULL
                                   ? fmin(retry, left)
                                   : left;
        wait_for(watch, seconds);
        left -= seconds;
        retry *= 2;
        if (left > 0 && !*watch->stopped) {
            (void)deliver(watch);
        }
    }
}

static int again_and_again(struct ml_fleet_watch *watch) {
    struct ml_error_message error = {.text = ""};
    struct ml_fleet_watch_server *server = NULL;
    if (watch->options->listen.kind != ML_PAGE_NONE) {
        server = ml_fleet_watch_server_open(watch, &error);
        if (server == NULL) {
            ml_say_error("--listen: %s", error.text);
            return ML_FLEET_EXIT_FAILED;
        }
    }
    while (!*watch->stopped) {
        (void)round_of(watch);
        if (!*watch->stopped) {
            (void)deliver(watch);
            rest(watch);
        }
    }
    ml_fleet_watch_server_close(server);
    return EXIT_SUCCESS;
}

int ml_fleet_watch_run(
    const struct ml_fleet_options *options,
    struct ml_fleet_client *collector,
    struct ev_loop *loop,
    const bool *stopped
) {
    struct ml_fleet_watch watch = {
        .options = options, .loop = loop, .stopped = stopped, .collector = collector};
    struct ml_error_message error = {.text = ""};
    char token[ML_FLEET_TOKEN_BYTES] = "";
    const struct ml_fleet_address place = {
        .url = options->webhook, .ca = options->webhook_ca, .token = token};
    bool fine = ml_fleet_watch_state_open(&watch.state, options->state, &error) == ML_OK;
    if (fine && options->webhook_token_file != NULL) {
        fine = ml_fleet_token_read(options->webhook_token_file, token, &error) == ML_OK;
    }
    if (fine && options->webhook != NULL) {
        watch.webhook = ml_fleet_client_new(loop, &place, stopped, &error);
        fine = watch.webhook != NULL;
    }
    int exit_code = ML_FLEET_EXIT_FAILED;
    if (!fine) {
        ml_say_error("%s", error.text);
    } else {
        exit_code = options->once ? once(&watch) : again_and_again(&watch);
    }
    explicit_bzero(token, sizeof(token));
    ml_fleet_client_free(watch.webhook);
    ml_fleet_watch_rows_free(watch.rows, watch.rows_count);
    ml_fleet_watch_state_close(&watch.state);
    return exit_code;
}
