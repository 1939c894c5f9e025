/* How far long work is. Room: tools. Context: the main thread of the analyzer.
 *
 * One rule: whoever works tells how far it is, and does not know whether anybody looks. Telling
 * costs a comparison where nobody does, so it may stand in inner loops. */
#ifndef MEMLOG_TOOLS_ANALYZER_PROGRESS_PROGRESS_H
#define MEMLOG_TOOLS_ANALYZER_PROGRESS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct ml_progress {
    const char *work;     /* "Reading symbols" */
    uint64_t done, total; /* pieces or bytes; total 0: nobody knows how many there are */
    bool are_bytes;
    const char *name; /* what it is at; NULL: nothing of its own. May hold anything */
};

/* Who looks. It must neither write to stdout nor work for long. */
typedef void ml_progress_watch(const struct ml_progress *now);

/* From now on this one looks; NULL: nobody. */
void ml_progress_tell_to(ml_progress_watch *watch);

/* So many pieces or bytes of the work are done. The texts must live until the next call. */
void ml_progress_pieces(const char *work, uint64_t done, uint64_t total, const char *name);
void ml_progress_bytes(const char *work, uint64_t done, uint64_t total, const char *name);

/* Bytes of something else that the piece told last waits for, and with its name. */
void ml_progress_meanwhile(const char *work, uint64_t done, uint64_t total);

/* It still goes on where it was told last: for loops inside one piece. */
void ml_progress_still(void);

#endif
