/* What all processes were made of when together they had most private memory: of each its view of
 * that moment. The views belong to one reading of all processes. That of the most private memory is
 * kept, whether or not it came to its end. A later one takes its place once it is known to have
 * more. */
#include <stdbool.h>
#include <stddef.h>

#include "service/session/internal.h"

static uint64_t private_kb(const struct ml_host_view *view) {
    return view != NULL ? view->private_kb : 0;
}

/* Whether the later reading has more than the one that is kept. Of a process that has ended since,
 * the later one has nothing. */
static bool is_next_larger(const struct ml_session *session) {
    uint64_t kept = 0;
    uint64_t next = 0;
    for (const struct ml_client *client = session->first; client != NULL; client = client->next) {
        kept += private_kb(client->tree_view);
        next += private_kb(client->next_tree_view);
    }
    return session->tree_views.next != 0 && next > kept;
}

static void take_next(struct ml_session *session) {
    for (struct ml_client *client = session->first; client != NULL; client = client->next) {
        ml_client_drop_view(client, &client->tree_view);
        client->tree_view = client->next_tree_view;
        client->next_tree_view = NULL;
    }
    session->tree_views = (struct ml_tree_views){.reading = session->tree_views.next};
}

static void drop_next(struct ml_session *session) {
    for (struct ml_client *client = session->first; client != NULL; client = client->next) {
        ml_client_drop_view(client, &client->next_tree_view);
    }
    session->tree_views.next = 0;
}

void ml_session_settle_tree_views(struct ml_session *session) {
    if (is_next_larger(session)) {
        take_next(session);
    }
}

struct ml_host_view **ml_client_tree_place(struct ml_client *client, uint32_t reading) {
    struct ml_session *session = client->session;
    struct ml_tree_views *views = &session->tree_views;
    if (reading == 0) {
        return NULL;
    }
    if (reading == views->reading) {
        return &client->tree_view;
    }
    if (reading != views->next) {
        ml_session_settle_tree_views(session);
        drop_next(session);
        views->next = reading;
    }
    return &client->next_tree_view;
}

void ml_client_forget_tree(struct ml_client *client) {
    client->session->tree_views.dropped += client->tree_view != NULL ? 1 : 0;
    ml_client_drop_view(client, &client->tree_view);
    ml_client_drop_view(client, &client->next_tree_view);
}
