#include "tools/analyzer/formats/flame.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/names/plumbing.h"
#include "tools/analyzer/progress/progress.h"
#include "tools/analyzer/stacks/frame_tree.h"
#include "tools/analyzer/stacks/module_pairs.h"
#include "tools/analyzer/stacks/process_pairs.h"

/* tools/analyzer/formats/flamegraph.html; the mark is where the data goes. */
extern const char ml_flamegraph_page[];
static const char mark[] = "@MEMLOG_DATA@";

enum { FIGURES_OF_ALL = 6, FIGURES = 9, SIDES = 2, TITLE_BYTES = 400 };

/* A frame's figures, in the order of the page's list. */
struct figures {
    uint64_t of[FIGURES];
};

/* A view of the page: the tree, or a process. */
struct view {
    const struct ml_stack_list *lists[SIDES]; /* NULL: that side has none */
    char title[TITLE_BYTES];
};

struct flame {
    size_t tree_frames_max; /* of the view of all processes */
    bool is_tree_alone;     /* no view of a process */
    bool knows_pages;       /* also the figures of pages */
    struct ml_frame_tree tree;
    uint32_t *frames[SIDES];  /* innermost frame of each stack's node */
    uint32_t no_stack, other; /* frames; of `other` the texts alone are used */
    struct view *views;
    size_t views_count;
    bool *is_kept;          /* of each frame */
    struct figures *sums;   /* of the view at hand */
    uint32_t *others;       /* `<other>` below each frame, [frames_count]: outermost; number or 0 */
    uint32_t *numbers;      /* of each frame in the page, from 1; 0: not yet */
    struct ml_frame *shown; /* in the page's order */
    size_t shown_count, shown_capacity;
};

static struct figures figures_of(const struct ml_stack *stack) {
    const struct ml_profile_pages *pages = &stack->own.pages;
#define FIGURE(figure) stack->own.figure,
    return (struct figures
    ){{ML_PROFILE_FIGURES(FIGURE) pages->resident_bytes, pages->waste_bytes, pages->alone_bytes}};
}

static void figures_add(struct figures *sum, const struct figures *one) {
    for (size_t i = 0; i < FIGURES; i++) {
        sum->of[i] += one->of[i];
    }
}

static bool figures_any(const struct figures *figures, size_t first, size_t end) {
    uint64_t any = 0;

    for (size_t i = first; i < end; i++) {
        any |= figures->of[i];
    }
    return any != 0;
}

static uint32_t frame_of(const struct flame *flame, size_t side, const struct ml_stack *stack) {
    return stack->node == ML_STACKS_NONE ? flame->no_stack : flame->frames[side][stack->node];
}

/* How often the whole must be halved to be no more than the frame, by its largest figure;
 * ML_FLAME_HALVINGS + 1: too thin. */
static unsigned thinness(const struct figures *sum, const struct figures *total) {
    unsigned least = ML_FLAME_HALVINGS + 1;

    for (size_t f = 0; f < FIGURES; f++) {
        unsigned halvings = 0;
        while (sum->of[f] > 0 && halvings < least && total->of[f] >> halvings > sum->of[f]) {
            halvings++;
        }
        least = sum->of[f] > 0 && halvings < least ? halvings : least;
    }
    return least;
}

/* The cumulative figures of every frame of the list; returns the sum. */
static struct figures
sums_take(struct flame *flame, size_t side, const struct ml_stack_list *list) {
    struct figures total = {{0}};

    memset(flame->sums, 0, flame->tree.frames_count * sizeof flame->sums[0]);
    for (size_t i = 0; i < list->count; i++) {
        const struct figures own = figures_of(&list->stacks[i]);
        figures_add(&flame->sums[frame_of(flame, side, &list->stacks[i])], &own);
        figures_add(&total, &own);
    }
    /* Callers come first. */
    for (size_t i = flame->tree.frames_count; i > 0; i--) {
        uint32_t parent = flame->tree.frames[i - 1].parent;
        if (parent != ML_STACKS_NONE) {
            figures_add(&flame->sums[parent], &flame->sums[i - 1]);
        }
    }
    return total;
}

