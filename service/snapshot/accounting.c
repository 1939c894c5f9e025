#include "service/snapshot/accounting.h"

/* As much of `*left` as `claimed` explains. */
static uint64_t explain(uint64_t *left, uint64_t claimed) {
    const uint64_t part = claimed < *left ? claimed : *left;
    *left -= part;
    return part;
}

struct ml_accounting ml_accounting_of(const struct ml_accounting_facts *facts) {
    struct ml_accounting out = {
        .produced = facts->produced,
        .received = facts->received,
        .no_lane = facts->no_lane,
        .nested = facts->nested,
        .balanced = true,
        .waits = facts->waits,
        .waited_ns = facts->waited_ns,
        .longest_wait_ns = facts->longest_wait_ns,
        .stream_bytes = facts->stream_bytes,
    };
    if (!facts->looked) {
        out.overrun = facts->overrun;
        out.no_pipe = facts->no_pipe;
        out.produced = facts->received;
        ml_add_saturating(&out.produced, out.overrun);
        ml_add_saturating(&out.produced, out.no_pipe);
    } else if (facts->received > facts->produced) {
        /* Staging of a running process is read before its pipe, and that of a refused one no more.
         * An ended process produces no more. */
        out.produced = facts->received;
        out.balanced = !facts->ended || facts->refused;
    }
    uint64_t left = 0;
    if (facts->looked) {
        /* The service may have read the start of a dropped chunk from staging. Then less is missing
         * than the client says. */
        left = out.produced - out.received;
        out.overrun = explain(&left, facts->overrun);
        out.no_pipe = explain(&left, facts->no_pipe);
        out.refused = facts->refused ? explain(&left, left) : 0;
        out.in_flight = explain(&left, facts->ended ? facts->busy_lanes : left);
        out.unaccounted = left;
        out.balanced = out.balanced && left == 0;
    }
    ml_add_saturating(&out.produced, out.no_lane);
    ml_add_saturating(&out.produced, out.nested);
    return out;
}

uint64_t ml_accounting_lost(const struct ml_accounting *accounting) {
    uint64_t lost = accounting->overrun;
    ml_add_saturating(&lost, accounting->no_lane);
    ml_add_saturating(&lost, accounting->nested);
    ml_add_saturating(&lost, accounting->no_pipe);
    ml_add_saturating(&lost, accounting->refused);
    ml_add_saturating(&lost, accounting->unaccounted);
    return lost;
}
