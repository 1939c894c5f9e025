#include "service/ingest/pace.h"

enum { WHOLE = 1024 };

static uint64_t share_of(uint64_t bytes, const struct ml_pace_pipe *pipe) {
    const uint64_t share = bytes * WHOLE / (pipe->capacity_bytes | 1);
    return share < UINT32_MAX ? share : UINT32_MAX;
}

void ml_pace_read(struct ml_pace *pace, struct ml_pace_pipe *pipe, uint64_t bytes, bool more) {
    if (pipe->span != pace->span) {
        pipe->span = pace->span;
        pipe->bytes = 0;
    }
    pipe->bytes += bytes;
    pace->bytes += bytes;
    pace->urgent = pace->urgent || more || share_of(bytes, pipe) > WHOLE / 2;
    const uint64_t share = share_of(pipe->bytes, pipe);
    if (share > pace->fullest) {
        pace->fullest = (uint32_t)share;
    }
}

void ml_pace_looked(struct ml_pace *pace, uint64_t now_ns) {
    if (pace->by_clock && pace->urgent) {
        pace->by_clock = false;
    } else if (now_ns - pace->span_start_ns < ML_PACE_SPAN_NS) {
        pace->urgent = false;
        return;
    } else {
        const uint64_t spans = (now_ns - pace->span_start_ns) / ML_PACE_SPAN_NS;
        const uint64_t looks = ML_PACE_SPAN_NS * spans / ML_PACE_LOOK_MAX_NS;
        pace->by_clock = pace->bytes / spans >= ML_PACE_BUSY_BYTES && !pace->urgent &&
                         pace->fullest / looks <= WHOLE / 2;
    }
    pace->urgent = false;
    pace->span_start_ns = now_ns;
    pace->span++;
    pace->bytes = 0;
    pace->fullest = 0;
}
