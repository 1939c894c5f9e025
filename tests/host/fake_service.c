/* A stand-in for memlog-service: takes the same orders and writes, instead of a dump, what it was
 * told, one line a client. tests/host/tree_test.py reads that. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ev.h>

#include "ipc/channel/channel.h"
#include "ipc/wire/last_words.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"

enum { SERVICE_FD = 3, WORDS_FD = 4, CLIENTS_MAX = 4096 };

struct client {
    unsigned long long fork_serial;
    unsigned long long footprint;
    unsigned id, parent_id, pid, role, state, forked, from_startup, profile, stopped;
    int exit_code;
    unsigned signal;
    int pipe, staging;
    char name[257];
    char line[1024];
};

static struct client clients[CLIENTS_MAX];
static unsigned clients_count;
static struct ev_loop *loop;

static struct client *find(unsigned id) {
    for (unsigned i = 0; i < clients_count; i++) {
        if (clients[i].id == id) {
            return &clients[i];
        }
    }
    abort(); /* the host speaks of a client that it never added */
}

static void copy_line(struct client *client, const struct memlog_service_string_array *array) {
    client->line[0] = '\0';
    for (unsigned i = 0; i < array->count; i++) {
        size_t used = strlen(client->line);
        (void)snprintf(
            client->line + used,
            sizeof(client->line) - used,
            "%s%.*s",
            i > 0 ? " " : "",
            (int)array->items[i].count_bytes,
            array->items[i].data
        );
    }
}

static bool one_worker; /* our command line says so */

static void on_configure(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_configure_request *request
) {
    (void)context;
    if (request->setup.version != MEMLOG_SERVICE_SERVICE_VERSION ||
        request->setup.start.realtime_ns == 0) {
        abort();
    }
    const char *missing = getenv("FAKE_MISSING");
    const struct memlog_service_configure_reply reply = {
        .missing_sandbox = ml_string_of(missing != NULL ? missing : "")};
    /* "late-service" in the folder of the run: the first one takes clients before it is ready. */
    if (one_worker || access("late-service", F_OK) != 0) {
        (void)!memlog_service_configure_answer(call, &reply);
    }
}

static void on_add(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_add_client_request *request
) {
    (void)context;
    (void)call;
    struct client *client = &clients[clients_count++];
    *client = (struct client){
        .id = request->client.id,
        .parent_id = request->client.parent_id,
        .pid = request->client.pid,
        .role = (unsigned)request->client.role,
        .forked = request->client.forked,
        .from_startup = request->client.from_startup,
        .fork_serial = request->client.fork_serial,
        .profile = request->client.profile,
        .pipe = request->event_pipe,
        .staging = request->staging,
    };
    (void)snprintf(
        client->name,
        sizeof(client->name),
        "%.*s",
        (int)request->client.name.count_bytes,
        request->client.name.data
    );
    copy_line(client, &request->client.command_line);
    static const char poison[] = " die-service-die";
    const size_t used = strlen(client->line);
    if (used >= sizeof(poison) && strcmp(client->line + used + 1 - sizeof(poison), poison) == 0) {
        const struct ml_last_words words = {.client = client->id};
        (void)!pwrite(WORDS_FD, &words, sizeof(words), 0);
        abort();
    }
}

static void on_update(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_update_process_request *request
) {
    (void)context;
    (void)call;
    struct client *client = find(request->facts.id);
    client->role = (unsigned)request->facts.role;
    client->footprint = request->facts.footprint_bytes;
    copy_line(client, &request->facts.command_line);
}

static void on_end(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_end_client_request *request
) {
    (void)context;
    (void)call;
    struct client *client = find(request->end.id);
    if (client->state != 0) {
        abort();
    }
    client->state = (unsigned)request->end.state;
    client->exit_code = request->end.exit_code;
    client->signal = request->end.signal;
}

static void
write_client(FILE *out, const struct memlog_service_dump_order *order, struct client *client) {
    bool wanted = order->ids.count == 0;
    for (unsigned i = 0; i < order->ids.count; i++) {
        wanted = wanted || order->ids.items[i] == client->id;
    }
    if (!wanted) {
        return;
    }
    char stream[256];
    ssize_t count = read(client->pipe, stream, sizeof(stream) - 1);
    stream[count > 0 ? count : 0] = '\0';
    (void)fprintf(
        out,
        "client id=%u parent=%u pid=%u role=%u state=%u forked=%u startup=%u serial=%llu code=%d "
        "signal=%u footprint=%d profile=%u stopped=%u stream=%s name=%s line=%s\n",
        client->id,
        client->parent_id,
        client->pid,
        client->role,
        client->state,
        client->forked,
        client->from_startup,
        client->fork_serial,
        client->exit_code,
        client->signal,
        client->footprint > 0,
        client->profile,
        client->stopped,
        stream,
        client->name,
        client->line
    );
}

