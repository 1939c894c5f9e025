#include "tools/report_unrecorded.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/words.h"

enum { LINES_MAX = 20, SIZE_BYTES = 128, LINE_BYTES = 1024 };

/* Processes of one program that were not recorded for one reason. */
struct group {
    const struct ml_profile_process *first;
    uint64_t processes;
    uint64_t most_bytes; /* what those that ran at one time had together, at most */
};

/* Somebody begins or ends. */
struct step {
    uint64_t monotonic_ns;
    uint64_t bytes;
    bool is_end;
};

static int order_others(const void *left, const void *right) {
    const struct ml_profile_process *a = *(const struct ml_profile_process *const *)left;
    const struct ml_profile_process *b = *(const struct ml_profile_process *const *)right;
    const int names = strcmp(a->name.bytes, b->name.bytes);

    return names != 0 ? names : strcmp(a->not_recorded_reason.bytes, b->not_recorded_reason.bytes);
}

static int order_steps(const void *left, const void *right) {
    const struct step *a = left;
    const struct step *b = right;

    if (a->monotonic_ns != b->monotonic_ns) {
        return a->monotonic_ns < b->monotonic_ns ? -1 : 1;
    }
    return (int)b->is_end - (int)a->is_end; /* who ends makes room first */
}

static int order_groups(const void *left, const void *right) {
    const struct group *a = left;
    const struct group *b = right;

    if (a->most_bytes != b->most_bytes) {
        return a->most_bytes < b->most_bytes ? 1 : -1;
    }
    return (a->processes < b->processes) - (a->processes > b->processes);
}

/* By what each had when it was last looked at. */
static uint64_t
most_at_once(const struct ml_profile_process *const *some, size_t count, struct step *steps) {
    size_t steps_count = 0;
    uint64_t now_bytes = 0;
    uint64_t most_bytes = 0;

    for (size_t i = 0; i < count; i++) {
        const struct ml_profile_process *one = some[i];
        if (one->folded_processes > 0) { /* the largest of several, at some time */
            most_bytes = one->footprint_bytes > most_bytes ? one->footprint_bytes : most_bytes;
            continue;
        }
        steps[steps_count++] =
            (struct step){.monotonic_ns = one->start.monotonic_ns, .bytes = one->footprint_bytes};
        if (one->state != ML_STATE_RUNNING) {
            steps[steps_count++] = (struct step
            ){.monotonic_ns = one->end.monotonic_ns, .bytes = one->footprint_bytes, .is_end = true};
        }
    }
    qsort(steps, steps_count, sizeof *steps, order_steps);
    for (size_t i = 0; i < steps_count; i++) {
        if (!steps[i].is_end) {
            now_bytes += steps[i].bytes;
        } else {
            now_bytes -= steps[i].bytes <= now_bytes ? steps[i].bytes : now_bytes;
        }
        most_bytes = now_bytes > most_bytes ? now_bytes : most_bytes;
    }
    return most_bytes;
}

/* Largest first. NULL: no memory. Owner: the caller's. */
static struct group *groups_of(const struct ml_profile *profile, size_t *out_count) {
    const size_t room = profile->others_count + 1;
    struct group *groups = calloc(room, sizeof *groups);
    struct step *steps = calloc(2 * room, sizeof *steps);
    const struct ml_profile_process **order = calloc(room, sizeof *order);
    size_t count = 0;
    size_t groups_count = 0;

    for (size_t i = 0; groups && steps && order && i < profile->others_count; i++) {
        if (ml_profile_hides(&profile->others[i])) {
            order[count++] = &profile->others[i];
        }
    }
    if (count > 0) {
        qsort(order, count, sizeof *order, order_others);
    }
    for (size_t from = 0, to = 0; from < count; from = to) {
        struct group *group = &groups[groups_count++];
        *group = (struct group){.first = order[from]};
        for (to = from; to < count && order_others(&order[from], &order[to]) == 0; to++) {
            const uint32_t folded = order[to]->folded_processes;
            group->processes += folded > 0 ? folded : 1;
        }
        group->most_bytes = most_at_once(&order[from], to - from, steps);
    }
    if (groups_count > 0) {
        qsort(groups, groups_count, sizeof *groups, order_groups);
    }
    free(steps);
    free(order);
    *out_count = groups_count;
    return groups;
}

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

static void
put_group(const struct ml_report_page *page, const char *indent, const struct group *group) {
    const struct ml_profile_process *first = group->first;
    char size[SIZE_BYTES];
    char text[LINE_BYTES];

    words_of_size(size, group->processes, group->most_bytes);
    snprintf(
        text,
        sizeof text,
        "%s: %snot recorded%s%s",
        first->name.bytes,
        size,
        first->not_recorded_reason.count_bytes > 0 ? ": " : "",
        first->not_recorded_reason.bytes
    );
    fputs(indent, page->out);
    ml_report_put_wrapped(page, strlen(indent) + 2, text); /* where it goes on, two further in */
    putc('\n', page->out);
}

size_t ml_report_unrecorded_lines(
    const struct ml_report_page *page, const char *before, const char *indent, size_t lines_max
) {
    size_t count = 0;
    struct group *groups = groups_of(page->report->profile, &count);
    const size_t shown = count > lines_max ? lines_max - 1 : count;
    uint64_t processes = 0;
    uint64_t bytes = 0;

    fputs(count > 0 ? before : "", page->out);
    for (size_t i = 0; groups && i < shown; i++) {
        put_group(page, indent, &groups[i]);
    }
    for (size_t i = shown; groups && i < count; i++) {
        processes += groups[i].processes;
        bytes += groups[i].most_bytes;
    }
    if (processes > 0) {
        char words[ML_WORDS_BYTES];
        char size[ML_WORDS_BYTES];
        fprintf(
            page->out,
            "%s... and %s more process%s of %zu kinds, %s at most\n",
            indent,
            ml_words_count(processes, words),
            processes == 1 ? "" : "es",
            count - shown,
            ml_words_size(bytes, size)
        );
    }
    free(groups);
    return shown + (processes > 0);
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
    (void)ml_report_unrecorded_lines(page, "", "  ", LINES_MAX);
    put_idle(page);
    put_blind(page);
}
