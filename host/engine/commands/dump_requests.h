/* Dumps that somebody asks for, a person or a program: whose, and in what words. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_COMMANDS_DUMP_REQUESTS_H
#define MEMLOG_HOST_ENGINE_COMMANDS_DUMP_REQUESTS_H

#include "host/engine/state.h"

struct ml_dump_requests {
    uint64_t asked_to_ns; /* programs have asked for all dumps that they get up to this moment */
};

/* A process asks for a dump: the control socket's message. */
void ml_engine_on_dump_asked(
    void *context,
    const struct ml_call *call,
    const struct memlog_client_dump_asked_request *request
);

#endif
