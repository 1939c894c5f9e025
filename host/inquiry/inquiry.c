#include "host/inquiry/inquiry.h"

#include <stdio.h>

#include "base/printable.h"
#include "ipc/channel/channel.h"

static enum ml_status connect_to(struct ml_inquiry *inquiry, struct ml_error_message *error) {
    const struct ml_channel_options options = {.loop = NULL};
    int fd = -1;
    enum ml_status status = ml_socket_directory_connect(inquiry->path, &fd, error);
    if (status == ML_OK) {
        status = ml_channel_new(fd, &options, &inquiry->channel);
        if (status != ML_OK) {
            ml_error_set(error, "cannot speak to the running memlog: %s", ml_status_text(status));
        }
    }
    return status;
}

static void connect_again(struct ml_inquiry *inquiry) {
    struct ml_error_message unused = {.text = ""};
    if (connect_to(inquiry, &unused) == ML_ENV_MISSING) {
        inquiry->state = ML_INQUIRY_GONE;
    }
}

/* The connection has ended. A host that never answered does not speak our version, and would close
 * the next one, too. */
static void lose(struct ml_inquiry *inquiry) {
    ml_channel_free(inquiry->channel);
    inquiry->channel = NULL;
    inquiry->is_asked = false;
    inquiry->state = inquiry->has_answered ? ML_INQUIRY_FAILED : ML_INQUIRY_GONE;
    if (inquiry->has_answered) {
        connect_again(inquiry);
    }
}

enum ml_status ml_inquiry_init(
    struct ml_inquiry *inquiry,
    const char *path,
    void (*on_ps)(void *context, const struct memlog_host_ps_reply *reply),
    void *context,
    struct ml_error_message *error
) {
    *inquiry = (struct ml_inquiry){.on_ps = on_ps, .context = context};
    (void)snprintf(inquiry->path, sizeof(inquiry->path), "%s", path);
    return connect_to(inquiry, error);
}

void ml_inquiry_fini(struct ml_inquiry *inquiry) {
    ml_channel_free(inquiry->channel);
    inquiry->channel = NULL;
}

/* What was asked is answered. False: without a reply. */
static bool is_answer(struct ml_inquiry *inquiry, enum ml_status status) {
    inquiry->is_asked = false;
    inquiry->has_answered = inquiry->has_answered || status == ML_OK;
    inquiry->state = status == ML_OK ? ML_INQUIRY_ANSWERED : ML_INQUIRY_FAILED;
    return status == ML_OK;
}

static void
on_reply(void *context, enum ml_status status, const struct memlog_host_ps_reply *reply) {
    struct ml_inquiry *inquiry = context;
    if (is_answer(inquiry, status)) {
        inquiry->on_ps(inquiry->context, reply);
    }
}

static void
on_snapshot(void *context, enum ml_status status, const struct memlog_host_snapshot_reply *reply) {
    struct ml_inquiry *inquiry = context;
    if (is_answer(inquiry, status)) {
        (void)ml_printable_copy(
            reply->trouble.data,
            reply->trouble.count_bytes,
            inquiry->trouble,
            sizeof(inquiry->trouble)
        );
    }
}

/* Whether something can be asked now. */
static bool is_ready(struct ml_inquiry *inquiry) {
    if (inquiry->is_asked || inquiry->state == ML_INQUIRY_GONE) {
        return false;
    }
    if (inquiry->channel == NULL) {
        connect_again(inquiry);
    }
    return inquiry->channel != NULL;
}

void ml_inquiry_snapshot(struct ml_inquiry *inquiry, int fd) {
    const struct memlog_host_snapshot_request request = {
        .version = MEMLOG_HOST_HOST_VERSION, .file = fd};
    if (is_ready(inquiry)) {
        struct ml_port *port = ml_channel_port(inquiry->channel);
        inquiry->is_asked = memlog_host_snapshot(port, &request, on_snapshot, inquiry) == ML_OK;
    }
}

void ml_inquiry_ask(struct ml_inquiry *inquiry) {
    const struct memlog_host_ps_request request = {.version = MEMLOG_HOST_HOST_VERSION};
    if (is_ready(inquiry)) {
        inquiry->is_asked =
            memlog_host_ps(ml_channel_port(inquiry->channel), &request, on_reply, inquiry) == ML_OK;
    }
}

enum ml_inquiry_state ml_inquiry_turn(struct ml_inquiry *inquiry) {
    if (inquiry->state == ML_INQUIRY_GONE) {
        return ML_INQUIRY_GONE;
    }
    inquiry->state = inquiry->channel != NULL ? ML_INQUIRY_WAITS : ML_INQUIRY_FAILED;
    if (inquiry->channel != NULL) {
        const enum ml_status status = ml_channel_receive(inquiry->channel, 0);
        if (status != ML_OK && status != ML_ENV_AGAIN) {
            lose(inquiry);
        }
    }
    return inquiry->state;
}
