#include "client/recording/thrown.h"

#include "client/recording/hook.h"
#include "client/recording/sampler.h"

int ml_hook_thrown(ML_LEFT_PARAMETERS) {
    (void)version;
    (void)kind;
    (void)thrown;
    (void)context;
    struct ml_thread *thread = ml_this_thread();
    if ((actions & ML_LEFT_CLEANUP_PHASE) != 0 && thread->phase == ML_PHASE_NEXT) {
        ml_hook_calling(thread, ML_PHASE_NONE);
        thread->hook_frame = 0;
        ml_sampler_let(thread);
    }
    return ML_LEFT_GO_ON;
}