static void on_dump(
    void *context, const struct ml_call *call, const struct memlog_service_dump_request *request
) {
    (void)context;
    FILE *out = fdopen(request->file, "w");
    if (out == NULL) {
        abort();
    }
    (void)fprintf(
        out,
        "dump reason=%d workers=%s program=%.*s\n",
        (int)request->order.reason,
        one_worker ? "one" : "any",
        (int)request->order.program.count_bytes,
        request->order.program.data
    );
    for (unsigned i = 0; i < clients_count; i++) {
        write_client(out, &request->order, &clients[i]);
    }
    for (unsigned i = 0; i < request->order.gaps.count; i++) {
        const struct memlog_service_gap *gap = &request->order.gaps.items[i];
        (void)fprintf(
            out,
            "gap id=%u ns=%llu reason=%.*s\n",
            gap->id,
            (unsigned long long)(gap->to.monotonic_ns - gap->from.monotonic_ns),
            (int)gap->reason.count_bytes,
            gap->reason.data
        );
    }
    for (unsigned i = 0; i < request->order.not_profiled.count; i++) {
        const struct memlog_service_not_profiled *item = &request->order.not_profiled.items[i];
        (void)fprintf(
            out,
            "unprofiled reason=%.*s path=%.*s\n",
            (int)item->reason.count_bytes,
            item->reason.data,
            (int)item->path.count_bytes,
            item->path.data
        );
    }
    const struct memlog_service_dump_reply reply = {
        .complete = true, .written_bytes = (unsigned long long)ftell(out), .whole = true};
    (void)fclose(out);
    (void)!memlog_service_dump_answer(call, &reply);
}

static void on_figures(
    void *context, const struct ml_call *call, const struct memlog_service_figures_request *request
) {
    (void)context;
    (void)request;
    static struct memlog_service_client_figures figures[CLIENTS_MAX];
    for (unsigned i = 0; i < clients_count; i++) {
        figures[i] = (struct memlog_service_client_figures
        ){.id = clients[i].id, .totals = {.live_bytes = 1000 + clients[i].id}, .complete = true};
    }
    const struct memlog_service_figures_reply reply = {
        .clients = {.items = figures, .count = clients_count}};
    (void)!memlog_service_figures_answer(call, &reply);
}

static void on_drain(
    void *context, const struct ml_call *call, const struct memlog_service_drain_request *request
) {
    (void)context;
    (void)request;
    const struct memlog_service_drain_reply reply = {.complete = true};
    (void)!memlog_service_drain_answer(call, &reply);
}

static void on_begin_profile(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_begin_profile_request *request
) {
    (void)context;
    find(request->id)->profile = request->profile;
    const struct memlog_service_begin_profile_reply reply = {.running = true};
    (void)!memlog_service_begin_profile_answer(call, &reply);
}

static void on_stop_client(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_stop_client_request *request
) {
    (void)context;
    find(request->id)->stopped = true;
    const struct memlog_service_stop_client_reply reply = {.running = true};
    (void)!memlog_service_stop_client_answer(call, &reply);
}

static void
on_channel_end(void *context, struct ml_channel *channel, const struct ml_channel_end *end) {
    (void)context;
    (void)channel;
    (void)end;
    ev_break(loop, EVBREAK_ALL);
}

/* Nothing is worth a dump. */
static void on_observe(
    void *context, const struct ml_call *call, const struct memlog_service_observe_request *request
) {
    (void)context;
    (void)request;
    const struct memlog_service_observe_reply reply = {.decisions = {.count = 0}};
    (void)!memlog_service_observe_answer(call, &reply);
}

static void on_show(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_show_process_request *request
) {
    (void)context; /* nothing of it is told */
    (void)request;
    const struct memlog_service_show_process_reply reply = {.laid = false};
    (void)!memlog_service_show_process_answer(call, &reply);
}

static const struct memlog_service_service_handlers handlers = {
    .configure = on_configure,
    .add_client = on_add,
    .update_process = on_update,
    .end_client = on_end,
    .dump = on_dump,
    .figures = on_figures,
    .drain = on_drain,
    .begin_profile = on_begin_profile,
    .stop_client = on_stop_client,
    .observe = on_observe,
    .show_process = on_show,
};

int main(int argc, char **argv) {
    if (argc < 2 || argc > 3 || strncmp(argv[1], "--sandbox=", 10) != 0 ||
        (argc == 3 && strcmp(argv[2], "--workers=1") != 0)) {
        return 2;
    }
    one_worker = argc == 3;
    /* The stand-in has no sandbox at all. */
    if (strcmp(argv[1], "--sandbox=strict") == 0) {
        return 3;
    }
    loop = ev_loop_new(EVFLAG_NOENV);
    const struct ml_channel_options options = {
        .loop = loop,
        .server = memlog_service_service_server(&handlers, NULL),
        .on_end = on_channel_end,
    };
    struct ml_channel *channel = NULL;
    if (ml_channel_new(SERVICE_FD, &options, &channel) != ML_OK) {
        return 1;
    }
    ev_run(loop, 0);
    ml_channel_free(channel);
    ev_loop_destroy(loop);
    return 0;
}
