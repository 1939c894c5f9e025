/* Dumps that somebody asks for: whose, and in what words. Room: host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/engine_internal.h"
#include "host/utf8.h"

static bool is_among(const struct ml_member *member, const struct ml_dump_wish *wish) {
    bool found = wish->pids_count == 0;
    for (size_t i = 0; !found && i < wish->pids_count; i++) {
        found = (uint32_t)member->pid == wish->pids[i];
    }
    return found && (!wish->has_role || member->role == wish->role);
}

/* "" or why there is nobody to dump. */
static const char *
choose(struct ml_engine *engine, const struct ml_dump_wish *wish, struct ml_dump_job *job) {
    if (wish->pids_count == 0 && !wish->has_role) {
        return "";
    }
    job->ids = calloc((size_t)engine->members.count + 1, sizeof(*job->ids));
    if (job->ids == NULL) {
        return ml_status_text(ML_ENV_MEMORY);
    }
    for (uint32_t i = 0; i < engine->members.count; i++) {
        const struct ml_member *member = engine->members.items[i];
        if (member->in_service && is_among(member, wish)) {
            job->ids[job->ids_count++] = member->id;
        }
    }
    if (job->ids_count > 0) {
        return "";
    }
    return wish->has_role ? "no process of that role is recorded"
                          : "none of these processes is recorded";
}

void ml_engine_dump_wish(
    struct ml_engine *engine, const struct ml_dump_wish *wish, ml_dump_done *on_done, void *context
) {
    struct ml_dump_job *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        on_done(context, "", false, ml_status_text(ML_ENV_MEMORY));
        return;
    }
    *job = (struct ml_dump_job
    ){.engine = engine, .reason = wish->reason, .on_done = on_done, .context = context};
    if (wish->reason == MEMLOG_SERVICE_DUMP_REASON_EXIT) {
        job->trigger = engine->triggers.last;
    } else if (wish->words_bytes > 0) {
        job->trigger = (struct ml_dump_trigger
        ){.is_set = true, .kind = MEMLOG_SERVICE_TRIGGER_KIND_ASKED, .id = wish->asker_id};
        char *words = job->trigger.reason;
        (void)ml_utf8_clean(
            wish->words, wish->words_bytes, words, MEMLOG_HOST_DUMP_REQUEST_REASON_LIMIT + 1
        );
    }
    const char *trouble = choose(engine, wish, job);
    if (trouble[0] != '\0') {
        ml_dump_job_free(job);
        on_done(context, "", false, trouble);
        return;
    }
    ml_dump_job_queue(engine, job);
}

void ml_engine_dump(
    struct ml_engine *engine,
    enum memlog_service_dump_reason reason,
    const uint32_t *pids,
    size_t pids_count,
    ml_dump_done *on_done,
    void *context
) {
    const struct ml_dump_wish wish = {.reason = reason, .pids = pids, .pids_count = pids_count};
    ml_engine_dump_wish(engine, &wish, on_done, context);
}

void ml_engine_keep_words(struct ml_engine *engine, const struct ml_dump_trigger *trigger) {
    if (!trigger->is_set) {
        return;
    }
    struct ml_dump_words *words = &engine->dump_words[engine->dump_words_next];
    engine->dump_words_next = (engine->dump_words_next + 1) % ML_DUMP_WORDS_KEPT;
    words->number = engine->dumps.last_number;
    (void)snprintf(words->text, sizeof(words->text), "%s", trigger->reason);
}

const char *ml_engine_dump_words(const struct ml_engine *engine, uint32_t number) {
    for (uint32_t i = 0; number != 0 && i < ML_DUMP_WORDS_KEPT; i++) {
        if (engine->dump_words[i].number == number) {
            return engine->dump_words[i].text;
        }
    }
    return "";
}
