/* "Did you mean ...?" Room: base. Context: any; no state.
 *
 * One rule: a suggestion is made only when it is close enough to be what the person meant; a wild
 * guess is worse than none. */
#ifndef MEMLOG_BASE_SUGGEST_H
#define MEMLOG_BASE_SUGGEST_H

#include <stddef.h>

/* Longest word that is compared; longer ones get no suggestion. */
enum { ML_SUGGEST_WORD_MAX = 64 };

/* Least number of insertions, deletions, replacements and swaps of neighbours between two words.
 * ML_SUGGEST_WORD_MAX + 1 when either is longer than that. */
size_t ml_edit_distance(const char *left, const char *right);

/* The candidate nearest to `word`: within a third of its length, or beginning with it, or with a
 * part between dashes that does ("--sampling": "--memlog-sampling-rate"). NULL: none is. The first
 * of equals wins. */
const char *ml_suggest(const char *word, const char *const *candidates, size_t candidates_count);

#endif
