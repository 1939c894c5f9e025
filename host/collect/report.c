#include "host/collect/report.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 64 << 10, FIRST = 256 };

/* A piece of memory for strings; the newest is in front. */
struct ml_collect_report_text {
    struct ml_collect_report_text *next;
    size_t used;
    char bytes[TEXT_BYTES];
};

void ml_collect_report_fini(struct ml_collect_report *report) {
    while (report->texts != NULL) {
        struct ml_collect_report_text *next = report->texts->next;
        free(report->texts);
        report->texts = next;
    }
    free(report->frames);
    free(report->stacks);
    free(report->rows);
    *report = (struct ml_collect_report){.state = ML_COLLECT_REPORT_AWAITS_BEGIN};
}

size_t ml_collect_report_bytes(const struct ml_collect_report *report) {
    return report->text_bytes + report->frames_capacity * sizeof(*report->frames) +
           report->stacks_capacity * sizeof(*report->stacks) +
           report->rows_capacity * sizeof(*report->rows);
}

/* A copy of the string, with a NUL behind it. */
static enum ml_status keep(struct ml_collect_report *report, struct ml_string *string) {
    struct ml_collect_report_text *text = report->texts;
    const size_t wanted = (size_t)string->count_bytes + 1; /* a contract's limit is far smaller */
    if (text == NULL || sizeof(text->bytes) - text->used < wanted) {
        if (report->text_bytes >= ML_COLLECT_REPORT_TEXT_MAX) {
            return ML_PEER_LIMIT;
        }
        text = malloc(sizeof(*text));
        if (text == NULL) {
            return ML_ENV_MEMORY;
        }
        text->next = report->texts;
        text->used = 0;
        report->texts = text;
        report->text_bytes += sizeof(*text);
    }
    char *to = text->bytes + text->used;
    if (string->count_bytes > 0) {
        memcpy(to, string->data, string->count_bytes);
    }
    to[string->count_bytes] = '\0';
    text->used += wanted;
    string->data = to;
    return ML_OK;
}

static enum ml_status
keep_all(struct ml_collect_report *report, struct ml_string *const *strings, size_t count) {
    enum ml_status status = ML_OK;
    for (size_t i = 0; status == ML_OK && i < count; i++) {
        status = keep(report, strings[i]);
    }
    return status;
}

/* Room for `more` behind the first `count`. */
static enum ml_status
reserve(void **list, size_t *capacity, size_t count, size_t more, size_t size, size_t most) {
    if (more > most || count > most - more) {
        return ML_PEER_LIMIT;
    }
    size_t wanted = *capacity > 0 ? *capacity : FIRST;
    while (wanted < count + more) {
        wanted *= 2;
    }
    if (wanted == *capacity) {
        return ML_OK;
    }
    void *grown = reallocarray(*list, wanted, size);
    if (grown == NULL) {
        return ML_ENV_MEMORY;
    }
    *list = grown;
    *capacity = wanted;
    return ML_OK;
}

enum ml_status ml_collect_report_begin(
    struct ml_collect_report *report, const struct memlog_fleet_begin_request *message
) {
    struct memlog_fleet_begin_request *head = &report->head;
    struct ml_string *const strings[] = {
        &head->program,
        &head->build_id,
        &head->host,
        &head->program_version,
        &head->reason,
        &head->trigger};
    if (report->state != ML_COLLECT_REPORT_AWAITS_BEGIN ||
        message->version != MEMLOG_FLEET_FLEET_VERSION) {
        return ML_PEER_STATE;
    }
    *head = *message;
    report->state = ML_COLLECT_REPORT_COMES;
    return keep_all(report, strings, sizeof(strings) / sizeof(strings[0]));
}

