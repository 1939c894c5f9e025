/* At what interval a process is sampled, while it runs. Room: host.
 *
 * One rule: frees stay in a process only when the service has said, after the change, that no block
 * lives which was recorded while every allocation was. */
#ifndef MEMLOG_HOST_ENGINE_MEMBERS_RATE_H
#define MEMLOG_HOST_ENGINE_MEMBERS_RATE_H

#include <ev.h>

#include "host/engine/state.h"

struct ml_rates {
    ev_timer timer; /* some member waits for frees that may stay in it */
};

void ml_rates_init(struct ml_engine *engine);
void ml_rates_fini(struct ml_engine *engine);

/* From its next allocation on; its profile goes on. Errors: as ml_endpoint_control. */
ML_NODISCARD enum ml_status
ml_member_interval(struct ml_engine *engine, struct ml_member *member, uint64_t interval_bytes);

/* The same, as somebody asks; "" or why not. */
const char *
ml_member_rate(struct ml_engine *engine, struct ml_member *member, uint64_t interval_bytes);

#endif
