#include "service/ingest/poll_policy.h"

enum { WHOLE = 1024 };

static uint64_t share_of(uint64_t bytes, const struct ml_poll_policy_pipe *pipe) {
    const uint64_t share = bytes * WHOLE / (pipe->capacity_bytes | 1);
    return share < UINT32_MAX ? share : UINT32_MAX;
}

void ml_poll_policy_read(
    struct ml_poll_policy *poll_policy, struct ml_poll_policy_pipe *pipe, uint64_t bytes, bool more
) {
    if (pipe->span != poll_policy->span) {
        pipe->span = poll_policy->span;
        pipe->bytes = 0;
    }
    pipe->bytes += bytes;
    poll_policy->bytes += bytes;
    poll_policy->urgent = poll_policy->urgent || more || share_of(bytes, pipe) > WHOLE / 2;
    const uint64_t share = share_of(pipe->bytes, pipe);
    if (share > poll_policy->fullest) {
        poll_policy->fullest = (uint32_t)share;
    }
}

void ml_poll_policy_looked(struct ml_poll_policy *poll_policy, uint64_t now_ns) {
    if (poll_policy->by_clock && poll_policy->urgent) {
        poll_policy->by_clock = false;
    } else if (now_ns - poll_policy->span_start_ns < ML_POLL_SPAN_NS) {
        poll_policy->urgent = false;
        return;
    } else {
        const uint64_t spans = (now_ns - poll_policy->span_start_ns) / ML_POLL_SPAN_NS;
        const uint64_t looks = ML_POLL_SPAN_NS * spans / ML_POLL_LOOK_MAX_NS;
        poll_policy->by_clock = poll_policy->bytes / spans >= ML_POLL_BUSY_BYTES &&
                                !poll_policy->urgent && poll_policy->fullest / looks <= WHOLE / 2;
    }
    poll_policy->urgent = false;
    poll_policy->span_start_ns = now_ns;
    poll_policy->span++;
    poll_policy->bytes = 0;
    poll_policy->fullest = 0;
}