/* Keep frames that are wide enough by any figure, `frames_max` at most. */
static void
list_keep(struct flame *flame, size_t side, const struct ml_stack_list *list, size_t frames_max) {
    const struct figures total = sums_take(flame, side, list);
    size_t counts[ML_FLAME_HALVINGS + 2] = {0};
    size_t wide = 0;
    unsigned kept = 0;

    for (size_t i = 0; i < flame->tree.frames_count; i++) {
        counts[thinness(&flame->sums[i], &total)]++;
    }
    wide = counts[0];
    while (kept < ML_FLAME_HALVINGS && wide + counts[kept + 1] <= frames_max) {
        wide += counts[++kept];
    }
    for (size_t i = 0; i < flame->tree.frames_count; i++) {
        flame->is_kept[i] = flame->is_kept[i] || thinness(&flame->sums[i], &total) <= kept;
    }
}

/* The frame's number in the page, for its first use a new one. 0: no memory. */
static uint32_t show(struct flame *flame, uint32_t *number, struct ml_frame frame) {
    if (*number == 0) {
        if (!ML_GROW(flame->shown, flame->shown_capacity, flame->shown_count + 1)) {
            return 0;
        }
        flame->shown[flame->shown_count++] = frame;
        *number = (uint32_t)flame->shown_count;
    }
    return *number;
}

/* Number every frame that is kept, callers first; `shown`'s parents are such numbers. */
static bool kept_number(struct flame *flame) {
    bool done = true;

    for (size_t i = 0; done && i < flame->tree.frames_count; i++) {
        struct ml_frame frame = flame->tree.frames[i];
        if (flame->is_kept[i]) {
            frame.parent = frame.parent == ML_STACKS_NONE ? 0 : flame->numbers[frame.parent];
            done = show(flame, &flame->numbers[i], frame) != 0;
        }
    }
    return done;
}

/* Where the frame's own figures go: itself, or `<other>` below the nearest caller that is kept. */
static uint32_t number_of(struct flame *flame, uint32_t frame) {
    struct ml_frame other = flame->tree.frames[flame->other];
    uint32_t caller = frame;

    while (caller != ML_STACKS_NONE && !flame->is_kept[caller]) {
        caller = flame->tree.frames[caller].parent;
    }
    if (caller == frame) {
        return flame->numbers[frame];
    }
    other.parent = caller == ML_STACKS_NONE ? 0 : flame->numbers[caller];
    return show(
        flame, &flame->others[caller == ML_STACKS_NONE ? flame->tree.frames_count : caller], other
    );
}

/* Some of the figures, behind the frame's number; nothing of frames that have none of them. */
static void put_rows(
    struct ml_json *json,
    const char *name,
    const struct figures *rows,
    size_t count,
    size_t first,
    size_t end
) {
    ml_json_open_member(json, name, '[');
    for (size_t i = 0; i < count; i++) {
        if (figures_any(&rows[i], first, end)) {
            ml_json_number(json, i + 1);
            for (size_t f = first; f < end; f++) {
                ml_json_number(json, rows[i].of[f]);
            }
        }
    }
    ml_json_close(json, ']');
}

