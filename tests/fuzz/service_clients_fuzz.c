/* Three clients that do what the input says, each with a pipe and with staging that changes while
 * it is read; what they leave is dumped, and the dump is whole. Each step: a byte that says what
 * and who, then what it needs. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/dump/writer.h"
#include "service/session/client.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "tests/fuzz/fuzz.h"
#include "tests/service/session/check.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/model/trace_reader.h"

enum {
    CLIENTS = 3,
    LANES = 4,
    WANTS = 8,
    SLOTS = 2,
    MEMORY_MAX_BYTES = 8 << 20,
    QUOTA_BYTES = 48 << 10, /* of the last client: it may be lost for want of memory */
    DUMP_MAX_BYTES = 16 << 20
};

/* What a step does. */
enum {
    STEP_BYTES,   /* count, bytes: down the pipe as they are */
    STEP_FRAME,   /* lane, count, payload: down the pipe in a frame of the lane's next chunk */
    STEP_STAGE,   /* lane, count, payload: into the staged chunk, and published */
    STEP_LANE,    /* lane, field, value: the lane's header */
    STEP_HEADER,  /* field, value: staging's header */
    STEP_LOOK,    /* lane, field, value: look, and that changes before the copies are checked */
    STEP_ADVANCE, /* by how much */
    STEP_END,
    STEP_BEGIN, /* number of the profile */
    STEP_STOP,
    STEP_SEAL, /* lane, whether: its staged chunk goes down the pipe, and another one begins */
    STEP_DUMP,
    STEP_COUNT
};

struct input {
    const uint8_t *at;
    size_t left;
};

struct stage {
    struct ml_client *client;
    struct ml_staging_header header;
    struct ml_staging_lane lanes[LANES];
    uint8_t slots[LANES][SLOTS][ML_FRAME_MAX_BYTES];
    uint32_t profile;
};

static struct stage stages[CLIENTS];
static struct ml_session *session;
static uint64_t now;

static uint8_t next(struct input *in) {
    if (in->left == 0) {
        return 0;
    }
    in->left--;
    return *in->at++;
}

static const uint8_t *take(struct input *in, size_t *count_bytes) {
    const uint8_t *bytes = in->at;
    *count_bytes = *count_bytes < in->left ? *count_bytes : in->left;
    in->at += *count_bytes;
    in->left -= *count_bytes;
    return bytes;
}

/* A small number, or one near the top of some range. */
static uint64_t value(struct input *in) {
    const uint8_t low = next(in);
    const uint8_t how = next(in);
    const uint64_t number = low | (uint64_t)(how & 0x1f) << 8;
    switch (how >> 5) {
    case 5:
        return number << ML_PUBLISHED_SHIFT;
    case 6:
        return number << ML_PROFILE_SHIFT;
    case 7:
        return UINT64_MAX - number;
    default:
        return number;
    }
}

static uint64_t chunk_of(const struct ml_staging_lane *lane) {
    return lane->published >> ML_PUBLISHED_SHIFT;
}

/* The slot as memory has it, whatever chunk that is. */
static uint8_t *slot_of(struct stage *stage, size_t lane, uint64_t chunk) {
    return stage->slots[lane][chunk % SLOTS];
}

/* A frame as the client's own code writes one. */
static void send_frame(
    struct stage *stage, size_t lane, uint64_t chunk, const uint8_t *payload, size_t count_bytes
) {
    uint8_t frame[ML_FRAME_MAX_BYTES];
    const struct ml_frame_header header = {
        .chunk_number = chunk, .end_bytes = (uint16_t)count_bytes, .lane = (uint16_t)lane};
    if (count_bytes == 0 || count_bytes > ML_CHUNK_MAX_BYTES) {
        return;
    }
    ml_frame_header_write(frame, &header);
    memcpy(frame + ML_FRAME_HEADER_BYTES, payload, count_bytes);
    (void)!ml_client_feed(stage->client, frame, ML_FRAME_HEADER_BYTES + count_bytes);
}

static void send_bytes(struct stage *stage, struct input *in) {
    size_t count_bytes = next(in);
    const uint8_t *bytes = take(in, &count_bytes);
    (void)!ml_client_feed(stage->client, bytes, count_bytes);
}

static void frame(struct stage *stage, struct input *in) {
    const size_t lane = next(in) % LANES;
    size_t count_bytes = next(in);
    const uint8_t *payload = take(in, &count_bytes);
    struct ml_staging_lane *header = &stage->lanes[lane];
    send_frame(stage, lane, header->sent, payload, count_bytes);
    header->sent++;
    header->published = header->sent << ML_PUBLISHED_SHIFT;
}

