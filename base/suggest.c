#include "base/suggest.h"

#include <stdbool.h>
#include <string.h>

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

size_t ml_edit_distance(const char *left, const char *right) {
    size_t left_count = strlen(left);
    size_t right_count = strlen(right);
    if (left_count > ML_SUGGEST_WORD_MAX || right_count > ML_SUGGEST_WORD_MAX) {
        return ML_SUGGEST_WORD_MAX + 1;
    }
    /* Three rows of the usual table: a swap looks two rows back. */
    size_t rows[3][ML_SUGGEST_WORD_MAX + 1];
    for (size_t j = 0; j <= right_count; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= left_count; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];
        const size_t *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= right_count; j++) {
            size_t replace = above[j - 1] + (left[i - 1] != right[j - 1] ? 1U : 0U);
            row[j] = least(replace, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1]) {
                row[j] = least(row[j], two_above[j - 2] + 1);
            }
        }
    }
    return rows[left_count % 3][right_count];
}

/* Whether a part of the candidate between dashes begins with the word, which has no dash in front.
 */
static bool has_part(const char *candidate, const char *word) {
    enum { WORTH_A_GUESS = 4 }; /* letters */
    const size_t count = strlen(word);
    const char *at = count >= WORTH_A_GUESS ? strchr(candidate, '-') : NULL;
    while (at != NULL) {
        at += strspn(at, "-");
        if (strncmp(at, word, count) == 0) {
            return true;
        }
        at = strchr(at, '-');
    }
    return false;
}

const char *ml_suggest(const char *word, const char *const *candidates, size_t candidates_count) {
    size_t word_count = strlen(word);
    size_t best_distance = word_count / 3 + 2;
    const char *best = NULL;
    for (size_t i = 0; i < candidates_count; i++) {
        size_t distance = ml_edit_distance(word, candidates[i]);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidates[i];
        }
    }
    if (best != NULL || word_count == 0) {
        return best;
    }
    for (size_t i = 0; i < candidates_count; i++) {
        if (candidates[i] != NULL && strncmp(candidates[i], word, word_count) == 0) {
            return candidates[i];
        }
    }
    for (size_t i = 0; i < candidates_count; i++) {
        if (candidates[i] != NULL && has_part(candidates[i], word + strspn(word, "-"))) {
            return candidates[i];
        }
    }
    return NULL;
}
