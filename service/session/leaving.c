#include "service/session/leaving.h"

#include <stdint.h>

enum {
    NOT = ML_LEAVING_NOT,
    EXEC = ML_LEAVING_EXEC,
    EXIT = ML_LEAVING_EXIT,
    APART = ML_LEAVING_APART,
    LEFT = ML_LEAVING_LEFT
};

static const uint8_t next_state[ML_LEAVING_COUNT][ML_LEAVING_EVENT_COUNT] = {
    /* by:    an exec, an exit, a block, leaving, the same apart, a profile */
    [NOT] = {EXEC, EXIT, NOT, LEFT, APART, NOT},
    [EXEC] = {EXEC, EXIT, NOT, LEFT, APART, NOT},
    [EXIT] = {EXIT, EXIT, EXIT, LEFT, APART, NOT},
    [APART] = {APART, APART, APART, LEFT, APART, NOT},
    [LEFT] = {LEFT, LEFT, LEFT, LEFT, LEFT, NOT},
};

enum ml_leaving ml_leaving_next(enum ml_leaving state, enum ml_leaving_event event) {
    return (enum ml_leaving)next_state[state][event];
}
