#include "tools/report_unrecorded.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/unseen_groups.h"
#include "tools/words.h"

enum { LINES_MAX = 20, SIZE_BYTES = 128, LINE_BYTES = 1024 };

/* "3 processes, up to 2.0 MiB private memory together, " */
static void words_of_size(char text[SIZE_BYTES], uint64_t processes, uint64_t bytes) {
    char count[2 * ML_WORDS_BYTES] = "";
    char words[ML_WORDS_BYTES];

    if (processes > 1) {
        snprintf(count, sizeof count, "%s processes, ", ml_words_count(processes, words));
    }
    if (bytes == 0) {
        snprintf(text, SIZE_BYTES, "%s", count);
        return;
    }
    snprintf(
        text,
        SIZE_BYTES,
        "%s%s%s private memory%s, ",
        count,
        processes > 1 ? "up to " : "",
        ml_words_size(bytes, words),
        processes > 1 ? " together" : ""
    );
}

static void put_group(
    const struct ml_report_page *page, const char *indent, const struct ml_unseen_group *group
) {
    const struct ml_profile_process *first = group->largest;
    char size[SIZE_BYTES];
    char text[LINE_BYTES];

    words_of_size(size, group->processes, group->most_bytes);
    snprintf(
        text,
        sizeof text,
        "%s: %snot recorded%s%s",
        group->name,
        size,
        first->not_recorded_reason.count_bytes > 0 ? ": " : "",
        first->not_recorded_reason.bytes
    );
    fputs(indent, page->out);
    ml_report_put_wrapped(page, strlen(indent) + 2, text); /* where it goes on, two further in */
    putc('\n', page->out);
}

/* At most LINES_MAX lines, the last of them for the rest. */
static void put_groups(const struct ml_report_page *page) {
    size_t count = 0;
    struct ml_unseen_group *groups =
        ml_unseen_groups(page->report->profile, ML_UNSEEN_UNRECORDED, &count);
    const size_t shown = count > LINES_MAX ? LINES_MAX - 1 : count;

    for (size_t i = 0; groups && i < shown; i++) {
        put_group(page, "  ", &groups[i]);
    }
    if (groups && shown < count) {
        char text[ML_UNSEEN_WORDS_BYTES];
        fprintf(page->out, "  %s\n", ml_unseen_rest_words(groups + shown, count - shown, text));
    }
    free(groups);
}

/* Forks whose malloc nobody had to see, for they never called it. */
static void put_idle(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    uint64_t processes = 0;
    char words[ML_WORDS_BYTES];

    for (size_t i = 0; i < profile->others_count; i++) {
        const uint32_t folded = profile->others[i].folded_processes;
        processes += ml_profile_hides(&profile->others[i]) ? 0 : (folded > 0 ? folded : 1);
    }
    if (processes > 0) {
        fprintf(
            page->out,
            "  %s forked process%s called no allocator and made no exec\n",
            ml_words_count(processes, words),
            processes == 1 ? "" : "es"
        );
    }
}

/* What the list may not hold. */
static void put_blind(const struct ml_report_page *page) {
    enum { NS_PER_MS = 1000000 };
    const struct ml_profile *profile = page->report->profile;
    char words[ML_WORDS_BYTES];

    if (profile->list_missed > 0) {
        fprintf(
            page->out,
            "  %sat least %s process%s ended before memlog saw %s%s\n",
            ml_report_warn(page),
            ml_words_count(profile->list_missed, words),
            profile->list_missed == 1 ? "" : "es",
            profile->list_missed == 1 ? "it" : "them",
            ml_report_plain(page)
        );
    }
    if (profile->list_blind_ns > 0) {
        fprintf(
            page->out,
            "  %sunrecorded processes that lived less than %" PRIu64 " ms may be missing%s\n",
            ml_report_dim(page),
            (profile->list_blind_ns + NS_PER_MS - 1) / NS_PER_MS,
            ml_report_plain(page)
        );
    }
}

void ml_report_unrecorded(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;

    if (profile->others_count == 0 && profile->list_missed == 0 && profile->list_blind_ns == 0) {
        return;
    }
    ml_report_heading(page, "Not recorded", "");
    put_groups(page);
    put_idle(page);
    put_blind(page);
}
