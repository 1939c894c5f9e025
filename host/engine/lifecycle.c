#include "host/engine/lifecycle.h"

static const uint8_t next_phase[ML_PHASE_COUNT][ML_PHASE_EVENT_COUNT] = {
    [ML_PHASE_RUNNING] = {[ML_PHASE_END] = ML_PHASE_ENDING, [ML_PHASE_CLOSE] = ML_PHASE_CLOSED},
    [ML_PHASE_ENDING] =
        {[ML_PHASE_END] = ML_PHASE_ENDING,
         [ML_PHASE_WAIT] = ML_PHASE_WAITING,
         [ML_PHASE_CLOSE] = ML_PHASE_CLOSED},
    [ML_PHASE_WAITING] =
        {[ML_PHASE_END] = ML_PHASE_WAITING,
         [ML_PHASE_WAIT] = ML_PHASE_WAITING,
         [ML_PHASE_RESUME] = ML_PHASE_ENDING,
         [ML_PHASE_CLOSE] = ML_PHASE_CLOSED},
    /* What is told while all is closed changes nothing. */
    [ML_PHASE_CLOSED] =
        {[ML_PHASE_END] = ML_PHASE_CLOSED,
         [ML_PHASE_WAIT] = ML_PHASE_CLOSED,
         [ML_PHASE_CLOSE] = ML_PHASE_CLOSED},
};

static const uint8_t next_service[ML_ENGINE_SERVICE_COUNT][ML_ENGINE_EVENT_COUNT] = {
    [ML_ENGINE_STARTING] =
        {[ML_ENGINE_READY] = ML_ENGINE_SERVING,
         [ML_ENGINE_DIED] = ML_ENGINE_STARTING_AGAIN,
         [ML_ENGINE_GIVE_UP] = ML_ENGINE_ALONE},
    [ML_ENGINE_STARTING_AGAIN] =
        {[ML_ENGINE_READY] = ML_ENGINE_SERVING,
         [ML_ENGINE_DIED] = ML_ENGINE_STARTING_AGAIN,
         [ML_ENGINE_GIVE_UP] = ML_ENGINE_ALONE},
    [ML_ENGINE_SERVING] = {[ML_ENGINE_DIED] = ML_ENGINE_RESTARTING},
    [ML_ENGINE_RESTARTING] =
        {[ML_ENGINE_READY] = ML_ENGINE_SERVING,
         [ML_ENGINE_DIED] = ML_ENGINE_RESTARTING,
         [ML_ENGINE_GIVE_UP] = ML_ENGINE_ALONE},
};

enum ml_engine_phase
ml_engine_phase_next(enum ml_engine_phase phase, enum ml_engine_phase_event event) {
    return (enum ml_engine_phase)next_phase[phase][event];
}

enum ml_engine_service
ml_engine_service_next(enum ml_engine_service state, enum ml_engine_service_event event) {
    return (enum ml_engine_service)next_service[state][event];
}
