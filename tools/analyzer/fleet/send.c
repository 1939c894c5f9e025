#include "tools/analyzer/fleet/send.h"

#include <errno.h>
#include <unistd.h>

struct sender {
    const struct ml_fleet_rows *rows;
    int fd;
    enum ml_status status;
    uint8_t packet[ML_PACKET_MAX_BYTES];
};

/* What was encoded. */
static void put(struct sender *sender, enum ml_status status, size_t count) {
    ssize_t written = -1;

    if (sender->status != ML_OK) {
        return;
    }
    if (status != ML_OK) {
        sender->status = status;
        return;
    }
    do {
        written = write(sender->fd, sender->packet, count);
    } while (written < 0 && errno == EINTR);
    sender->status = written == (ssize_t)count ? ML_OK : ML_ENV_SYSTEM;
}

#define PUT(sender, name, message)                                                                 \
    do {                                                                                           \
        struct ml_handles handles;                                                                 \
        size_t packet_bytes = 0;                                                                   \
        const enum ml_status encoded = memlog_fleet_##name##_request_encode(                       \
            (message), 0, (sender)->packet, sizeof((sender)->packet), &packet_bytes, &handles      \
        );                                                                                         \
        put((sender), encoded, packet_bytes);                                                      \
    } while (0)

static void put_frames(struct sender *sender) {
    const struct ml_fleet_rows *rows = sender->rows;
    struct memlog_fleet_frame some[MEMLOG_FLEET_FRAMES_IN_MESSAGE];
    uint32_t count = 0;

    for (size_t i = 0; i < rows->frames_count; i++) {
        const struct ml_fleet_frame *frame = &rows->frames[i];
        some[count++] = (struct memlog_fleet_frame){
            .function = ml_fleet_string_of(rows, frame->function),
            .module = ml_fleet_string_of(rows, frame->module),
            .build_id = ml_fleet_string_of(rows, frame->build_id),
            .offset = frame->offset,
        };
        if (count == MEMLOG_FLEET_FRAMES_IN_MESSAGE || i + 1 == rows->frames_count) {
            const struct memlog_fleet_frames_request message = {
                .frames = {.items = some, .count = count}};
            PUT(sender, frames, &message);
            count = 0;
        }
    }
}

static void put_stacks(struct sender *sender) {
    const struct ml_fleet_rows *rows = sender->rows;
    struct memlog_fleet_stack some[MEMLOG_FLEET_STACKS_IN_MESSAGE];
    uint32_t count = 0;

    for (size_t i = 0; i < rows->stacks_count; i++) {
        some[count++] = (struct memlog_fleet_stack
        ){.parent = rows->stacks[i].parent, .frame = rows->stacks[i].frame + 1};
        if (count == MEMLOG_FLEET_STACKS_IN_MESSAGE || i + 1 == rows->stacks_count) {
            const struct memlog_fleet_stacks_request message = {
                .stacks = {.items = some, .count = count}};
            PUT(sender, stacks, &message);
            count = 0;
        }
    }
}

static void put_rows(struct sender *sender) {
    const struct ml_fleet_rows *rows = sender->rows;
    struct memlog_fleet_row some[MEMLOG_FLEET_ROWS_IN_MESSAGE];
    uint32_t count = 0;

    for (size_t i = 0; i < rows->rows_count; i++) {
        const struct ml_fleet_row *row = &rows->rows[i];
        some[count++] = (struct memlog_fleet_row){
            .role = ml_fleet_string_of(rows, row->role),
            .process = ml_fleet_string_of(rows, row->process),
            .heap = ml_fleet_string_of(rows, row->heap),
            .type = ml_fleet_string_of(rows, row->type),
            .stack = row->stack,
            .figures = row->figures,
        };
        if (count == MEMLOG_FLEET_ROWS_IN_MESSAGE || i + 1 == rows->rows_count) {
            const struct memlog_fleet_rows_request message = {
                .rows = {.items = some, .count = count}};
            PUT(sender, rows, &message);
            count = 0;
        }
    }
}

enum ml_status ml_fleet_send(const struct ml_fleet_rows *rows, int fd) {
    struct sender sender = {.rows = rows, .fd = fd, .status = ML_OK};
    const struct memlog_fleet_end_request end = {
        .frames = (uint32_t)rows->frames_count,
        .stacks = (uint32_t)rows->stacks_count,
        .rows = (uint32_t)rows->rows_count};

    PUT(&sender, begin, &rows->head);
    put_frames(&sender);
    put_stacks(&sender);
    put_rows(&sender);
    PUT(&sender, end, &end);
    return sender.status;
}

void ml_fleet_send_refusal(const char *reason, int fd) {
    struct sender sender = {.fd = fd, .status = ML_OK};
    const struct memlog_fleet_refused_request message = {
        .reason = ml_string_cut(reason, MEMLOG_FLEET_REFUSED_REQUEST_REASON_LIMIT)};

    PUT(&sender, refused, &message);
}
