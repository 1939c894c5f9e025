#include "base/uncovered.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"

enum { UNSEEN_MAX = 320 };

/* Of memlog-service: service/session/coverage.h. */
static const uint64_t small_bytes = (uint64_t)8 << 20;

bool ml_uncovered_hides(bool is_idle, uint64_t private_bytes) {
    return !is_idle || private_bytes > small_bytes;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

void ml_uncovered_add_unseen(
    struct ml_uncovered *uncovered,
    const char *name,
    const char *unseen,
    size_t unseen_count,
    uint64_t private_bytes,
    uint64_t processes
) {
    if (unseen_count == 0) {
        return;
    }
    if (uncovered->unseen == NULL || private_bytes > uncovered->unseen_bytes) {
        uncovered->more_processes += uncovered->unseen_processes;
        uncovered->more_most_bytes = larger(uncovered->more_most_bytes, uncovered->unseen_bytes);
        uncovered->name = name;
        uncovered->unseen = unseen;
        uncovered->unseen_count = unseen_count;
        uncovered->unseen_bytes = private_bytes;
        uncovered->unseen_processes = processes;
        return;
    }
    uncovered->more_processes += processes;
    uncovered->more_most_bytes = larger(uncovered->more_most_bytes, private_bytes);
}

void ml_uncovered_add_unrecorded(
    struct ml_uncovered *uncovered,
    const char *name,
    const char *reason,
    bool is_idle,
    uint64_t private_bytes,
    uint64_t processes
) {
    if (ml_uncovered_hides(is_idle, private_bytes)) {
        if (uncovered->reason == NULL || private_bytes > uncovered->unrecorded_most_bytes) {
            uncovered->unrecorded_name = name;
            uncovered->reason = reason;
        }
        uncovered->unrecorded += processes;
        uncovered->unrecorded_most_bytes = larger(uncovered->unrecorded_most_bytes, private_bytes);
    }
}

bool ml_uncovered_is_any(const struct ml_uncovered *uncovered) {
    return uncovered->unseen != NULL || uncovered->unrecorded > 0 || uncovered->not_profiled > 0 ||
           uncovered->missed > 0;
}

/* One more part of the line; nothing of a count of 0. */
static void add(char *text, uint64_t count, const char *one, const char *several) {
    const size_t used = strlen(text);

    if (count > 0) {
        snprintf(
            text + used,
            ML_UNCOVERED_BYTES - used,
            "%s%" PRIu64 " %s",
            used > 0 ? "; " : "",
            count,
            count == 1 ? one : several
        );
    }
}

/* Their bytes, behind their number. */
static void add_size(char *text, uint64_t count, uint64_t most_bytes) {
    const size_t used = strlen(text);
    char words[ML_SIZE_TEXT_BYTES];

    if (count > 0 && most_bytes > 0) {
        snprintf(
            text + used,
            ML_UNCOVERED_BYTES - used,
            count == 1 ? " (%s private memory)" : " (%s private memory at most, each)",
            ml_size_text(most_bytes, words)
        );
    }
}

static void add_bytes(char *text, const char *bytes, size_t count) {
    const size_t used = strlen(text);

    snprintf(text + used, ML_UNCOVERED_BYTES - used, "%.*s", (int)count, bytes);
}

static void add_unseen(char *text, const struct ml_uncovered *uncovered) {
    const size_t count =
        uncovered->unseen_count < UNSEEN_MAX ? uncovered->unseen_count : UNSEEN_MAX;
    const int name_count = snprintf(text, ML_UNCOVERED_BYTES, "%.64s: ", uncovered->name);

    add_bytes(text, uncovered->unseen, count);
    if (strstr(text + name_count, "private memory") == NULL) { /* else it says it itself */
        add_size(text, 1, uncovered->unseen_bytes);
    }
    add(text,
        uncovered->more_processes,
        "more process is not all seen",
        "more processes are not all seen");
    add_size(text, uncovered->more_processes, uncovered->more_most_bytes);
}

/* Why, where nothing else is told: of somebody whose memory is not all seen the sentence is full.
 */
static void add_reason(char *text, const struct ml_uncovered *uncovered) {
    const size_t used = strlen(text);

    if (uncovered->unseen == NULL && uncovered->reason != NULL && uncovered->reason[0] != '\0') {
        snprintf(
            text + used,
            ML_UNCOVERED_BYTES - used,
            "%s %.64s: %.256s",
            uncovered->unrecorded == 1 ? ":" : ", such as",
            uncovered->unrecorded_name,
            uncovered->reason
        );
    }
}

const char *
ml_uncovered_words(const struct ml_uncovered *uncovered, char out_text[ML_UNCOVERED_BYTES]) {
    out_text[0] = '\0';
    if (uncovered->unseen != NULL) {
        add_unseen(out_text, uncovered);
    }
    add(out_text, uncovered->unrecorded, "process was not recorded", "processes were not recorded");
    add_size(out_text, uncovered->unrecorded, uncovered->unrecorded_most_bytes);
    add_reason(out_text, uncovered);
    if (uncovered->unrecorded == 0) {
        add(out_text,
            uncovered->not_profiled,
            "program ran without memlog",
            "programs ran without memlog");
    }
    add(out_text,
        uncovered->missed,
        "process ended before memlog saw it",
        "processes ended before memlog saw them");
    return out_text;
}
