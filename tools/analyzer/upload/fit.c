/* How much of a profile a body has room for. */
#include <stdlib.h>
#include <string.h>

#include "base/upload.h"
#include "tools/analyzer/formats/chrome_trace.h"
#include "tools/analyzer/stacks/attribution.h"
#include "tools/analyzer/stacks/prune.h"
#include "tools/analyzer/upload/internal.h"

enum {
    BELOW_BYTES = 16 * 1024, /* Chromium's, with ML_PRUNE_KEPT_BLOCKS */
    /* Of the live bytes that have a stack. Whole stacks aim at the first figure. With at least the
     * second one the search ends; with less it tries shorter stacks. */
    AIM_PERCENT = 95,
    ENOUGH_PERCENT = 92,
    /* A function stays whose stacks hold this part of all together, however small each of them is.
     * So some thirty functions stay at most. */
    FUNCTION_PART = 32,
};

/* Frames of a stack, tools/analyzer/stacks/prune.h, ml_stacks_shorten; 0: all of them. */
static const uint32_t lengths[] = {0, 24, 12, 8, 5, 3, 1};

/* A way to prune. */
struct way {
    uint32_t frames;    /* one of `lengths` */
    bool others_as_one; /* tools/analyzer/formats/chrome_trace.h */
    struct ml_prune_rule rule;
};

/* The best body so far that fits. */
struct fitting {
    struct ml_upload upload; /* as the current way changes it */
    const struct ml_stacks_copy *whole;
    size_t stacks_before;
    uint64_t told_bytes; /* in the whole profile */
    uint64_t function_worth;
    bool fits;
    struct ml_upload_bytes body;
    struct ml_upload_cut cut;
};

/* Whether it is Chrome's trace. Its readers see functions alone, neither addresses nor lines. */
static bool is_chromes(enum ml_upload_form form) {
    return form == ML_UPLOAD_REPORT || form == ML_UPLOAD_TRACE;
}

static uint64_t percent_of(uint64_t bytes, uint64_t percent) {
    return bytes / 100 * percent + bytes % 100 * percent / 100;
}

/* ---- what a body has */

static size_t count_stacks(const struct ml_stacks *stacks) {
    size_t count = 0;

    for (size_t i = 0; i < stacks->processes_count; i++) {
        count += stacks->processes[i].count;
    }
    return count;
}

static void count_cut(const struct ml_upload *upload, struct ml_upload_cut *cut) {
    const struct ml_stacks *stacks = upload->stacks;

    cut->stacks_after = count_stacks(stacks);
    cut->attributed_bytes = ml_stacks_told_bytes(stacks);
    cut->function_bytes = ml_stacks_function_bytes(stacks);
    for (size_t i = 0; i < stacks->processes_count; i++) {
        const struct ml_stack_list *list = &stacks->processes[i];
        for (size_t s = 0; s < list->count; s++) {
            const uint32_t node = list->stacks[s].node;
            const bool is_other = node != ML_STACKS_NONE &&
                                  stacks->places[stacks->nodes[node].place].kind == ML_PLACE_OTHER;
            cut->live_bytes += list->stacks[s].own.live_bytes;
            if (!is_other && ml_attribution_find(stacks, node).is_named) {
                cut->named_bytes += list->stacks[s].own.live_bytes;
            }
        }
    }
}

static bool tells(const struct fitting *fitting, uint64_t percent) {
    return fitting->fits &&
           fitting->cut.attributed_bytes >= percent_of(fitting->told_bytes, percent);
}

/* ---- ways */

/* The copy that all ways with one length of stacks begin with. Its stacks have so many frames (0:
 * all), and are pruned as far as `percent` of the live bytes keep their stack. *out_worth is the
 * least worth for that. The stacks become those of the copy. */
static enum ml_status begin_with(
    const struct fitting *fitting,
    uint32_t frames,
    uint64_t percent,
    struct ml_stacks_copy *out_copy,
    double *out_worth
) {
    struct ml_stacks *stacks = fitting->upload.stacks;
    struct ml_prune_rule rule = {.function_worth = fitting->function_worth};
    enum ml_status status = ml_stacks_restore(stacks, fitting->whole);

    if (status == ML_OK && frames > 0) {
        status = ml_stacks_shorten(stacks, frames);
    }
    if (status == ML_OK) {
        status = ml_stacks_worth_to_tell(
            stacks, percent_of(fitting->told_bytes, percent), &rule.least_worth
        );
    }
    status = status == ML_OK ? ml_stacks_prune_by(stacks, &rule) : status;
    *out_worth = rule.least_worth;
    return status == ML_OK && !ml_stacks_copy_init(out_copy, stacks) ? ML_ENV_MEMORY : status;
}