static void put_staged(struct stage *stage, struct input *in) {
    const size_t lane = next(in) % LANES;
    size_t count_bytes = next(in);
    const uint8_t *payload = take(in, &count_bytes);
    struct ml_staging_lane *header = &stage->lanes[lane];
    const size_t used = header->published & ML_PUBLISHED_BYTES_MASK;
    if (used + count_bytes > ML_CHUNK_MAX_BYTES) {
        return;
    }
    memcpy(
        slot_of(stage, lane, chunk_of(header)) + ML_FRAME_HEADER_BYTES + used, payload, count_bytes
    );
    header->published = chunk_of(header) << ML_PUBLISHED_SHIFT | (used + count_bytes);
    header->produced++;
}

/* The staged chunk is full. It may stay in staging for a while. */
static void seal(struct stage *stage, struct input *in) {
    const size_t lane = next(in) % LANES;
    struct ml_staging_lane *header = &stage->lanes[lane];
    const uint64_t chunk = chunk_of(header);
    const size_t count_bytes = header->published & ML_PUBLISHED_BYTES_MASK;
    uint8_t *slot = slot_of(stage, lane, chunk);
    const struct ml_frame_header frame_header = {
        .chunk_number = chunk, .end_bytes = (uint16_t)count_bytes, .lane = (uint16_t)lane};
    ml_frame_header_write(slot, &frame_header);
    if (next(in) % 2 == 0) {
        send_frame(stage, lane, chunk, slot + ML_FRAME_HEADER_BYTES, count_bytes);
        header->sent = chunk + 1;
    }
    header->published = (chunk + 1) << ML_PUBLISHED_SHIFT;
}

static void change_lane(struct stage *stage, struct input *in) {
    struct ml_staging_lane *lane = &stage->lanes[next(in) % LANES];
    uint64_t *const fields[] = {
        &lane->published,
        &lane->sent,
        &lane->lost_chunks,
        &lane->lost_events,
        &lane->waited_ns,
        &lane->longest_wait_ns,
        &lane->produced};
    const uint8_t field = next(in);
    if (field % 8 == 7) {
        lane->published ^= ML_PUBLISHED_BUSY;
    } else {
        *fields[field % 8] = value(in);
    }
}

static void change_header(struct stage *stage, struct input *in) {
    struct ml_staging_header *header = &stage->header;
    uint64_t *const counters[] = {
        &header->truncated_stacks,
        &header->broken_stacks,
        &header->lost_no_lane,
        &header->lost_nested,
        &header->lost_no_pipe,
        &header->lost_no_node,
        &header->node_count};
    const uint8_t field = next(in);
    if (field % 8 == 7) {
        header->lanes_used = next(in) % (LANES + 2);
        header->slots = next(in) % (SLOTS + 2);
    } else {
        *counters[field % 8] = value(in);
    }
    /* What it says of its cost, by the same bytes. */
    header->recording_ticks = header->truncated_stacks;
    header->passed_calls = header->broken_stacks;
    header->pass_ticks_256 = (uint32_t)header->lost_no_lane;
}

static void look(struct stage *stage, struct input *in) {
    static uint8_t copies[WANTS][ML_FRAME_MAX_BYTES];
    struct ml_client_want wants[WANTS];
    size_t wanted = 0;
    const uint32_t lanes = stage->header.lanes_used < LANES ? stage->header.lanes_used : LANES;
    if (ml_client_lanes(
            stage->client, &stage->header, stage->lanes, lanes, wants, WANTS, &wanted
        ) != ML_OK) {
        return;
    }
    REQUIRE(wanted <= WANTS);
    for (size_t i = 0; i < wanted; i++) {
        const struct ml_client_want *want = &wants[i];
        REQUIRE(want->lane < lanes && want->start_bytes <= want->end_bytes);
        REQUIRE(want->end_bytes <= ML_FRAME_MAX_BYTES && want->offset >= ML_STAGING_DATA_OFFSET);
        const uint64_t at = want->offset - ML_STAGING_DATA_OFFSET;
        const size_t count_bytes = want->end_bytes - want->start_bytes;
        if (at > sizeof(stage->slots) - count_bytes) {
            return; /* pread() would say so */
        }
        memcpy(copies[i], (const uint8_t *)stage->slots + at, count_bytes);
    }
    change_lane(stage, in);
    for (size_t i = 0; i < wanted; i++) {
        (void)!ml_client_tail(stage->client, &wants[i], copies[i], &stage->lanes[wants[i].lane]);
    }
    (void)ml_client_settled(stage->client);
}

struct dump {
    uint8_t *bytes;
    size_t count_bytes;
};

static enum ml_status append(void *context, const uint8_t *bytes, size_t count_bytes) {
    struct dump *dump = context;
    REQUIRE(count_bytes <= DUMP_MAX_BYTES - dump->count_bytes);
    memcpy(dump->bytes + dump->count_bytes, bytes, count_bytes);
    dump->count_bytes += count_bytes;
    return ML_OK;
}

