#include "service/ingest/client_io.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ipc/channel/channel.h"
#include "service/session/client.h"

enum {
    /* A pipe's default capacity: most reads empty it. */
    PIPE_READ_BYTES = 1 << 16,
    /* The largest pipe of an ordinary user (/proc/sys/fs/pipe-max-size): everything that was in the
     * pipe when the round began. */
    ROUND_PIPE_BYTES = 1 << 20,
    /* A process that has ended writes no more, but one that inherited its pipe may, for ever. */
    LAST_PIPE_BYTES = 64 << 20,
    WANTS_MAX = 1024,
    /* Reads of one client's staging in one round: every lane's chunk of the widest staging. Chunks
     * published faster than that wait for the next round. */
    LOOKS_MAX = ML_LANES_MAX / WANTS_MAX
};

struct ml_io_scratch {
    uint8_t pipe[PIPE_READ_BYTES];
    struct ml_staging_header header;
    struct ml_staging_lane lanes[ML_LANES_MAX];
    struct ml_client_want wants[WANTS_MAX];
    uint8_t chunk[ML_FRAME_MAX_BYTES];
};

static const uint8_t io_next[ML_IO_STATE_COUNT][ML_IO_EVENT_COUNT] = {
    [ML_IO_LOST] = {[ML_IO_END] = ML_IO_ENDED},
    [ML_IO_STREAMING] = {[ML_IO_HANGUP] = ML_IO_SILENT, [ML_IO_END] = ML_IO_ENDING},
    [ML_IO_SILENT] = {[ML_IO_END] = ML_IO_ENDING},
    [ML_IO_ENDING] = {[ML_IO_HANGUP] = ML_IO_ENDING, [ML_IO_READ] = ML_IO_ENDED},
    [ML_IO_ENDED] = {[ML_IO_END] = ML_IO_ENDED, [ML_IO_BROKEN] = ML_IO_ENDED},
};

struct ml_io_scratch *ml_io_scratch_new(void) {
    return malloc(sizeof(struct ml_io_scratch));
}

