#include "service/stream/staging_reader.h"

#include <string.h>

#include "service/snapshot/accounting.h"

void ml_staging_reader_init(
    struct ml_staging_reader *staging, struct ml_budget *budget, struct ml_stream_reader *stream
) {
    *staging =
        (struct ml_staging_reader){.budget = budget, .stream = stream, .profile = stream->profile};
}

/* Dropped chunks of a lane, as the client counted them. After the pipe's end also those that should
 * have come and have not: the thread may have been killed before it counted them. */
static uint64_t lost_chunks_of(const struct ml_staging_reader *staging, uint32_t lane) {
    const struct ml_lane_view *view = &staging->lanes[lane];
    const uint64_t missing =
        staging->pipe_over ? ml_stream_reader_missing(staging->stream, lane, view->sent) : 0;
    return missing > view->lost_chunks ? missing : view->lost_chunks;
}

struct ml_lane_sums ml_staging_reader_sums(const struct ml_staging_reader *staging) {
    struct ml_lane_sums sums = staging->past;
    for (uint32_t i = 0; i < staging->lanes_count; i++) {
        const struct ml_lane_view *view = &staging->lanes[i];
        ml_add_saturating(&sums.produced, view->produced);
        ml_add_saturating(&sums.lost_events, view->lost_events);
        ml_add_saturating(&sums.lost_chunks, lost_chunks_of(staging, i));
        ml_add_saturating(&sums.waits, view->waits);
        ml_add_saturating(&sums.waited_ns, view->waited_ns);
        if (view->longest_wait_ns > sums.longest_wait_ns) {
            sums.longest_wait_ns = view->longest_wait_ns;
        }
        sums.busy_lanes += (view->published & ML_PUBLISHED_BUSY) != 0 ? 1 : 0;
    }
    return sums;
}

void ml_staging_reader_fini(struct ml_staging_reader *staging) {
    staging->past = ml_staging_reader_sums(staging);
    ml_budget_free(staging->budget, staging->lanes, staging->lanes_count * sizeof(*staging->lanes));
    staging->lanes = NULL;
    staging->lanes_count = 0;
}

void ml_staging_reader_pipe_over(struct ml_staging_reader *staging) {
    staging->pipe_over = true;
}

static uint64_t number_of(uint64_t published) {
    return published >> ML_PUBLISHED_SHIFT;
}

static uint32_t bytes_of(uint64_t published) {
    return (uint32_t)(published & ML_PUBLISHED_BYTES_MASK);
}

static enum ml_status
check_header(const struct ml_staging_reader *staging, const struct ml_staging_header *header) {
    if (header->magic != ML_STAGING_MAGIC) {
        return ML_PEER_FORM;
    }
    if (header->version != ML_STAGING_VERSION) {
        return ML_PEER_VERSION;
    }
    if (header->slots < 1 || header->slots > ML_STAGING_SLOTS_MAX) {
        return ML_PEER_RANGE;
    }
    return staging->asked && staging->slots != header->slots ? ML_PEER_STATE : ML_OK;
}

static enum ml_status grow(struct ml_staging_reader *staging, uint32_t count) {
    const uint32_t old = staging->lanes_count;
    if (count <= old) {
        return ML_OK;
    }
    const uint32_t wanted = old * 2 < count ? count : old * 2;
    struct ml_lane_view *lanes = ml_budget_resize(
        staging->budget, staging->lanes, old * sizeof(*lanes), wanted * sizeof(*lanes)
    );
    if (lanes == NULL) {
        return ML_ENV_MEMORY;
    }
    memset(lanes + old, 0, (wanted - old) * sizeof(*lanes));
    /* They were free in the last round. */
    for (uint32_t i = old; i < wanted; i++) {
        lanes[i].known_ticks = staging->round_ticks;
        lanes[i].still_since = staging->round_ticks;
    }
    staging->lanes = lanes;
    staging->lanes_count = wanted;
    return ML_OK;
}

/* Where wants go. */
struct wants {
    struct ml_client_want *wants;
    size_t capacity, count;
};

static void add_want(struct wants *wants, const struct ml_client_want *want) {
    if (wants->count < wants->capacity) {
        wants->wants[wants->count++] = *want;
    }
}

/* Every chunk below `number` has come by pipe, or is among those that were counted as dropped. */
static bool
came_or_counted(const struct ml_staging_reader *staging, uint32_t lane, uint64_t number) {
    return ml_stream_reader_missing(staging->stream, lane, number) <=
           staging->lanes[lane].lost_before;
}

/* Nothing below `sent` is still to come. */
static bool caught_up(const struct ml_staging_reader *staging, uint32_t lane) {
    return staging->pipe_over || came_or_counted(staging, lane, staging->lanes[lane].sent);
}

/* The first chunk of a lane that the pipe has not brought, nor staging as a whole. */
static uint64_t first_wanted(const struct ml_staging_reader *staging, uint32_t lane) {
    const struct ml_lane_view *view = &staging->lanes[lane];
    uint64_t number = ml_stream_reader_next(staging->stream, lane);
    number = number < view->sent ? view->sent : number;
    return number < view->staged_next ? view->staged_next : number;
}