static bool
put_values(struct flame *flame, struct ml_json *json, size_t side, const struct view *view) {
    const struct ml_stack_list *list = view->lists[side];
    struct figures *rows = NULL;
    size_t capacity = 0;
    size_t count = 0;
    bool done = true;

    for (size_t i = 0; done && list && i < list->count; i++) {
        const struct figures own = figures_of(&list->stacks[i]);
        uint32_t number = number_of(flame, frame_of(flame, side, &list->stacks[i]));
        ml_progress_pieces("Writing stacks", i, list->count, view->title);
        done = number != 0 && ML_GROW(rows, capacity, number);
        if (done) {
            for (; count < number; count++) {
                rows[count] = (struct figures){{0}};
            }
            figures_add(&rows[number - 1], &own);
        }
    }
    put_rows(json, side == 0 ? "values" : "before", rows, count, 0, FIGURES_OF_ALL);
    if (flame->knows_pages) {
        put_rows(json, side == 0 ? "pages" : "pages_before", rows, count, FIGURES_OF_ALL, FIGURES);
    }
    free(rows);
    return done;
}

static bool put_views(struct flame *flame, struct ml_json *json, bool is_diff) {
    bool done = true;

    ml_json_open_member(json, "views", '[');
    for (size_t i = 0; done && i < flame->views_count; i++) {
        ml_json_line(json);
        ml_json_open(json, '{');
        ml_json_string_member(json, "title", flame->views[i].title);
        done = put_values(flame, json, 0, &flame->views[i]) &&
               (!is_diff || put_values(flame, json, 1, &flame->views[i]));
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
    return done;
}

/* Numbers of frames that are plumbing: the page leaves them out unless one asks. A type, a thread
 * or a scope may have such a name, and is none. */
static void put_plumbing(const struct flame *flame, struct ml_json *json) {
    ml_json_line(json);
    ml_json_open_member(json, "plumbing", '[');
    for (size_t i = 0; i < flame->shown_count; i++) {
        const struct ml_frame *frame = &flame->shown[i];
        if ((frame->kind == ML_FRAME_ADDRESS || frame->kind == ML_PLACE_FUNCTION) &&
            ml_is_plumbing(flame->tree.texts.strings[frame->name].bytes)) {
            ml_json_number(json, i + 1);
        }
    }
    ml_json_close(json, ']');
}

/* Frames as [caller's number or 0, name, module], and the texts that they name. */
static bool put_frames(const struct flame *flame, struct ml_json *json) {
    uint32_t *texts = calloc(flame->tree.texts.count + 1, sizeof *texts); /* number + 1 */
    uint32_t *order = calloc(flame->tree.texts.count + 1, sizeof *order);
    bool done = texts && order;
    uint32_t count = 0;

    ml_json_line(json);
    ml_json_open_member(json, "frames", '[');
    for (size_t i = 0; done && i < flame->shown_count; i++) {
        const uint32_t of[] = {flame->shown[i].name, flame->shown[i].module};
        ml_json_number(json, flame->shown[i].parent);
        for (size_t t = 0; t < sizeof of / sizeof of[0]; t++) {
            if (texts[of[t]] == 0) {
                order[count] = of[t];
                texts[of[t]] = ++count;
            }
            ml_json_number(json, texts[of[t]] - 1);
        }
    }
    ml_json_close(json, ']');
    ml_json_line(json);
    ml_json_open_member(json, "names", '[');
    for (uint32_t i = 0; done && i < count; i++) {
        ml_json_string(json, flame->tree.texts.strings[order[i]].bytes);
    }
    ml_json_close(json, ']');
    free(texts);
    free(order);
    return done;
}

static void view_title(char *out_title, const struct ml_profile_process *process) {
    const char *end = process->state == 3 ? ", before exec" : "";

    snprintf(
        out_title, TITLE_BYTES, "%.300s (%" PRIu32 "%s)", process->name.bytes, process->pid, end
    );
}

/* How many have a heap to draw. */
static uint64_t recorded_processes(const struct ml_profile *profile) {
    struct ml_profile recorded = *profile;

    recorded.others_count = 0;
    return ml_profile_processes(&recorded);
}

/* The tree, then every process; of a single one both would be the same. */
static bool
views_find(struct flame *flame, const struct ml_stacks *after, const struct ml_stacks *before) {
    const size_t after_count = after->profile->processes_count;
    size_t before_count = before ? before->profile->processes_count : 0;
    struct ml_process_pair *pairs = NULL;
    size_t count = 0;
    bool done = ml_process_pairs(before ? before->profile : NULL, after->profile, &pairs, &count);

    flame->views = calloc(count + 1, sizeof flame->views[0]);
    if (!done || !flame->views) {
        free(pairs);
        return false;
    }
    flame->views[0].lists[0] = &after->tree;
    flame->views[0].lists[1] = before ? &before->tree : NULL;
    snprintf(
        flame->views[0].title,
        TITLE_BYTES,
        "All processes (%" PRIu64 ")",
        recorded_processes(after->profile)
    );
    flame->views_count = 1;
    for (size_t i = 0; !flame->is_tree_alone && (after_count > 1 || before_count > 1) && i < count;
         i++) {
        struct view *view = &flame->views[flame->views_count++];
        if (before && pairs[i].before != SIZE_MAX) {
            view->lists[1] = &before->processes[pairs[i].before];
            view_title(view->title, &before->profile->processes[pairs[i].before]);
        }
        if (pairs[i].after != SIZE_MAX) {
            view->lists[0] = &after->processes[pairs[i].after];
            view_title(view->title, &after->profile->processes[pairs[i].after]);
        }
    }
    free(pairs);
    return true;
}

static void
put_about(struct ml_json *json, const struct ml_stacks *after, const struct ml_stacks *before) {
    const struct ml_profile *profile = after->profile;
    char about[TITLE_BYTES];
    static const char filtered[] = "; only stacks and frames that were asked for";
    const char *title =
        profile->program.count_bytes > 0 ? profile->program.bytes : "memory of a process tree";

    ml_json_string_member(json, "title", title);
    if (before) {
        snprintf(
            about,
            sizeof about,
            "What changed from %s to %s%s%s",
            ml_units_time(before->profile->now.realtime_ns).text,
            ml_units_time(profile->now.realtime_ns).text,
            ml_profile_is_complete(profile) && ml_profile_is_complete(before->profile)
                ? ""
                : "; not both are complete, see memlog report",
            after->is_filtered ? filtered : ""
        );
    } else {
        snprintf(
            about,
            sizeof about,
            "Dump of %s (%s), %" PRIu64 " process%s%s%s",
            ml_units_time(profile->now.realtime_ns).text,
            ml_profile_reason_name(profile->reason),
            ml_profile_processes(profile),
            ml_profile_processes(profile) == 1 ? "" : "es",
            !ml_profile_is_complete(profile) ? "; not complete, see memlog report"
            : ml_profile_is_covered(profile) ? "; nothing was lost"
                                             : "; of what memlog sees nothing was lost",
            after->is_filtered ? filtered : ""
        );
    }
    ml_json_string_member(json, "about", about);
}

/* Frames of both sides, each file of `after` called as the one of `before` that it is. */
static bool
frames_add(struct flame *flame, const struct ml_stacks *after, const struct ml_stacks *before) {
    const struct ml_stacks *sides[SIDES] = {after, before};
    const size_t sides_count = before ? 2 : 1;
    const char **names = before ? ml_module_names(before, after) : NULL;
    bool done = !before || names;

    for (size_t s = 0; done && s < sides_count; s++) {
        flame->frames[s] = calloc(sides[s]->nodes_count + 1, sizeof(uint32_t));
        done =
            flame->frames[s] && ml_frame_tree_add_named(
                                    &flame->tree, sides[s], s == 0 ? names : NULL, flame->frames[s]
                                );
    }
    free(names);
    return done;
}

static bool
flame_fill(struct flame *flame, const struct ml_stacks *after, const struct ml_stacks *before) {
    flame->knows_pages = ml_profile_knows_pages(after->profile) &&
                         (!before || ml_profile_knows_pages(before->profile));
    if (!frames_add(flame, after, before)) {
        return false;
    }
    flame->no_stack = ml_frame_tree_child(&flame->tree, ML_STACKS_NONE, 0, "[no stack]", "");
    flame->other = ml_frame_tree_child(&flame->tree, ML_STACKS_NONE, ML_PLACE_OTHER, "<other>", "");
    flame->is_kept = calloc(flame->tree.frames_count + 1, sizeof flame->is_kept[0]);
    flame->sums = calloc(flame->tree.frames_count + 1, sizeof flame->sums[0]);
    flame->others = calloc(flame->tree.frames_count + 1, sizeof flame->others[0]);
    flame->numbers = calloc(flame->tree.frames_count + 1, sizeof flame->numbers[0]);
    if (flame->no_stack == ML_STACKS_NONE || flame->other == ML_STACKS_NONE || !flame->is_kept ||
        !flame->sums || !flame->others || !flame->numbers || !views_find(flame, after, before)) {
        return false;
    }
    for (size_t i = 0; i < flame->views_count; i++) {
        size_t frames_max =
            i == 0 ? flame->tree_frames_max : ML_FLAME_PROCESS_FRAMES / (flame->views_count - 1);
        for (size_t s = 0; s < SIDES; s++) {
            if (flame->views[i].lists[s]) {
                list_keep(flame, s, flame->views[i].lists[s], frames_max);
            }
        }
    }
    return kept_number(flame);
}

static void flame_fini(struct flame *flame) {
    ml_frame_tree_fini(&flame->tree);
    free(flame->frames[0]);
    free(flame->frames[1]);
    free(flame->views);
    free(flame->is_kept);
    free(flame->sums);
    free(flame->others);
    free(flame->numbers);
    free(flame->shown);
}

/* The metric's bytes in the page's list. */
static uint64_t figure_of(enum ml_metric metric) {
    return ml_metric_is_of_pages(metric) ? FIGURES_OF_ALL + (uint64_t)(metric - ML_METRIC_RESIDENT)
                                         : 2 * (uint64_t)metric;
}

static bool put_data(
    struct flame *flame,
    struct ml_json *json,
    const struct ml_stacks *after,
    const struct ml_stacks *before,
    enum ml_metric metric
) {
    bool done = true;

    ml_json_open(json, '{');
    put_about(json, after, before);
    ml_json_number_member(json, "metric", figure_of(metric));
    ml_json_number_member(json, "frames_total", flame->tree.frames_count);
    done = put_views(flame, json, before != NULL) && put_frames(flame, json);
    put_plumbing(flame, json);
    ml_json_close(json, '}');
    return done;
}

enum ml_status ml_flame_write(
    const struct ml_stacks *after, const struct ml_stacks *before, enum ml_metric metric, FILE *out
) {
    const char *hole = strstr(ml_flamegraph_page, mark);
    struct ml_json json = ml_json_over(out);
    struct flame flame = {.tree_frames_max = ML_FLAME_TREE_FRAMES};
    bool done = flame_fill(&flame, after, before);

    if (done) {
        json.in_html = true;
        fwrite(ml_flamegraph_page, 1, (size_t)(hole - ml_flamegraph_page), out);
        done = put_data(&flame, &json, after, before, metric);
        fputs(hole + strlen(mark), out);
    }
    flame_fini(&flame);
    return done ? ML_OK : ML_ENV_MEMORY;
}

enum ml_status ml_flame_write_data(
    const struct ml_stacks *after,
    const struct ml_stacks *before,
    enum ml_metric metric,
    size_t frames_max,
    FILE *out
) {
    struct ml_json json = ml_json_over(out);
    struct flame flame = {.tree_frames_max = frames_max, .is_tree_alone = true};
    bool done = flame_fill(&flame, after, before) && put_data(&flame, &json, after, before, metric);

    flame_fini(&flame);
    return done ? ML_OK : ML_ENV_MEMORY;
}