void ml_io_scratch_free(struct ml_io_scratch *take_scratch) {
    free(take_scratch);
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static void close_fd(int *fd) {
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

void ml_client_io_on(struct ml_client_io *io, enum ml_io_event event) {
    const enum ml_io_state before = io->state;
    io->state = (enum ml_io_state)io_next[before][event];
    /* The host keeps a spare read end of each pipe, so closing ours does not remove it from an
     * epoll: remove it explicitly, while the descriptor is open. (libev relies on the close, hence
     * an epoll of our own inside its loop.) */
    if (before == ML_IO_STREAMING && io->state != ML_IO_STREAMING) {
        struct epoll_event none = {0};
        (void)epoll_ctl(io->pipes_fd, EPOLL_CTL_DEL, io->pipe_fd, &none);
    }
    if (event == ML_IO_HANGUP) {
        close_fd(&io->pipe_fd);
    }
    if (io->state == ML_IO_LOST || io->state == ML_IO_ENDED) {
        close_fd(&io->pipe_fd);
        close_fd(&io->staging_fd);
    }
}

enum ml_status ml_client_io_open(
    struct ml_client_io *io,
    struct ml_client *client,
    uint32_t id,
    int pipes_fd,
    int take_pipe_fd,
    int take_staging_fd
) {
    *io = (struct ml_client_io
    ){.client = client,
      .id = id,
      .state = ML_IO_STREAMING,
      .pipes_fd = pipes_fd,
      .pipe_fd = take_pipe_fd,
      .staging_fd = take_staging_fd,
      .pipe_bytes = ml_channel_pipe_bytes(take_pipe_fd)};
    int on = 1;
    uint8_t first = 0;
    struct epoll_event readable = {.events = EPOLLIN, .data = {.ptr = io}};
    if (ioctl(io->pipe_fd, FIONBIO, &on) != 0 || pread(io->staging_fd, &first, 1, 0) != 1 ||
        epoll_ctl(pipes_fd, EPOLL_CTL_ADD, io->pipe_fd, &readable) != 0) {
        ml_client_io_on(io, ML_IO_BROKEN);
        return ML_PEER_HANDLE;
    }
    ml_client_pipe(client, io->pipe_bytes);
    return ML_OK;
}

enum ml_status
ml_client_io_read_pipe(struct ml_client_io *io, struct ml_io_scratch *scratch, size_t limit_bytes) {
    size_t total_bytes = 0;
    /* An ended process can add no more than its pipe still holds. */
    const bool ending = io->state == ML_IO_ENDING;
    bool over = io->pipe_fd < 0;
    while (!over && total_bytes < limit_bytes && !ml_client_stuffed(io->client) &&
           !ml_client_full(io->client)) {
        const size_t part_bytes = smaller(sizeof(scratch->pipe), ml_client_part_bytes(io->client));
        const ssize_t count = read(io->pipe_fd, scratch->pipe, part_bytes);
        if (count == 0) {
            ml_client_io_on(io, ML_IO_HANGUP);
            over = true;
            break;
        }
        if (count < 0) {
            if (errno == EAGAIN) {
                over = true;
                break;
            }
            if (errno == EINTR) {
                continue;
            }
            return ML_ENV_SYSTEM;
        }
        total_bytes += (size_t)count;
        io->read_bytes += (uint64_t)count;
        const enum ml_status status = ml_client_feed(io->client, scratch->pipe, (size_t)count);
        if (status != ML_OK) {
            return status;
        }
    }
    if (ending) {
        io->last_bytes += total_bytes;
        /* Else it is not empty, and no other process is still writing into it. */
        io->more = !over && io->last_bytes < LAST_PIPE_BYTES;
        if (!io->more && !ml_client_stuffed(io->client)) {
            ml_client_pipe_over(io->client);
        }
    }
    return ML_OK;
}

/* Exactly that many bytes: staging is sealed, so fewer mean that it is smaller than its own header
 * says. */
static enum ml_status copy_staging(int fd, void *to, size_t count_bytes, uint64_t offset) {
    const ssize_t count = pread(fd, to, count_bytes, (off_t)offset);
    if (count < 0) {
        return ML_ENV_SYSTEM;
    }
    return (size_t)count == count_bytes ? ML_OK : ML_PEER_SHORT;
}

static uint64_t lane_offset(uint32_t lane) {
    return (uint64_t)ML_STAGING_LANES_OFFSET + (uint64_t)lane * ML_STAGING_LANE_BYTES;
}

static enum ml_status copy_want(
    struct ml_client_io *io, struct ml_io_scratch *scratch, const struct ml_client_want *want
) {
    /* The session derived it from untrusted data: check before use. */
    if (want->lane >= ML_LANES_MAX || want->end_bytes < want->start_bytes ||
        want->end_bytes - want->start_bytes > sizeof(scratch->chunk)) {
        return ML_BUG_CONTRACT;
    }
    const size_t count_bytes = want->end_bytes - want->start_bytes;
    enum ml_status status = copy_staging(io->staging_fd, scratch->chunk, count_bytes, want->offset);
    struct ml_staging_lane after = {0};
    if (status == ML_OK) {
        status = copy_staging(io->staging_fd, &after, sizeof(after), lane_offset(want->lane));
    }
    return status == ML_OK ? ml_client_tail(io->client, want, scratch->chunk, &after) : status;
}

/* One pass over staging. *out_more: there was more to copy than fits one answer. */
static enum ml_status look_once(
    struct ml_client_io *io, struct ml_io_scratch *scratch, bool *out_active, bool *out_more
) {
    *out_more = false;
    enum ml_status status =
        copy_staging(io->staging_fd, &scratch->header, sizeof(scratch->header), 0);
    if (status != ML_OK) {
        return status;
    }
    const uint32_t lanes_count = scratch->header.lanes_used;
    if (lanes_count > ML_LANES_MAX) {
        return ML_PEER_RANGE;
    }
    status = copy_staging(
        io->staging_fd,
        scratch->lanes,
        (size_t)lanes_count * sizeof(scratch->lanes[0]),
        ML_STAGING_LANES_OFFSET
    );
    size_t wants_count = 0;
    if (status == ML_OK) {
        status = ml_client_lanes(
            io->client,
            &scratch->header,
            scratch->lanes,
            lanes_count,
            scratch->wants,
            WANTS_MAX,
            &wants_count
        );
    }
    for (size_t i = 0; status == ML_OK && i < wants_count && !ml_client_stuffed(io->client); i++) {
        status = copy_want(io, scratch, &scratch->wants[i]);
    }
    *out_active = *out_active || wants_count > 0;
    *out_more = wants_count == WANTS_MAX;
    return status;
}

enum ml_status
ml_client_io_round(struct ml_client_io *io, struct ml_io_scratch *scratch, bool *out_active) {
    const size_t limit_bytes = io->state == ML_IO_ENDING ? LAST_PIPE_BYTES : ROUND_PIPE_BYTES;
    const uint64_t before_bytes = io->read_bytes;
    enum ml_status status = ml_client_io_read_pipe(io, scratch, limit_bytes);
    bool more = io->staging_fd >= 0;
    for (uint32_t looks = 0;
         status == ML_OK && more && looks < LOOKS_MAX && !ml_client_stuffed(io->client);
         looks++) {
        status = look_once(io, scratch, out_active, &more);
    }
    /* Chunks that were overwritten in staging during the copy have been sent down the pipe. */
    if (status == ML_OK && !ml_client_settled(io->client)) {
        status = ml_client_io_read_pipe(io, scratch, limit_bytes);
    }
    *out_active = *out_active || io->read_bytes != before_bytes;
    return status;
}