static uint64_t
slot_offset(const struct ml_staging_reader *staging, uint32_t lane, uint64_t number) {
    return ml_staging_slot_offset(
        lane, ml_profile_first_chunk(staging->profile) + number, staging->slots
    );
}

/* The chunks of a lane that are in staging and not known. */
static void want_lane(const struct ml_staging_reader *staging, uint32_t lane, struct wants *wants) {
    const struct ml_lane_view *view = &staging->lanes[lane];
    const uint64_t last = number_of(view->published);
    if (!caught_up(staging, lane)) {
        return; /* what lies before comes first: down the pipe */
    }
    uint64_t number = first_wanted(staging, lane);
    if (last >= staging->slots && number < last - staging->slots + 1) {
        return; /* a slot holds one chunk: that one is on its way down the pipe */
    }
    for (; number < last; number++) {
        const struct ml_client_want whole = {
            .number = number,
            .offset = slot_offset(staging, lane, number),
            .lane = lane,
            .start_bytes = 0,
            .end_bytes = ML_FRAME_MAX_BYTES,
        };
        add_want(wants, &whole);
    }
    const uint32_t seen = ml_stream_reader_seen(staging->stream, lane, last);
    if (number == last && seen < bytes_of(view->published)) {
        const struct ml_client_want tail = {
            .number = last,
            .offset = slot_offset(staging, lane, last) + ML_FRAME_HEADER_BYTES + seen,
            .lane = lane,
            .start_bytes = seen,
            .end_bytes = bytes_of(view->published),
        };
        add_want(wants, &tail);
    }
}

/* A lane header with its chunk numbers within the profile. A lane that names another profile has
 * recorded nothing in this one. */
static struct ml_staging_lane
within_profile(const struct ml_staging_reader *staging, const struct ml_staging_lane *lane) {
    struct ml_staging_lane own = *lane;
    uint64_t number = 0;
    if (!ml_profile_strip(staging->profile, number_of(lane->published), &number)) {
        return (struct ml_staging_lane){0};
    }
    own.published = number << ML_PUBLISHED_SHIFT |
                    (lane->published & (((uint64_t)1 << ML_PUBLISHED_SHIFT) - 1));
    if (!ml_profile_strip(staging->profile, lane->sent, &own.sent)) {
        own.sent = 0; /* seen in the middle of its change */
    }
    return own;
}

/* The header's counters since the profile began: since its first look. */
static void
take_counters(struct ml_staging_reader *staging, const struct ml_staging_header *header) {
    if (!staging->asked && staging->profile != 0) {
        staging->before = *header;
    }
    const struct ml_staging_header *before = &staging->before;
    staging->header = *header;
    staging->header.truncated_stacks -= before->truncated_stacks;
    staging->header.broken_stacks -= before->broken_stacks;
    staging->header.lost_no_lane -= before->lost_no_lane;
    staging->header.lost_nested -= before->lost_nested;
    staging->header.lost_no_pipe -= before->lost_no_pipe;
    staging->header.lost_no_node -= before->lost_no_node;
    staging->header.unwind_checked -= before->unwind_checked;
    staging->header.unwind_differed -= before->unwind_differed;
}

enum ml_status ml_staging_reader_look(
    struct ml_staging_reader *staging,
    const struct ml_staging_header *header,
    const struct ml_staging_lane *lanes,
    uint32_t lanes_count,
    struct ml_client_want *wants,
    size_t wants_capacity,
    size_t *out_wants_count
) {
    *out_wants_count = 0;
    if (lanes_count > ML_LANES_MAX) {
        return ML_PEER_LIMIT;
    }
    enum ml_status status = check_header(staging, header);
    if (status == ML_OK) {
        status = grow(staging, lanes_count);
    }
    if (status != ML_OK) {
        return status;
    }
    staging->slots = header->slots;
    take_counters(staging, header);
    staging->asked = true;
    struct wants list = {.wants = wants, .capacity = wants_capacity};
    for (uint32_t i = 0; i < lanes_count; i++) {
        const struct ml_staging_lane lane = within_profile(staging, &lanes[i]);
        if (bytes_of(lane.published) > ML_CHUNK_MAX_BYTES) {
            return ML_PEER_RANGE;
        }
        struct ml_lane_view *view = &staging->lanes[i];
        view->published = lane.published;
        view->sent = lane.sent;
        view->lost_before = view->lost_chunks;
        view->lost_chunks = lane.lost_chunks;
        view->lost_events = lane.lost_events;
        view->produced = lane.produced;
        view->waits = lane.waits;
        view->waited_ns = lane.waited_ns;
        view->longest_wait_ns = lane.longest_wait_ns;
        want_lane(staging, i, &list);
    }
    *out_wants_count = list.count;
    return ML_OK;
}

