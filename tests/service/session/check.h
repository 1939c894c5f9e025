/* The invariants of a session, which hold after every step. Room: tests. */
#ifndef MEMLOG_TESTS_SERVICE_SESSION_CHECK_H
#define MEMLOG_TESTS_SERVICE_SESSION_CHECK_H

#include <stdbool.h>

#include "service/session/session.h"

/* Recompute every sum from the live maps and compare. True when all agree. */
bool ml_session_check(const struct ml_session *session);

#endif