enum ml_status ml_collect_report_frames(
    struct ml_collect_report *report, const struct memlog_fleet_frames_request *message
) {
    if (report->state != ML_COLLECT_REPORT_COMES || report->stacks_count > 0) {
        return ML_PEER_STATE;
    }
    enum ml_status status = reserve(
        (void **)&report->frames,
        &report->frames_capacity,
        report->frames_count,
        message->frames.count,
        sizeof(*report->frames),
        MEMLOG_FLEET_MAX_FRAMES
    );
    for (uint32_t i = 0; status == ML_OK && i < message->frames.count; i++) {
        struct memlog_fleet_frame *frame = &report->frames[report->frames_count++];
        *frame = message->frames.items[i];
        struct ml_string *const strings[] = {&frame->function, &frame->module, &frame->build_id};
        status = keep_all(report, strings, sizeof(strings) / sizeof(strings[0]));
    }
    return status;
}

enum ml_status ml_collect_report_stacks(
    struct ml_collect_report *report, const struct memlog_fleet_stacks_request *message
) {
    if (report->state != ML_COLLECT_REPORT_COMES || report->rows_count > 0) {
        return ML_PEER_STATE;
    }
    enum ml_status status = reserve(
        (void **)&report->stacks,
        &report->stacks_capacity,
        report->stacks_count,
        message->stacks.count,
        sizeof(*report->stacks),
        MEMLOG_FLEET_MAX_STACKS
    );
    for (uint32_t i = 0; status == ML_OK && i < message->stacks.count; i++) {
        const struct memlog_fleet_stack *stack = &message->stacks.items[i];
        if (stack->parent > report->stacks_count || stack->frame == 0 ||
            stack->frame > report->frames_count) {
            return ML_PEER_RANGE;
        }
        report->stacks[report->stacks_count++] = *stack;
    }
    return status;
}

/* False: some sum is larger than a machine can have. */
static bool count_in(struct memlog_fleet_figures *sums, const struct memlog_fleet_figures *one) {
    const struct {
        uint64_t *sum;
        uint64_t more;
    } figures[] = {
        {&sums->live_bytes, one->live_bytes},
        {&sums->live_blocks, one->live_blocks},
        {&sums->peak_bytes, one->peak_bytes},
        {&sums->peak_blocks, one->peak_blocks},
        {&sums->total_bytes, one->total_bytes},
        {&sums->total_blocks, one->total_blocks},
    };
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        if (figures[i].more > ML_COLLECT_REPORT_FIGURE_MAX - *figures[i].sum) {
            return false;
        }
        *figures[i].sum += figures[i].more;
    }
    return true;
}

enum ml_status ml_collect_report_rows(
    struct ml_collect_report *report, const struct memlog_fleet_rows_request *message
) {
    if (report->state != ML_COLLECT_REPORT_COMES) {
        return ML_PEER_STATE;
    }
    enum ml_status status = reserve(
        (void **)&report->rows,
        &report->rows_capacity,
        report->rows_count,
        message->rows.count,
        sizeof(*report->rows),
        MEMLOG_FLEET_MAX_ROWS
    );
    for (uint32_t i = 0; status == ML_OK && i < message->rows.count; i++) {
        struct memlog_fleet_row *row = &report->rows[report->rows_count++];
        *row = message->rows.items[i];
        struct ml_string *const strings[] = {&row->role, &row->process, &row->heap, &row->type};
        if (row->stack > report->stacks_count || !count_in(&report->sums, &row->figures)) {
            return ML_PEER_RANGE;
        }
        status = keep_all(report, strings, sizeof(strings) / sizeof(strings[0]));
    }
    return status;
}

enum ml_status ml_collect_report_end(
    struct ml_collect_report *report, const struct memlog_fleet_end_request *message
) {
    if (report->state != ML_COLLECT_REPORT_COMES) {
        return ML_PEER_STATE;
    }
    if (message->frames != report->frames_count || message->stacks != report->stacks_count ||
        message->rows != report->rows_count) {
        return ML_PEER_RANGE;
    }
    report->state = ML_COLLECT_REPORT_WHOLE;
    return ML_OK;
}

enum ml_status ml_collect_report_refused(
    struct ml_collect_report *report, const struct memlog_fleet_refused_request *message
) {
    if (report->state != ML_COLLECT_REPORT_AWAITS_BEGIN) {
        return ML_PEER_STATE;
    }
    ml_string_copy(report->reason, sizeof(report->reason), message->reason);
    report->state = ML_COLLECT_REPORT_REFUSED;
    return ML_OK;
}