/* Make a body in that way. It becomes the best one if it fits and has more bytes with a stack. */
static enum ml_status try_way(
    struct fitting *fitting,
    const struct ml_stacks_copy *from,
    const struct way *way,
    bool *out_fits
) {
    struct ml_upload_cut cut = {
        .stacks_before = fitting->stacks_before,
        .below_bytes = way->rule.below_bytes,
        .least_worth = way->rule.least_worth,
        .frames = way->frames,
    };
    struct ml_upload_bytes body = {NULL, 0};
    enum ml_status status = ml_stacks_restore(fitting->upload.stacks, from);

    status = status == ML_OK ? ml_stacks_prune_by(fitting->upload.stacks, &way->rule) : status;
    fitting->upload.others_as_one = way->others_as_one;
    cut.others = way->others_as_one ? ml_chrome_trace_others(fitting->upload.stacks) : 0;
    status = status == ML_OK ? ml_upload_make(&fitting->upload, &body) : status;
    cut.body_bytes = body.count_bytes;
    *out_fits = status == ML_OK && body.count_bytes <= fitting->upload.max_bytes;
    if (status == ML_OK) {
        count_cut(&fitting->upload, &cut);
    }
    if (*out_fits && (!fitting->fits || cut.attributed_bytes > fitting->cut.attributed_bytes)) {
        free(fitting->body.bytes);
        fitting->body = body;
        fitting->cut = cut;
        fitting->fits = true;
        return ML_OK;
    }
    if (!fitting->fits &&
        (fitting->cut.body_bytes == 0 || cut.body_bytes < fitting->cut.body_bytes)) {
        fitting->cut = cut; /* the smallest so far */
    }
    free(body.bytes);
    return status;
}

/* The smallest least worth that fits, by binary search from `milder_worth` up. The scale does not
 * depend on the limit, so a larger limit never keeps less. *out_step is on that scale; 0: all fits,
 * or nothing. */
static enum ml_status fill_by_worth(
    struct fitting *fitting,
    const struct ml_stacks_copy *from,
    struct way *way,
    double milder_worth,
    uint32_t *out_step
) {
    uint32_t low = 0;
    uint32_t high = ML_PRUNE_STEPS;
    uint32_t first = 0;
    bool has_fitted = false;
    enum ml_status status = ML_OK;

    while (low < high && ml_prune_worth(low) < milder_worth) {
        low++;
    }
    first = low;
    while (low < high && status == ML_OK) {
        const uint32_t middle = low + (high - low) / 2;
        bool fits = false;
        way->rule.least_worth = ml_prune_worth(middle);
        status = try_way(fitting, from, way, &fits);
        has_fitted = has_fitted || fits;
        low = fits ? low : middle + 1;
        high = fits ? middle : high;
    }
    *out_step = has_fitted && low > first ? low : 0;
    return status;
}

/* Fill the room with the stacks of most worth. Some programs have many stacks of equal worth, which
 * do not fit together: some of them fill what is left. */
static enum ml_status fill_room(
    struct fitting *fitting,
    const struct ml_stacks_copy *from,
    const struct way *like,
    double milder_worth
) {
    struct way way = *like;
    uint64_t fitting_count = 0;
    uint64_t count = 0;
    uint32_t step = 0;
    enum ml_status status = ML_OK;

    way.rule = (struct ml_prune_rule){.function_worth = like->rule.function_worth};
    status = fill_by_worth(fitting, from, &way, milder_worth, &step);
    if (status != ML_OK || step == 0 || tells(fitting, ENOUGH_PERCENT)) {
        return status;
    }
    way.rule.least_worth = ml_prune_worth(step);
    way.rule.margin_worth = ml_prune_worth(step - 1);
    for (size_t i = 0; i < fitting->upload.stacks->processes_count; i++) {
        count += from->counts[i + 1];
    }
    /* `count` does not fit. */
    while (status == ML_OK && count - fitting_count > 1) {
        bool fits = false;
        way.rule.margin_count = fitting_count + (count - fitting_count) / 2;
        status = try_way(fitting, from, &way, &fits);
        fitting_count = fits ? way.rule.margin_count : fitting_count;
        count = fits ? count : way.rule.margin_count;
    }
    return status;
}

/* Take the stacks that the way aims at, or as many as fit. Whole stacks aim at those that Chromium
 * would send, too. `from` may lack these. */
static enum ml_status
fill(struct fitting *fitting, const struct ml_stacks_copy *from, struct way *way, double worth) {
    const bool is_whole = way->frames == 0;
    bool fits = false;
    enum ml_status status = ML_OK;

    way->rule = (struct ml_prune_rule){
        .least_worth = worth,
        .below_bytes = is_whole ? BELOW_BYTES : 0,
        .function_worth = fitting->function_worth,
    };
    status = try_way(fitting, is_whole ? fitting->whole : from, way, &fits);
    return status == ML_OK && !fits ? fill_room(fitting, from, way, worth) : status;
}

