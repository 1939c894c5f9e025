/* Deleting: a report at once, a host's reports and a team's by and by. Room: host. */
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "host/collect/server/internal.h"

void ml_receiver_report_removed(void *asker, enum ml_status status) {
    struct ml_http_request *request = asker;
    switch (status) {
    case ML_OK:
        ml_receiver_answer(request, OK, NULL, "removed\n");
        return;
    case ML_ENV_MISSING:
        ml_receiver_answer(request, MISSING, NULL, "there is no such report\n");
        return;
    default:
        ml_receiver_answer(
            request, UNAVAILABLE, "5", "the disk or the store refuses: it is tried again\n"
        );
    }
}

static void
remove_report(struct ml_receiver *receiver, struct ml_http_request *request, const char *team) {
    const enum ml_status status = ml_remover_report(
        receiver->setup.remover, team, ml_receiver_argument(request, "guid"), request
    );
    if (status != ML_OK) {
        ml_receiver_report_removed(request, status);
    }
}

static void note(
    struct ml_receiver *receiver,
    struct ml_http_request *request,
    const char *team,
    enum ml_removal_kind kind
) {
    const char *name = kind == ML_REMOVE_HOST ? ml_receiver_argument(request, "name") : "";
    if (kind == ML_REMOVE_HOST && name[0] == '\0') {
        ml_receiver_answer(request, BAD, NULL, "say which host: name=NAME\n");
        return;
    }
    switch (ml_remover_wish(receiver->setup.remover, team, kind, name)) {
    case ML_OK:
        ml_receiver_answer(
            request, NOTED, NULL, "noted: GET /api/v1/fleet/removals says what is left to do\n"
        );
        return;
    case ML_PEER_LIMIT:
        ml_receiver_answer(
            request, TOO_MANY, "60", "too much is to be removed already: come again\n"
        );
        return;
    default:
        ml_receiver_answer(request, DISK_FULL, "300", "it cannot be noted: the disk refuses\n");
    }
}

void ml_receiver_remove(struct ml_receiver *receiver, struct ml_http_request *request) {
    static const char prefix[] = "/api/v1/fleet/";
    const char *path = ml_http_path(request);
    const char *what =
        strncmp(path, prefix, sizeof(prefix) - 1) == 0 ? path + sizeof(prefix) - 1 : "";
    const struct ml_token *token = ml_receiver_authorize(receiver, request, ML_RIGHT_ADMIN);
    if (token == NULL) {
        return;
    }
    if (strcmp(what, ml_removal_names[ML_REMOVE_REPORT]) == 0) {
        remove_report(receiver, request, token->team);
    } else if (strcmp(what, ml_removal_names[ML_REMOVE_HOST]) == 0) {
        note(receiver, request, token->team, ML_REMOVE_HOST);
    } else if (strcmp(what, ml_removal_names[ML_REMOVE_TEAM]) == 0) {
        note(receiver, request, token->team, ML_REMOVE_TEAM);
    } else {
        ml_receiver_answer(
            request, MISSING, NULL, "DELETE takes /report?guid=, /host?name= and /team\n"
        );
    }
}

void ml_receiver_removals(struct ml_receiver *receiver, struct ml_http_request *request) {
    const struct ml_token *token = ml_receiver_authorize(receiver, request, ML_RIGHT_READ);
    char *text = NULL;
    size_t count = 0;
    FILE *out = token != NULL ? open_memstream(&text, &count) : NULL;
    struct ml_removal removal = {.id = 0};
    if (token == NULL) {
        return;
    }
    if (out == NULL) {
        ml_receiver_answer(request, FAILED, NULL, "memory ran out\n");
        return;
    }
    struct ml_json json = ml_json_over(out);
    ml_json_open(&json, '{');
    ml_json_number_member(&json, "memlog", 1);
    ml_json_open_member(&json, "removals", '[');
    while (ml_remover_next(receiver->setup.remover, token->team, removal.id, &removal)) {
        ml_json_open(&json, '{');
        ml_json_string_member(&json, "what", ml_removal_names[removal.kind]);
        ml_json_string_member(&json, "name", removal.name);
        ml_json_number_member(&json, "asked_ms", removal.asked_ms);
        ml_json_number_member(&json, "removed", removal.removed);
        ml_json_close(&json, '}');
    }
    ml_json_close(&json, ']');
    ml_json_close(&json, '}');
    (void)fputc('\n', out);
    if (fclose(out) == 0) {
        const struct ml_http_answer said = {
            .status = OK,
            .content_type = "application/json",
            .bytes = text,
            .bytes_count = count,
        };
        ml_http_answer(request, &said);
    } else {
        ml_receiver_answer(request, FAILED, NULL, "memory ran out\n");
    }
    free(text);
}
