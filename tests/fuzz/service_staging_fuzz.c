/* A client's staging and pipe, read by position while another thread goes on writing there: what
 * the service copies need not fit together, and no two readings of a word are the same.
 *
 * Input: how many rounds are read, how many changes come before the first, then changes of ten
 * bytes (a place, a word). The rest of them are made over and over while the rounds are read. The
 * same bytes are what stands in the slots, and in the pipe. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "service/ingest/client_io.h"
#include "service/session/client.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "tests/fuzz/fuzz.h"
#include "tests/service/session/check.h"

enum {
    LANES = 4,
    SLOTS = 2,
    CHANGE_BYTES = 10,
    CHANGES_MAX = 400,
    ROUNDS_MAX = 16,
    HEADER_WORDS = 16,
    LANE_WORDS = ML_STAGING_LANE_BYTES / 8,
    SLOT_WORDS = 32, /* of each slot: its frame header and the first records */
    WORDS = HEADER_WORDS + LANES * (LANE_WORDS + SLOTS * SLOT_WORDS),
    MEMORY_MAX_BYTES = 8 << 20
};

struct change {
    _Atomic uint64_t *word;
    uint64_t value;
};

/* Who goes on writing: woken for each input, quiet between them. */
struct writer {
    struct change changes[CHANGES_MAX];
    size_t count;
    atomic_int state; /* enum writer_state */
};

enum writer_state { QUIET, WRITING, BEING_STOPPED };

static struct writer writer;
static uint8_t *staging;
static int staging_fd = -1;
static int pipes_fd = -1;
static struct ml_io_scratch *scratch;

static void *write_on(void *context) {
    (void)context;
    for (;;) {
        while (atomic_load(&writer.state) == QUIET) {
            (void)usleep(20);
        }
        while (atomic_load(&writer.state) == WRITING) {
            for (size_t i = 0; i < writer.count; i++) {
                atomic_store_explicit(
                    writer.changes[i].word, writer.changes[i].value, memory_order_relaxed
                );
            }
        }
        atomic_store(&writer.state, QUIET);
    }
    return NULL;
}

