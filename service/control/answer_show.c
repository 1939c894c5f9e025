#include "service/control/answer.h"
#include "service/session/client.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "service/snapshot/host_view.h"

static void empty_pipes(void *context) {
    ml_readers_empty(context);
}

enum ml_status ml_answer_show(
    const struct ml_answer_scene *scene,
    const struct ml_call *call,
    const struct memlog_service_show_process_request *request,
    bool known
) {
    /* It may have been given up since. */
    struct ml_client *client = ml_session_find(scene->session, request->view.id);
    struct memlog_service_show_process_request kept = *request;
    kept.view.words.count = 0; /* of many only few begin a block */
    struct ml_host_view *view = client != NULL ? ml_host_view_of(&kept) : NULL;
    const struct ml_rest rest = {.take = empty_pipes, .context = scene->readers};
    if (client != NULL) {
        ml_client_take_words(client, &request->view, &rest);
    }
    if (view != NULL && known) {
        ml_client_lay(client, view, &rest);
    }
    const struct memlog_service_show_process_reply reply = {
        .laid = view != NULL && view->overlay.heaps != NULL};
    if (view != NULL) {
        ml_client_show(client, view);
    }
    return memlog_service_show_process_answer(call, &reply);
}
