#include "tools/analyzer/stacks/frame_filter.h"

#include <regex.h>
#include <stdlib.h>

#include "ipc/wire/event.h"
#include "tools/analyzer/stacks/prune.h"

enum option { FOCUS, IGNORE, SHOW, HIDE, OPTIONS };

/* Which of the four expressions match, as bits. */
#define BIT(option_) (1U << (option_))

struct words {
    regex_t regex[OPTIONS];
    bool is_given[OPTIONS];
};

static const char *text_of(const struct ml_frame_filter *filter, enum option option) {
    const char *const texts[] = {filter->focus, filter->ignore, filter->show, filter->hide};

    return texts[option];
}

static void words_fini(struct words *words) {
    for (int i = 0; i < OPTIONS; i++) {
        if (words->is_given[i]) {
            regfree(&words->regex[i]);
        }
    }
}

/* False: an expression is not valid, or there is no memory; _fini is still needed. */
static bool words_init(struct words *words, const struct ml_frame_filter *filter) {
    *words = (struct words){0};
    for (int i = 0; i < OPTIONS; i++) {
        const char *text = text_of(filter, (enum option)i);

        if (text && regcomp(&words->regex[i], text, REG_EXTENDED | REG_NOSUB) != 0) {
            return false;
        }
        words->is_given[i] = text != NULL;
    }
    return true;
}

bool ml_frame_filter_is_any(const struct ml_frame_filter *filter) {
    return filter->focus || filter->ignore || filter->show || filter->hide;
}

static unsigned match_text(const struct words *words, const char *text) {
    unsigned bits = 0;

    for (int i = 0; i < OPTIONS; i++) {
        if (words->is_given[i] && regexec(&words->regex[i], text, 0, NULL, 0) == 0) {
            bits |= BIT(i);
        }
    }
    return bits;
}

static bool is_shown(const struct words *words, unsigned bits) {
    return (!words->is_given[SHOW] || (bits & BIT(SHOW)) != 0) && (bits & BIT(HIDE)) == 0;
}

/* What the expressions say of a place. */
struct verdict {
    unsigned bits;  /* of all its frames */
    bool is_hidden; /* no frame stays */
};

/* Functions that stay move to the front of the place's symbols. No other place shares these
 * symbols. */
static struct verdict
place_filter(struct ml_stacks *stacks, struct ml_place *place, const struct words *words) {
    const char *module = place->file == ML_STACKS_NONE ? "" : stacks->files[place->file].path.bytes;
    struct verdict verdict = {.bits = 0};
    unsigned of_module = match_text(words, module);
    size_t kept = 0;

    if (place->kind == ML_PLACE_OTHER || place->kind == ML_FRAME_THREAD) {
        return verdict; /* these are no frames of functions: they always stay */
    }
    if (place->symbols_count == 0) {
        char buffer[ML_PLACE_NAME_BYTES];
        verdict.bits = of_module | match_text(words, ml_place_name(place, buffer));
        verdict.is_hidden = !is_shown(words, verdict.bits);
        return verdict;
    }
    for (size_t i = 0; i < place->symbols_count; i++) {
        const struct ml_symbol symbol = stacks->symbols[place->first_symbol + i];
        unsigned bits =
            of_module | match_text(words, symbol.function) | match_text(words, symbol.file);

        verdict.bits |= bits;
        if (is_shown(words, bits)) {
            stacks->symbols[place->first_symbol + kept++] = symbol;
        }
    }
    verdict.is_hidden = kept == 0;
    if (kept > 0) {
        place->symbols_count = kept;
    }
    return verdict;
}

struct work {
    const struct words *words;
    struct verdict *verdicts; /* of each place */
    unsigned *bits;           /* of each node and its callers */
    uint32_t *nodes;          /* what each node becomes */
};

static bool nodes_filter(struct ml_stacks *stacks, struct work *work, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct ml_stack_node node = stacks->nodes[i];
        bool is_root = node.parent == ML_STACKS_NONE;
        uint32_t parent = is_root ? ML_STACKS_NONE : work->nodes[node.parent];

        work->bits[i] = work->verdicts[node.place].bits | (is_root ? 0 : work->bits[node.parent]);
        work->nodes[i] = parent;
        if (!work->verdicts[node.place].is_hidden) {
            work->nodes[i] = ml_stacks_node(stacks, parent, node.place);
            if (work->nodes[i] == ML_STACKS_NONE) {
                return false;
            }
        }
    }
    return true;
}

static void list_filter(struct ml_stack_list *list, const struct work *work) {
    size_t kept = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct ml_stack stack = list->stacks[i];
        bool has_node = stack.node != ML_STACKS_NONE;
        unsigned bits = has_node ? work->bits[stack.node] : 0;

        if ((work->words->is_given[FOCUS] && (bits & BIT(FOCUS)) == 0) || (bits & BIT(IGNORE))) {
            continue;
        }
        stack.node = has_node ? work->nodes[stack.node] : ML_STACKS_NONE;
        list->stacks[kept++] = stack;
    }
    list->count = kept;
    ml_stack_list_finish(list);
}

enum ml_status
ml_stacks_filter_frames(struct ml_stacks *stacks, const struct ml_frame_filter *filter) {
    struct words words;
    size_t nodes_count = stacks->nodes_count;
    struct work work = {
        .words = &words,
        .verdicts = calloc(stacks->places_count + 1, sizeof *work.verdicts),
        .bits = calloc(nodes_count + 1, sizeof *work.bits),
        .nodes = calloc(nodes_count + 1, sizeof *work.nodes),
    };
    bool done = words_init(&words, filter) && work.verdicts && work.bits && work.nodes;

    stacks->is_filtered = true;
    for (size_t i = 0; done && i < stacks->places_count; i++) {
        work.verdicts[i] = place_filter(stacks, &stacks->places[i], &words);
    }
    done = done && nodes_filter(stacks, &work, nodes_count);
    for (size_t i = 0; done && i < ml_stacks_lists(stacks); i++) {
        list_filter(ml_stacks_list(stacks, i), &work);
    }
    done = done && ml_stacks_forget(stacks) == ML_OK;
    words_fini(&words);
    free(work.verdicts);
    free(work.bits);
    free(work.nodes);
    return done ? ML_OK : ML_ENV_MEMORY;
}