static void begin(void) {
    pthread_t thread;
    staging_fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(staging_fd >= 0);
    REQUIRE(ftruncate(staging_fd, (off_t)ml_staging_size_bytes(SLOTS)) == 0);
    REQUIRE(fcntl(staging_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
    staging =
        mmap(NULL, ml_staging_size_bytes(SLOTS), PROT_READ | PROT_WRITE, MAP_SHARED, staging_fd, 0);
    REQUIRE(staging != MAP_FAILED);
    pipes_fd = epoll_create1(EPOLL_CLOEXEC);
    scratch = ml_io_scratch_new();
    REQUIRE(pipes_fd >= 0 && scratch != NULL);
    REQUIRE(pthread_create(&thread, NULL, write_on, NULL) == 0);
    (void)pthread_detach(thread);
}

/* The word at a place that an input names. */
static _Atomic uint64_t *word_at(uint32_t place) {
    uint64_t offset = 0;
    place %= WORDS;
    if (place < HEADER_WORDS) {
        offset = place * UINT64_C(8);
    } else if (place < HEADER_WORDS + LANES * LANE_WORDS) {
        offset = ML_STAGING_LANES_OFFSET + (place - HEADER_WORDS) * UINT64_C(8);
    } else {
        const uint32_t at = place - HEADER_WORDS - LANES * LANE_WORDS;
        const uint32_t slot = at / SLOT_WORDS;
        offset = ml_staging_slot_offset(slot / SLOTS, slot % SLOTS, SLOTS) +
                 at % SLOT_WORDS * UINT64_C(8);
    }
    return (_Atomic uint64_t *)(void *)(staging + offset);
}

/* A staging as a client begins it, with the input as what its threads have written. */
static void lay_out(const uint8_t *data, size_t count_bytes) {
    const struct ml_staging_header header = {
        .magic = ML_STAGING_MAGIC,
        .version = ML_STAGING_VERSION,
        .slots = SLOTS,
        .lanes_used = LANES};
    const size_t bytes = count_bytes < ML_CHUNK_MAX_BYTES ? count_bytes : ML_CHUNK_MAX_BYTES;
    memset(staging, 0, ML_STAGING_LANES_OFFSET + LANES * ML_STAGING_LANE_BYTES);
    memcpy(staging, &header, sizeof(header));
    for (uint32_t lane = 0; lane < LANES; lane++) {
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            uint8_t *at = staging + ml_staging_slot_offset(lane, slot, SLOTS);
            memset(at, 0, ML_FRAME_MAX_BYTES);
            memcpy(at + ML_FRAME_HEADER_BYTES, data, bytes);
        }
    }
}

static size_t read_changes(const uint8_t *data, size_t count_bytes, struct change *out_changes) {
    size_t count = 0;
    for (; count < CHANGES_MAX && count_bytes >= CHANGE_BYTES; count++) {
        const uint32_t place = data[0] | (uint32_t)data[1] << 8;
        out_changes[count].word = word_at(place);
        memcpy(&out_changes[count].value, data + 2, sizeof(out_changes[count].value));
        data += CHANGE_BYTES;
        count_bytes -= CHANGE_BYTES;
    }
    return count;
}

static void stop_writing(void) {
    atomic_store(&writer.state, BEING_STOPPED);
    while (atomic_load(&writer.state) != QUIET) {
        (void)usleep(1);
    }
}

static void read_rounds(struct ml_session *session, struct ml_client *client, unsigned rounds) {
    struct ml_client_io io;
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    REQUIRE(write(ends[1], staging + ml_staging_slot_offset(0, 0, SLOTS), 512) == 512);
    const int copy_fd = fcntl(staging_fd, F_DUPFD_CLOEXEC, 0);
    REQUIRE(ml_client_io_open(&io, client, 1, pipes_fd, ends[0], copy_fd) == ML_OK);
    for (unsigned i = 0; i < rounds && io.state != ML_IO_LOST; i++) {
        bool active = false;
        const enum ml_status status = ml_client_io_round(&io, scratch, &active);
        REQUIRE(ml_status_family(status) != ML_FAMILY_BUG);
        if (status != ML_OK) {
            ml_client_io_on(&io, ML_IO_BROKEN);
        }
        REQUIRE(ml_session_advance(session, 10 * (i + 1)) == ML_OK);
        REQUIRE(ml_session_check(session));
    }
    ml_client_io_on(&io, ML_IO_END);
    if (io.state == ML_IO_ENDING) {
        ml_client_io_on(&io, ML_IO_READ);
    }
    REQUIRE(io.pipe_fd == -1 && io.staging_fd == -1);
    (void)close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    const struct ml_timestamp start = {.ticks = 1};
    const struct ml_client_setup setup = {.id = 1, .pid = 101};
    const struct ml_client_end end = {.state = 1, .end = {.ticks = 500}};
    struct ml_client *client = NULL;
    struct ml_snapshot *snapshot = NULL;
    if (staging == NULL) {
        begin();
    }
    if (count_bytes < 2) {
        return 0;
    }
    const unsigned rounds = 1 + data[0] % ROUNDS_MAX;
    lay_out(data + 2, count_bytes - 2);
    writer.count = read_changes(data + 2, count_bytes - 2, writer.changes);
    const size_t before = writer.count < data[1] ? writer.count : data[1];
    for (size_t i = 0; i < before; i++) {
        atomic_store_explicit(
            writer.changes[i].word, writer.changes[i].value, memory_order_relaxed
        );
    }
    memmove(
        writer.changes, writer.changes + before, (writer.count - before) * sizeof(*writer.changes)
    );
    writer.count -= before;
    struct ml_session *session = ml_session_new(&start, MEMORY_MAX_BYTES);
    REQUIRE(session != NULL && ml_session_add(session, &setup, &client) == ML_OK);
    if (writer.count > 0) {
        atomic_store(&writer.state, WRITING);
    }
    read_rounds(session, client, rounds);
    if (writer.count > 0) {
        stop_writing();
    }
    REQUIRE(ml_client_ended(client, &end) == ML_OK && ml_session_check(session));
    REQUIRE(ml_session_snapshot(session, NULL, 0, &snapshot) == ML_OK);
    ml_snapshot_free(snapshot);
    ml_session_free(session);
    return 0;
}
