#include "tools/analyzer/report/unrecorded.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/report/unseen_groups.h"

enum { UNDER_NAME_COLUMN = 9, LINES_MAX = 20, SIZE_BYTES = 128, LINE_BYTES = 1024 };

/* "3 processes, up to 2.0 MiB private memory together, " */
static void words_of_size(char text[SIZE_BYTES], uint64_t processes, uint64_t bytes) {
    char count[2 * ML_UNITS_BYTES] = "";

    if (processes > 1) {
        snprintf(count, sizeof count, "%s processes, ", ml_units_count(processes).text);
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
        ml_units_size(bytes).text,
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
    ml_report_put_wrapped(page, strlen(indent) + 2, text); /* continued lines go two further in */
    putc('\n', page->out);
}

/* At most LINES_MAX lines. The last of them is for the rest. */
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

/* Forks that never called malloc. Whether they use another allocator, as browsers do, is not
 * known. */
static void put_idle(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    uint64_t processes = 0;

    for (size_t i = 0; i < profile->others_count; i++) {
        const struct ml_profile_process *other = &profile->others[i];
        processes += ml_profile_hides(other) ? 0 : ml_profile_stands_for(other);
    }
    if (processes > 0) {
        fprintf(
            page->out,
            "  %s forked process%s made no exec and no allocation that memlog sees\n",
            ml_units_count(processes).text,
            processes == 1 ? "" : "es"
        );
    }
}

/* Processes that the list may lack. */
static void put_blind(const struct ml_report_page *page) {
    enum { NS_PER_MS = 1000000 };
    const struct ml_profile *profile = page->report->profile;

    if (profile->list_missed > 0) {
        ml_report_print(
            page,
            "  " ML_WARN "at least %s process%s ended before memlog saw %s" ML_PLAIN "\n",
            ml_units_count(profile->list_missed).text,
            profile->list_missed == 1 ? "" : "es",
            profile->list_missed == 1 ? "it" : "them"
        );
    }
    if (profile->list_blind_ns > 0) {
        ml_report_print(
            page,
            "  " ML_DIM "unrecorded processes that lived less than %" PRIu64
            " ms may be missing" ML_PLAIN "\n",
            (profile->list_blind_ns + NS_PER_MS - 1) / NS_PER_MS
        );
    }
}

/* A sentence below a process's line. */
static void put_below(const struct ml_report_page *page, const char *text) {
    fprintf(page->out, "%*s", UNDER_NAME_COLUMN, "");
    ml_report_put_wrapped(page, UNDER_NAME_COLUMN, text);
    putc('\n', page->out);
}

/* What helps, found by a part of the reason that the host or client gave. */
static const char *advice_of(const struct ml_profile_process *process) {
    static const struct {
        const char *reason_has, *advice;
    } known[] = {
        {"statically linked",
         "link it dynamically: memlog comes into a program by its dynamic loader"},
        {"not glibc's", "build it for glibc: no other loader can load memlog"},
        {"32-bit", "build it for x86-64"},
        {"setuid or setgid", "start a copy without that bit as the user that it becomes"},
        {"sanitizer", "build it without the sanitizer"},
        {"left out", "leave that option away"},
        {"not taken by --memlog",
         "--memlog=all takes it from its start, memlog start PID from then on"},
        {"never recorded", "take it off that list"},
        {"ulimit", "raise that limit"},
        {"too few descriptors for one more",
         "raise the hard limit of descriptors (ulimit -Hn) before memlog starts"},
        {"memlog may not open it", "run memlog as root, which may"},
        {"another memlog", "end the other memlog first"},
        {"system call filter",
         "run it without that filter; or memlog start PID while it runs, as root"},
        {"attaches from outside",
         "memlog start PID while it runs; or show its sandbox the folders of memlog and its "
         "socket"},
        {"was passed on",
         "have who starts it keep LD_PRELOAD and MEMLOG_SOCKET; or run it by itself: memlog run -- "
         "PROGRAM"},
        {"nothing passed memlog on",
         "run it by itself: memlog run -- PROGRAM; or memlog start PID while it runs"},
        {"reason not known",
         "memlog doctor --pid=PID while it runs tells what keeps memlog out of it"},
        {"memlog cannot see", "run it by itself: memlog run -- PROGRAM"},
        {"before memlog could look", "run it by itself: memlog run -- PROGRAM"},
    };

    if (process->recording == ML_PROFILE_IDLE) {
        return "nothing: it is recorded from the first allocation on that memlog sees; what it has "
               "is what it maps, what it copied of its parent's by writing to it, and what other "
               "allocators gave it";
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strstr(process->not_recorded_reason.bytes, known[i].reason_has)) {
            return known[i].advice;
        }
    }
    return "memlog doctor PROGRAM tells what keeps memlog out of it";
}

/* Everything that is known of one process, for a report on its pid. */
static void put_known(const struct ml_report_page *page, const struct ml_profile_process *process) {
    char state[ML_UNITS_BYTES];
    char text[LINE_BYTES] = "";
    size_t used = 0;

    ml_report_state(process, state, sizeof state);
    fprintf(page->out, "%7" PRIu32 "  ", process->pid);
    ml_report_put(page, process->name.bytes);
    fprintf(page->out, "  %s\n", state);
    for (size_t i = 0; i < process->arguments_count && used < sizeof text; i++) {
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%s%s", i > 0 ? " " : "", process->arguments[i].bytes
        );
    }
    if (used > 0) {
        put_below(page, text);
    }
    if (process->coverage_was_read) {
        snprintf(
            text,
            sizeof text,
            "private memory %s when last read",
            ml_units_size(process->footprint_bytes).text
        );
    } else {
        snprintf(text, sizeof text, "private memory: nobody has read it");
    }
    put_below(page, text);
    snprintf(
        text,
        sizeof text,
        "why: %s",
        process->not_recorded_reason.bytes[0] ? process->not_recorded_reason.bytes : "not known"
    );
    put_below(page, text);
    snprintf(text, sizeof text, "what helps: %s", advice_of(process));
    put_below(page, text);
}

void ml_report_unrecorded(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;

    if (page->report->pid != 0) {
        if (profile->others_count > 0) {
            ml_report_heading(page, "Not recorded", "");
        }
        for (size_t i = 0; i < profile->others_count; i++) {
            put_known(page, &profile->others[i]);
        }
        return;
    }

    if (profile->others_count == 0 && profile->list_missed == 0 && profile->list_blind_ns == 0) {
        return;
    }
    ml_report_heading(page, "Not recorded", "");
    put_groups(page);
    put_idle(page);
    put_blind(page);
}
