#include "host/engine/processes/attachment.h"

#include <stddef.h>
#include <stdint.h>

static const uint8_t next_state[ML_ATTACHMENT_COUNT][ML_ATTACHMENT_EVENT_COUNT] = {
    [ML_ATTACHMENT_NONE] =
        {[ML_ATTACHMENT_BEGIN] = ML_ATTACHMENT_ATTACHING,
         [ML_ATTACHMENT_INHERIT] = ML_ATTACHMENT_ATTACHED},
    [ML_ATTACHMENT_ATTACHING] =
        {[ML_ATTACHMENT_HOOKED] = ML_ATTACHMENT_ATTACHED,
         [ML_ATTACHMENT_CLEAN] = ML_ATTACHMENT_DETACHED},
    [ML_ATTACHMENT_ATTACHED] = {[ML_ATTACHMENT_LEAVE] = ML_ATTACHMENT_DETACHING},
    [ML_ATTACHMENT_DETACHING] =
        {[ML_ATTACHMENT_HOOKED] = ML_ATTACHMENT_ATTACHED,
         [ML_ATTACHMENT_CLEAN] = ML_ATTACHMENT_DETACHED},
};

enum ml_attachment_state
ml_attachment_next(enum ml_attachment_state state, enum ml_attachment_event event) {
    if ((unsigned)state >= ML_ATTACHMENT_COUNT || (unsigned)event >= ML_ATTACHMENT_EVENT_COUNT) {
        return ML_ATTACHMENT_FORBIDDEN;
    }
    return (enum ml_attachment_state)next_state[state][event];
}

const char *ml_attachment_why_not(enum ml_attachment_state state) {
    static const char *const texts[ML_ATTACHMENT_COUNT] = {
        [ML_ATTACHMENT_ATTACHING] = "memlog is just attaching to it",
        [ML_ATTACHMENT_DETACHING] = "memlog is just detaching from it",
        [ML_ATTACHMENT_DETACHED] = "memlog has detached from it",
    };
    const char *text = (unsigned)state < ML_ATTACHMENT_COUNT ? texts[state] : NULL;
    return text != NULL ? text : "";
}