/* A chunk that is not the last one: its frame header says how long it is. */
static enum ml_status take_whole(
    struct ml_staging_reader *staging, const struct ml_client_want *want, const uint8_t *bytes
) {
    struct ml_reader r = ml_reader_over(bytes, ML_FRAME_HEADER_BYTES);
    struct ml_frame_header header = {.lane = 0};
    enum ml_status status = ml_frame_header_read(&r, &header);
    if (status == ML_OK &&
        (header.lane != want->lane ||
         header.chunk_number != ml_profile_first_chunk(staging->profile) + want->number ||
         header.start_bytes != 0)) {
        status = ML_PEER_FORM;
    }
    if (status == ML_OK) {
        status = ml_stream_reader_staged(
            staging->stream,
            want->lane,
            want->number,
            0,
            header.end_bytes,
            bytes + ML_FRAME_HEADER_BYTES,
            true
        );
    }
    if (status == ML_OK) {
        staging->lanes[want->lane].staged_next = want->number + 1;
    }
    return status;
}

enum ml_status ml_staging_reader_take(
    struct ml_staging_reader *staging,
    const struct ml_client_want *want,
    const uint8_t *bytes,
    const struct ml_staging_lane *lane_after
) {
    if (want->lane >= staging->lanes_count || want->end_bytes > ML_FRAME_MAX_BYTES) {
        return ML_BUG_CONTRACT;
    }
    uint64_t number = 0;
    if (!ml_profile_strip(staging->profile, number_of(lane_after->published), &number) ||
        number >= want->number + staging->slots) {
        return ML_OK; /* overwritten meanwhile: it is in the pipe, or dropped and counted */
    }
    if (want->number > first_wanted(staging, want->lane)) {
        return ML_OK; /* so was the one before it, which comes first */
    }
    if (want->end_bytes == ML_FRAME_MAX_BYTES) {
        return take_whole(staging, want, bytes);
    }
    return ml_stream_reader_staged(
        staging->stream, want->lane, want->number, want->start_bytes, want->end_bytes, bytes, false
    );
}

static bool lane_settled(const struct ml_staging_reader *staging, uint32_t lane) {
    const struct ml_lane_view *view = &staging->lanes[lane];
    const uint64_t number = number_of(view->published);
    const uint32_t bytes = bytes_of(view->published);
    if (!caught_up(staging, lane)) {
        return false;
    }
    if (view->sent > number) {
        return true; /* seen in the middle of sending that chunk */
    }
    if (bytes > 0) {
        return ml_stream_reader_reached(staging->stream, lane, number, bytes);
    }
    return view->sent >= number || view->staged_next >= number ||
           came_or_counted(staging, lane, number);
}

bool ml_staging_reader_settled(const struct ml_staging_reader *staging) {
    bool settled = staging->asked;
    for (uint32_t i = 0; i < staging->lanes_count && settled; i++) {
        settled = lane_settled(staging, i);
    }
    return settled;
}

/* It may still deliver events stamped before now. */
static bool lane_open(const struct ml_staging_reader *staging, uint32_t lane) {
    return (staging->lanes[lane].published & ML_PUBLISHED_BUSY) != 0 ||
           !lane_settled(staging, lane);
}

/* Its thread was interrupted for good, or the client lies. */
static bool lane_abandoned(const struct ml_staging_reader *staging, uint32_t lane) {
    const struct ml_lane_view *view = &staging->lanes[lane];
    return view->still_rounds >= ML_SESSION_BUSY_ROUNDS &&
           staging->round_ticks - view->still_since >= staging->patience_ticks;
}

uint64_t ml_staging_reader_known(
    const struct ml_staging_reader *staging,
    uint64_t ticks,
    uint64_t (*last_time)(const void *context, uint32_t lane),
    const void *context
) {
    for (uint32_t i = 0; i < staging->lanes_count; i++) {
        const struct ml_lane_view *view = &staging->lanes[i];
        if (!lane_open(staging, i) || lane_abandoned(staging, i)) {
            continue;
        }
        /* The next event may repeat the last stamp. */
        const uint64_t last = last_time(context, i);
        const uint64_t known = last > view->known_ticks ? last - 1 : view->known_ticks;
        ticks = known < ticks ? known : ticks;
    }
    return ticks;
}

void ml_staging_reader_round(struct ml_staging_reader *staging, uint64_t ticks) {
    staging->round_ticks = ticks;
    for (uint32_t i = 0; i < staging->lanes_count; i++) {
        struct ml_lane_view *view = &staging->lanes[i];
        /* Published words are untrusted: a lane counts as moving only when data arrives. */
        const uint64_t word = lane_settled(staging, i)
                                  ? view->published
                                  : ml_stream_reader_position(staging->stream, i);
        if (!lane_open(staging, i)) {
            view->known_ticks = ticks;
            view->still_rounds = 0;
            view->still_since = ticks;
        } else if (word == view->round_word) {
            view->still_rounds += view->still_rounds < ML_SESSION_BUSY_ROUNDS;
        } else {
            view->still_rounds = 0;
            view->still_since = ticks;
        }
        view->round_word = word;
    }
}