/* All ways with one length of stacks: first each process by itself, then those that have only sums
 * merged into one. */
static enum ml_status fill_with_length(struct fitting *fitting, uint32_t frames) {
    struct way way = {.frames = frames};
    struct ml_stacks_copy from = {0};
    double worth = 0;
    enum ml_status status =
        begin_with(fitting, frames, frames == 0 ? AIM_PERCENT : ENOUGH_PERCENT, &from, &worth);

    if (status == ML_OK) {
        status = fill(fitting, &from, &way, worth);
    }
    if (status == ML_OK && is_chromes(fitting->upload.form) &&
        fitting->upload.stacks->processes_count > 1 && !tells(fitting, ENOUGH_PERCENT)) {
        way.others_as_one = true;
        status = fill(fitting, &from, &way, worth);
    }
    ml_stacks_copy_fini(&from);
    return status;
}

/* Try whole stacks first, then shorter ones until enough fits. If no length has room for enough,
 * the best body is taken. */
static enum ml_status fit(struct fitting *fitting) {
    enum ml_status status = ML_OK;

    fitting->told_bytes = ml_stacks_told_bytes(fitting->upload.stacks);
    fitting->function_worth = ml_stacks_worth(fitting->upload.stacks) / FUNCTION_PART + 1;
    if (fitting->upload.keeps_small) {
        status = ml_upload_make(&fitting->upload, &fitting->body);
        fitting->cut.stacks_before = fitting->stacks_before;
        fitting->cut.body_bytes = fitting->body.count_bytes;
        count_cut(&fitting->upload, &fitting->cut);
        fitting->fits = fitting->body.count_bytes <= fitting->upload.max_bytes;
        if (fitting->fits || status != ML_OK) {
            return status;
        }
    }
    for (size_t i = 0; status == ML_OK && !tells(fitting, ENOUGH_PERCENT) &&
                       i < sizeof lengths / sizeof lengths[0];
         i++) {
        status = fill_with_length(fitting, lengths[i]);
    }
    return status == ML_OK && !fitting->fits ? ML_PEER_LIMIT : status;
}

/* The size that the body may have: with a ratio, that part of one without pruning. */
static enum ml_status bound_find(struct ml_upload *upload, uint64_t *out_whole_bytes) {
    struct ml_upload whole = *upload;
    struct ml_upload_bytes body = {NULL, 0};
    enum ml_status status = ML_OK;
    uint64_t bound = 0;

    *out_whole_bytes = 0;
    if (upload->prune == 0) {
        return ML_OK;
    }
    whole.keeps_small = true;
    status = ml_upload_make(&whole, &body);
    free(body.bytes);
    *out_whole_bytes = body.count_bytes;
    bound = body.count_bytes / upload->prune;
    bound = bound > ML_UPLOAD_LEAST_BYTES ? bound : ML_UPLOAD_LEAST_BYTES;
    upload->max_bytes = bound < upload->max_bytes ? bound : upload->max_bytes;
    return status;
}

enum ml_status
ml_upload_write(const struct ml_upload *upload, FILE *out, struct ml_upload_cut *out_cut) {
    struct fitting fitting = {.upload = *upload, .stacks_before = count_stacks(upload->stacks)};
    struct ml_stacks_copy whole;
    uint64_t whole_bytes = 0;
    enum ml_status status = ML_OK;

    *out_cut = (struct ml_upload_cut){0};
    ml_stacks_take_details(upload->stacks, is_chromes(upload->form));
    status = bound_find(&fitting.upload, &whole_bytes);
    if (status == ML_OK && is_chromes(upload->form) && !upload->keeps_small) {
        upload->stacks->tree.count = 0; /* this form has only the processes */
        status = ml_stacks_merge_functions(upload->stacks);
    }
    if (status != ML_OK || !ml_stacks_copy_init(&whole, upload->stacks)) {
        return ML_ENV_MEMORY;
    }
    fitting.whole = &whole;
    status = fit(&fitting);
    *out_cut = fitting.cut;
    out_cut->whole_bytes = whole_bytes;
    out_cut->max_bytes = fitting.upload.max_bytes;
    ml_stacks_copy_fini(&whole);
    if (status == ML_OK &&
        fwrite(fitting.body.bytes, 1, fitting.body.count_bytes, out) != fitting.body.count_bytes) {
        status = ML_ENV_SYSTEM;
    }
    free(fitting.body.bytes);
    return status;
}
