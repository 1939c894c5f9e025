/* /metrics of a watch, in Prometheus' text format. Room: host. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric_label.h"
#include "host/fleet/watch.h"
#include "host/http/http.h"
#include "host/http/listen.h"
#include "host/policy/page_guard.h"
#include "host/process/log.h"

enum { OK = 200, FORBIDDEN = 403, MISSING = 404, WRONG_METHOD = 405, UNAVAILABLE = 503 };

struct ml_fleet_watch_server {
    const struct ml_fleet_watch *watch;
    struct ml_page_place place;
    struct ml_page_guard guard;
    struct ml_http *http;
};

/* ---- figures */

static void
put_number(FILE *out, const char *name, bool is_counter, const char *help, double value) {
    ml_metric_head(out, name, is_counter, false, help);
    (void)fprintf(out, "%s%s %.15g\n", name, is_counter ? "_total" : "", value);
}

static void put_label(FILE *out, const char *name, const char *value, bool is_first) {
    (void)fprintf(out, "%s%s=\"", is_first ? "" : ",", name);
    ml_metric_label(out, value);
    (void)fputc('"', out);
}

static void
put_row(FILE *out, const char *name, const struct ml_fleet_watch_row *row, double value) {
    (void)fprintf(out, "%s{", name);
    put_label(out, "program", json_string_value(row->program), true);
    put_label(out, "build", ml_fleet_text(row->after, "build_id"), false);
    put_label(out, "before", ml_fleet_text(row->before, "build_id"), false);
    (void)fprintf(out, "} %.15g\n", value);
}

/* The growth of all its stacks that grew, as a share of a dump. */
static double growth_of(const struct ml_fleet_watch_row *row) {
    double growth = 0;
    for (size_t i = 0; i < json_array_size(row->grown); i++) {
        const json_t *one = json_array_get(row->grown, i);
        growth += ml_fleet_number(one, "share_after") - ml_fleet_number(one, "share_before");
    }
    return growth;
}

static double value_of(const struct ml_fleet_watch_row *row, unsigned which) {
    switch (which) {
    case 0:
        return (double)json_array_size(row->grown);
    case 1:
        return growth_of(row);
    default:
        return row->outcome == ML_FLEET_WATCH_SAME || row->outcome == ML_FLEET_WATCH_GREW;
    }
}

static void put_rows(const struct ml_fleet_watch *watch, FILE *out) {
    static const struct {
        const char *name, *help;
    } families[] = {
        {"memlog_fleet_watch_grown_stacks",
         "Stacks that hold a larger share of a dump in the newest build than in the one before."},
        {"memlog_fleet_watch_grown_share", "Their growth together, as a share of a dump."},
        {"memlog_fleet_watch_judged",
         "1 where both builds have dumps enough and the collector answered for all of its store."},
    };
    for (unsigned which = 0; which < sizeof(families) / sizeof(families[0]); which++) {
        ml_metric_head(out, families[which].name, false, false, families[which].help);
        for (size_t i = 0; i < watch->rows_count; i++) {
            put_row(out, families[which].name, &watch->rows[i], value_of(&watch->rows[i], which));
        }
    }
}

void ml_fleet_watch_put_metrics(const struct ml_fleet_watch *watch, FILE *out) {
    put_rows(watch, out);
    put_number(
        out,
        "memlog_fleet_watch_rounds",
        true,
        "Times that builds were compared.",
        (double)watch->rounds_done
    );
    put_number(
        out,
        "memlog_fleet_watch_failed_rounds",
        true,
        "Times that the collector did not answer.",
        (double)watch->rounds_failed
    );
    put_number(
        out,
        "memlog_fleet_watch_last_round_seconds",
        false,
        "When builds were compared last, seconds since 1970; 0: never.",
        watch->last_done_s
    );
    put_number(
        out,
        "memlog_fleet_watch_findings_sent",
        true,
        "Findings that the webhook has taken.",
        (double)watch->sent
    );
    put_number(
        out,
        "memlog_fleet_watch_webhook_failures",
        true,
        "Tries that the webhook did not take.",
        (double)watch->send_failures
    );
    put_number(
        out,
        "memlog_fleet_watch_findings_waiting",
        false,
        "Findings that the webhook has not taken yet.",
        (double)json_array_size(watch->state.pending)
    );
}

/* ---- HTTP */

static void
answer(struct ml_http_request *request, unsigned status, const char *text, size_t count) {
    const struct ml_http_answer said = {
        .status = status,
        .content_type =
            status == OK ? "text/plain; version=0.0.4; charset=utf-8" : "text/plain; charset=utf-8",
        .bytes = text,
        .bytes_count = count,
    };
    ml_http_answer(request, &said);
}

static void refuse(struct ml_http_request *request, unsigned status, const char *text) {
    answer(request, status, text, strlen(text));
}

static void on_head(void *context, struct ml_http_request *request) {
    (void)context;
    (void)request;
}

static void on_request(void *context, struct ml_http_request *request) {
    const struct ml_fleet_watch_server *server = context;
    char *text = NULL;
    size_t count = 0;
    /* A foreign page in a browser of this machine reaches loopback by a name of its own. */
    if (ml_page_place_is_local(&server->place) &&
        !ml_page_guard_knows_host(&server->guard, ml_http_header(request, "Host"))) {
        refuse(request, FORBIDDEN, "not by that name\n");
        return;
    }
    if (strcmp(ml_http_method(request), "GET") != 0) {
        refuse(request, WRONG_METHOD, "GET alone\n");
        return;
    }
    if (strcmp(ml_http_path(request), "/metrics") != 0) {
        refuse(request, MISSING, "/metrics is here\n");
        return;
    }
    FILE *out = open_memstream(&text, &count);
    if (out != NULL) {
        ml_fleet_watch_put_metrics(server->watch, out);
    }
    if (out != NULL && fclose(out) == 0) {
        answer(request, OK, text, count);
    } else {
        refuse(request, UNAVAILABLE, "no memory\n");
    }
    free(text);
}

struct ml_fleet_watch_server *
ml_fleet_watch_server_open(const struct ml_fleet_watch *watch, struct ml_error_message *error) {
    struct ml_fleet_watch_server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        ml_error_set(error, "no memory");
        return NULL;
    }
    server->watch = watch;
    server->place = watch->options->listen;
    struct ml_http_setup setup = {
        .loop = watch->loop, .on_head = on_head, .on_request = on_request, .context = server};
    if (ml_page_listen(&server->place, &setup.take_listen_fd, error) != ML_OK) {
        free(server);
        return NULL;
    }
    if (ml_page_guard_init(&server->guard, &server->place) != ML_OK ||
        ml_http_open(&setup, &server->http, error) != ML_OK) {
        ml_page_unlisten(&server->place);
        ml_error_set(error, "it cannot be served");
        free(server);
        return NULL;
    }
    if (!watch->options->quiet && server->place.kind == ML_PAGE_TCP) {
        ml_say_error(
            "metrics at http://%s:%u/metrics", server->place.address, (unsigned)server->place.port
        );
    }
    return server;
}

void ml_fleet_watch_server_close(struct ml_fleet_watch_server *take_server) {
    if (take_server != NULL) {
        ml_http_close(take_server->http);
        ml_page_unlisten(&take_server->place);
        free(take_server);
    }
}