/* Whatever the clients were, the analyzer reads what is written of them. */
static void write_and_read_dump(void) {
    static struct dump dump;
    struct ml_snapshot *snapshot = NULL;
    struct ml_profile profile = {0};
    uint64_t written_bytes = 0;
    if (dump.bytes == NULL) {
        dump.bytes = malloc(DUMP_MAX_BYTES);
        REQUIRE(dump.bytes != NULL);
    }
    dump.count_bytes = 0;
    REQUIRE(ml_session_snapshot(session, NULL, 0, &snapshot) == ML_OK);
    const struct ml_dump_sink sink = {.write = append, .context = &dump};
    REQUIRE(ml_dump_write(snapshot, &sink, &written_bytes) == ML_OK);
    REQUIRE(written_bytes == dump.count_bytes);
    FILE *file = fmemopen(dump.bytes, dump.count_bytes, "r");
    REQUIRE(file != NULL && ml_trace_read(file, 0, &profile) == ML_OK);
    REQUIRE(!profile.damaged && !profile.truncated);
    REQUIRE(profile.processes_count == snapshot->processes_count);
    for (size_t i = 0; i < profile.processes_count; i++) {
        REQUIRE(!profile.processes[i].partial);
        REQUIRE(
            profile.processes[i].cells_count + profile.processes[i].apart_count ==
            snapshot->processes[i].cells_count
        );
    }
    (void)fclose(file);
    ml_profile_fini(&profile);
    ml_snapshot_free(snapshot);
}

static void end(struct stage *stage, struct input *in) {
    const struct ml_client_end how = {.state = 1, .end = {.ticks = now}};
    ml_client_pipe_over(stage->client);
    look(stage, in);
    (void)!ml_client_ended(stage->client, &how);
}

static void begin(struct stage *stage, struct input *in) {
    stage->profile = next(in) % 4;
    for (size_t i = 0; i < LANES; i++) {
        const uint64_t first = ml_profile_first_chunk(stage->profile);
        stage->lanes[i] =
            (struct ml_staging_lane){.published = first << ML_PUBLISHED_SHIFT, .sent = first};
    }
    (void)!ml_client_begin(stage->client, stage->profile);
}

static void step(struct input *in) {
    const uint8_t what = next(in);
    struct stage *stage = &stages[what / STEP_COUNT % CLIENTS];
    switch (what % STEP_COUNT) {
    case STEP_BYTES:
        send_bytes(stage, in);
        break;
    case STEP_FRAME:
        frame(stage, in);
        break;
    case STEP_STAGE:
        put_staged(stage, in);
        break;
    case STEP_LANE:
        change_lane(stage, in);
        break;
    case STEP_HEADER:
        change_header(stage, in);
        break;
    case STEP_LOOK:
        look(stage, in);
        break;
    case STEP_ADVANCE:
        now += value(in);
        REQUIRE(ml_session_advance(session, now) == ML_OK);
        break;
    case STEP_END:
        end(stage, in);
        break;
    case STEP_BEGIN:
        begin(stage, in);
        break;
    case STEP_STOP:
        ml_client_stop(stage->client, now);
        break;
    case STEP_SEAL:
        seal(stage, in);
        break;
    default:
        write_and_read_dump();
        break;
    }
}

static void open_clients(void) {
    memset(stages, 0, sizeof(stages));
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const struct ml_client_setup setup = {
            .id = i + 1,
            .parent_id = i,
            .pid = 100 + i,
            .parent_pid = 99 + i,
            .forked = i > 0,
            .sampling_bytes = 1};
        ml_session_quota(session, i + 1 < CLIENTS ? 0 : QUOTA_BYTES);
        REQUIRE(ml_session_add(session, &setup, &stages[i].client) == ML_OK);
        stages[i].header = (struct ml_staging_header
        ){.magic = ML_STAGING_MAGIC,
          .version = ML_STAGING_VERSION,
          .slots = SLOTS,
          .lanes_used = LANES};
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    const struct ml_timestamp start = {.ticks = 1};
    struct input in = {.at = data, .left = count_bytes};
    session = ml_session_new(&start, MEMORY_MAX_BYTES);
    REQUIRE(session != NULL);
    ml_session_patience(session, 1000);
    now = 1;
    open_clients();
    while (in.left > 0) {
        step(&in);
    }
    REQUIRE(ml_session_advance(session, now) == ML_OK);
    REQUIRE(ml_session_check(session));
    for (int i = 0; i < CLIENTS; i++) {
        end(&stages[i], &in);
    }
    REQUIRE(ml_session_check(session));
    write_and_read_dump();
    ml_session_free(session);
    return 0;
}
