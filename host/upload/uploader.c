#include "host/upload/uploader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/printable.h"
#include "host/process/loop.h"
#include "host/process/paths.h"
#include "host/upload/internal.h"

/* Another host of this user is sending. */
static const double lock_wait_s = 0.5;

/* For the analyzer to prune a report harder; then another host may. */
static const uint64_t harder_lease_ms = 600000;

uint64_t ml_uploader_now_ms(void) {
    struct timespec now = {.tv_sec = 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void ml_uploader_note(struct ml_uploader *uploader, bool is_error, const char *format, ...) {
    char *text = uploader->history[uploader->history_count++ % ML_UPLOAD_HISTORY];
    char words[ML_UPLOAD_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    (void)ml_printable_copy(words, strlen(words), text, ML_UPLOAD_TEXT_BYTES);
    if (is_error) {
        memcpy(uploader->last_error, text, ML_UPLOAD_TEXT_BYTES);
    }
    uploader->setup.on_notice(uploader->setup.context, text);
}

void ml_uploader_end(struct ml_uploader *uploader, const char *id, const char *trouble) {
    struct ml_upload_job *job = NULL;
    TAILQ_FOREACH(job, &uploader->jobs, links) {
        if (strcmp(job->item.id, id) == 0) {
            TAILQ_REMOVE(&uploader->jobs, job, links);
            if (job->on_done != NULL) {
                job->on_done(job->context, trouble);
            }
            free(job);
            return;
        }
    }
}

/* What the disk cannot be told is remembered here: else it would be sent again at once, for ever.
 */
static bool keep(struct ml_uploader *uploader, const struct ml_spool_item *item) {
    if (ml_spool_keep(&uploader->spool, item) == ML_OK) {
        return true;
    }
    ml_spool_hold(&uploader->spool, item->id, item->next_ms);
    ml_uploader_note(
        uploader,
        true,
        "the spool %s cannot be written; a restart forgets this try",
        uploader->spool.folder
    );
    return false;
}

/* Its job; a new one for what a former run has left. NULL: no memory. */
static struct ml_upload_job *job_of(struct ml_uploader *uploader, const char *id) {
    struct ml_upload_job *job = NULL;
    TAILQ_FOREACH(job, &uploader->jobs, links) {
        if (strcmp(job->item.id, id) == 0) {
            return job;
        }
    }
    job = calloc(1, sizeof(*job));
    if (job != NULL) {
        TAILQ_INSERT_HEAD(&uploader->jobs, job, links);
    }
    return job;
}

/* Prune it harder: this host does, until its lease ends. */
static void harder(struct ml_uploader *uploader, struct ml_spool_item *item) {
    item->next_ms = ml_uploader_now_ms() + harder_lease_ms;
    struct ml_upload_job *job = keep(uploader, item) ? job_of(uploader, item->id) : NULL;
    if (job != NULL) {
        job->item = *item;
        job->packed = false; /* who waits for it goes on waiting */
    }
}

/* What the try was worth. */
void ml_uploader_tried(struct ml_uploader *uploader, unsigned http_status, const char *why) {
    struct ml_spool_item item = uploader->sending;
    struct memlog_host_uploads *figures = &uploader->figures;
    uint32_t random = 0;
    (void)!getrandom(&random, sizeof(random), 0);
    item.tries++;
    switch (ml_upload_judge(http_status, item.tries, item.harder != ML_SPOOL_AS_IT_IS)) {
    case ML_UPLOAD_DONE:
        figures->sent++;
        figures->sent_bytes += uploader->body_bytes;
        ml_spool_remove(&uploader->spool, item.id);
        ml_uploader_note(
            uploader,
            false,
            "uploaded %s (%" PRIu64 " bytes) as %s",
            item.dump,
            uploader->body_bytes,
            item.id
        );
        ml_uploader_end(uploader, item.id, "");
        break;
    case ML_UPLOAD_AGAIN: {
        const uint64_t now_ms = ml_uploader_now_ms();
        const uint64_t delay_ms =
            ml_upload_delay_ms(item.tries, uploader->retry_after, now_ms / 1000, random);
        item.next_ms = now_ms + delay_ms;
        figures->retries++;
        ml_uploader_note(
            uploader,
            true,
            "upload of %s failed (%s); again in %.1f s",
            item.dump,
            why,
            (double)delay_ms / 1000.
        );
        keep(uploader, &item);
        break;
    }
    case ML_UPLOAD_HARDER:
        ml_uploader_note(
            uploader, true, "upload of %s: too large for the server; pruning it harder", item.dump
        );
        item.harder = ML_SPOOL_HARDER_WANTED;
        item.next_ms = ml_uploader_now_ms();
        item.upload_id[0] = '\0';
        item.parts = 0;
        if (!keep(uploader, &item)) {
            ml_spool_hold(&uploader->spool, item.id, item.next_ms + harder_lease_ms);
        }
        break;
    case ML_UPLOAD_GIVE_UP:
        figures->given_up++;
        ml_spool_remove(&uploader->spool, item.id);
        ml_uploader_note(
            uploader,
            true,
            "upload of %s given up after %u tr%s: %s",
            item.dump,
            item.tries,
            item.tries == 1 ? "y" : "ies",
            why
        );
        ml_uploader_end(uploader, item.id, why);
        break;
    }
    ml_spool_unlock(&uploader->spool);
    uploader->busy = false;
    ml_uploader_go_on(uploader);
}

static void wait_for_next(struct ml_uploader *uploader, double seconds) {
    ml_timer_start(uploader->setup.loop, &uploader->next_timer, seconds);
}

static void settle(struct ml_uploader *uploader) {
    void (*on_settled)(void *context) = uploader->on_settled;
    uploader->on_settled = NULL;
    ev_timer_stop(uploader->setup.loop, &uploader->settle_timer);
    if (on_settled == NULL) {
        return;
    }
    if (uploader->figures.waiting > 0 || ml_uploader_unpacked(uploader) != NULL) {
        ml_uploader_note(
            uploader,
            false,
            "what is not sent yet waits in %s for the next run with this --upload",
            uploader->spool.folder
        );
    }
    on_settled(uploader->settle_context);
}

/* Whether the run's end waits for what is due in that time. */
static bool waits_for(struct ml_uploader *uploader, double seconds) {
    return uploader->on_settled != NULL &&
           seconds < ev_timer_remaining(uploader->setup.loop, &uploader->settle_timer);
}

/* The item that is due, with the spool locked for it. False: none is, or another host sends. */
static bool take_due(struct ml_uploader *uploader, struct ml_spool_item *out_item) {
    unsigned waiting = 0;
    if (!ml_spool_lock(&uploader->spool)) {
        wait_for_next(uploader, lock_wait_s);
        return false;
    }
    /* Another host may have sent it between our look and the lock. */
    if (ml_spool_next(&uploader->spool, uploader->options->url, out_item, &waiting) &&
        out_item->next_ms <= ml_uploader_now_ms()) {
        return true;
    }
    ml_spool_unlock(&uploader->spool);
    wait_for_next(uploader, lock_wait_s);
    return false;
}

void ml_uploader_go_on(struct ml_uploader *uploader) {
    struct ml_spool_item item;
    unsigned waiting = 0;
    ml_uploader_pack(uploader);
    if (uploader->busy) {
        return; /* one at a time */
    }
    const uint64_t now_ms = ml_uploader_now_ms();
    const bool any = ml_spool_next(&uploader->spool, uploader->options->url, &item, &waiting);
    uploader->figures.waiting = waiting;
    uploader->figures.next_ms = any ? item.next_ms : 0;
    if (any && item.next_ms <= now_ms) {
        if (!take_due(uploader, &item)) {
            return;
        }
        if (item.harder == ML_SPOOL_HARDER_WANTED) {
            harder(uploader, &item);
            ml_spool_unlock(&uploader->spool);
            wait_for_next(uploader, 0.);
        } else {
            uploader->busy = true;
            ml_uploader_send(uploader, &item);
        }
        return;
    }
    if (any) {
        const double wait_s = (double)(item.next_ms - now_ms) / 1000.;
        wait_for_next(uploader, wait_s < 3600. ? wait_s : 3600.);
        if (waits_for(uploader, wait_s)) {
            return;
        }
    }
    if (ml_uploader_unpacked(uploader) == NULL) {
        settle(uploader);
    }
}

static void on_next(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    ml_uploader_go_on(watcher->data);
}

static void on_settle_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    settle(watcher->data);
}

enum ml_status ml_uploader_open(
    const struct ml_uploader_setup *setup,
    struct ml_uploader **out_uploader,
    struct ml_error_message *error
) {
    struct ml_uploader *uploader = calloc(1, sizeof(*uploader));
    if (uploader == NULL) {
        return ML_ENV_MEMORY;
    }
    uploader->setup = *setup;
    TAILQ_INIT(&uploader->jobs);
    uploader->options = &setup->options->upload;
    uploader->pack_pidfd = -1;
    uploader->body_fd = -1;
    uploader->figures.target =
        ml_string_cut(uploader->options->url, MEMLOG_HOST_UPLOADS_TARGET_LIMIT);
    uploader->spool.lock_fd = -1;
    ml_timer_init(&uploader->next_timer, on_next, uploader);
    ml_timer_init(&uploader->settle_timer, on_settle_timer, uploader);
    enum ml_status status = ml_paths_find(ML_ANALYZER_FILE, uploader->analyzer_path, error);
    if (status == ML_OK) {
        status = ml_spool_open(&uploader->spool, uploader->options->spool, error);
    }
    if (status == ML_OK) {
        status = ml_uploader_send_init(uploader, error);
    }
    if (status != ML_OK) {
        ml_uploader_close(uploader);
        return status;
    }
    *out_uploader = uploader;
    ml_spool_sweep(&uploader->spool, ml_uploader_now_ms() / 1000);
    /* What former runs have left. */
    wait_for_next(uploader, 0.);
    return ML_OK;
}

void ml_uploader_close(struct ml_uploader *take_uploader) {
    struct ml_uploader *uploader = take_uploader;
    if (uploader == NULL) {
        return;
    }
    ev_timer_stop(uploader->setup.loop, &uploader->next_timer);
    ev_timer_stop(uploader->setup.loop, &uploader->settle_timer);
    ml_uploader_pack_stop(uploader);
    ml_uploader_send_fini(uploader);
    ml_spool_close(&uploader->spool);
    while (!TAILQ_EMPTY(&uploader->jobs)) {
        struct ml_upload_job *job = TAILQ_FIRST(&uploader->jobs);
        TAILQ_REMOVE(&uploader->jobs, job, links);
        if (job->on_done != NULL) {
            job->on_done(job->context, job->packed ? "it waits in the spool" : "the run is over");
        }
        free(job);
    }
    free(uploader);
}

/* The program's base name; "" in a program that links the host. */
static void take_program(const struct ml_options *options, struct ml_spool_item *item) {
    const char *program = options->program != NULL ? options->program[0] : NULL;
    if (program != NULL) {
        const char *name = basename(program);
        (void)ml_printable_copy(name, strlen(name), item->program, sizeof(item->program));
    }
}

void ml_uploader_submit(
    struct ml_uploader *uploader, const char *dump_path, ml_upload_done *on_done, void *context
) {
    struct ml_upload_job *job = calloc(1, sizeof(*job));
    char *full = realpath(dump_path, NULL);
    if (job == NULL || full == NULL || strlen(full) >= sizeof(job->item.dump) ||
        strchr(full, '\n') != NULL || !ml_spool_new_id(job->item.id)) {
        free(job);
        free(full);
        if (on_done != NULL) {
            on_done(context, "the dump cannot be found");
        }
        return;
    }
    memcpy(job->item.dump, full, strlen(full) + 1);
    (void)snprintf(job->item.target, sizeof(job->item.target), "%s", uploader->options->url);
    take_program(uploader->setup.options, &job->item);
    job->item.made_ms = ml_uploader_now_ms();
    job->on_done = on_done;
    job->context = context;
    free(full);
    TAILQ_INSERT_TAIL(&uploader->jobs, job, links);
    ml_uploader_go_on(uploader);
}

void ml_uploader_settle(
    struct ml_uploader *uploader, double seconds, void (*on_settled)(void *context), void *context
) {
    uploader->on_settled = on_settled;
    uploader->settle_context = context;
    ml_timer_start(uploader->setup.loop, &uploader->settle_timer, seconds);
    ml_uploader_go_on(uploader);
}

struct memlog_host_uploads ml_uploader_figures(struct ml_uploader *uploader) {
    struct ml_spool_item item;
    struct memlog_host_uploads *figures = &uploader->figures;
    const uint64_t told = uploader->history_count;
    figures->history.items = uploader->lines;
    figures->history.count = told < ML_UPLOAD_HISTORY ? (uint32_t)told : ML_UPLOAD_HISTORY;
    for (uint32_t i = 0; i < figures->history.count; i++) {
        const uint64_t line = told - figures->history.count + i;
        uploader->lines[i] = ml_string_of(uploader->history[line % ML_UPLOAD_HISTORY]);
    }
    figures->last_error = ml_string_of(uploader->last_error);
    (void)ml_spool_next(&uploader->spool, uploader->options->url, &item, &figures->waiting);
    return *figures;
}

uint64_t ml_uploader_told(const struct ml_uploader *uploader) {
    return uploader->history_count;
}
