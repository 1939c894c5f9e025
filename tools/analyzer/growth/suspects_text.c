/* The suspects as text: the verdict first, then what it rests on. Room: tools. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/printable.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/growth/suspects.h"

enum {
    SHOWN = 5,
    BELOW_COLUMN = 5, /* of the lines below a suspect's name */
    TEXT_BYTES = 512
};

static size_t limit_of(const struct ml_report_page *page) {
    return page->report->limit > 0 ? page->report->limit : SHOWN;
}

static struct ml_units time_of(const struct ml_report_page *page, uint64_t ms) {
    return ml_report_time_of_day(ml_profile_realtime_ms(page->report->profile, ms) * 1000000);
}

static struct ml_units size_of(double bytes) {
    return ml_units_size((uint64_t)llround(fmax(bytes, 0)));
}

static void put_below(const struct ml_report_page *page, const char *text) {
    ml_report_print(page, "%*s" ML_DIM, BELOW_COLUMN, "");
    ml_report_put_wrapped(page, BELOW_COLUMN, text);
    ml_report_print(page, ML_PLAIN "\n");
}

static void put_callers(const struct ml_report_page *page, const struct ml_suspect *suspect) {
    char callers[ML_REPORT_CALLERS_BYTES];
    char text[2 * TEXT_BYTES];

    ml_report_callers_in(page, suspect->node, ML_REPORT_CALLERS_BYTES - 1, callers);
    snprintf(
        text,
        sizeof text,
        "in %.200s %" PRIu32 ": %s",
        suspect->process->name.bytes,
        suspect->process->pid,
        callers
    );
    put_below(page, text);
}

/* "none of its 40,000 blocks was freed" */
static void blocks_text(const struct ml_suspect *suspect, char out[TEXT_BYTES]) {
    const uint64_t total = suspect->total_blocks;
    const uint64_t freed = total > suspect->live_blocks ? total - suspect->live_blocks : 0;

    if (total == 0) {
        out[0] = '\0';
    } else if (freed == 0 && total == 1) {
        snprintf(out, TEXT_BYTES, "; it is one block");
    } else if (freed == 0) {
        snprintf(out, TEXT_BYTES, "; none of its %s blocks was freed", ml_units_count(total).text);
    } else {
        snprintf(
            out,
            TEXT_BYTES,
            "; of its %s blocks %s %s freed",
            ml_units_count(total).text,
            ml_units_count(freed).text,
            freed == 1 ? "was" : "were"
        );
    }
}

static void
put_suspect(const struct ml_report_page *page, size_t number, const struct ml_suspect *suspect) {
    const struct ml_growth *growth = &suspect->growth;
    char blocks[TEXT_BYTES];
    char text[3 * TEXT_BYTES];

    ml_report_print(page, "%3zu. " ML_BOLD, number);
    ml_report_put(page, suspect->name);
    ml_report_print(page, ML_PLAIN "  %s/s", size_of(growth->bytes_per_s).text);
    ml_report_print(page, ML_DIM " \u00b1 %s" ML_PLAIN "\n", size_of(growth->error_per_s).text);
    blocks_text(suspect, blocks);
    snprintf(
        text,
        sizeof text,
        "%s more since %s%s; it rose in %u of %u steps%s",
        ml_units_size(growth->grown_bytes).text,
        time_of(page, growth->since_ms).text,
        growth->kind == ML_GROWTH_FREED ? ", freed at the end" : "",
        growth->rising,
        growth->steps,
        blocks
    );
    put_below(page, text);
    put_callers(page, suspect);
}

/* "  LruCache::insert  8.0 MiB more until 10:03:12Z, hardly since" */
static void put_other(const struct ml_report_page *page, const struct ml_suspect *suspect) {
    const struct ml_growth *growth = &suspect->growth;
    char text[2 * TEXT_BYTES];

    ml_report_print(page, "  ");
    ml_report_put(page, suspect->name);
    ml_report_print(page, "  %s more\n", ml_units_size(growth->grown_bytes).text);
    switch (growth->kind) {
    case ML_GROWTH_LEVELLED:
        snprintf(
            text,
            sizeof text,
            "until %s and hardly since: so does a cache that is full",
            time_of(page, growth->until_ms).text
        );
        break;
    case ML_GROWTH_SLOWING:
        snprintf(
            text,
            sizeof text,
            "ever more slowly: so does a cache that fills; a longer recording tells more"
        );
        break;
    default:
        snprintf(
            text, sizeof text, "steadily until %s, then freed", time_of(page, growth->until_ms).text
        );
    }
    put_below(page, text);
    put_callers(page, suspect);
}

static size_t count_of(const struct ml_suspects *suspects, enum ml_growth_kind kind) {
    size_t count = 0;

    for (size_t i = 0; i < suspects->count; i++) {
        count += suspects->suspects[i].growth.kind == kind;
    }
    return count;
}

static void put_steady(const struct ml_report_page *page, const struct ml_suspects *suspects) {
    const size_t count = count_of(suspects, ML_GROWTH_STEADY);

    if (count == 0) {
        ml_report_heading(page, "No suspect", "no function that was followed grew steadily");
        return;
    }
    ml_report_heading(page, "Suspects", "grew steadily, until the end of what is known");
    for (size_t i = 0; i < count && i < limit_of(page); i++) {
        put_suspect(page, i + 1, &suspects->suspects[i]);
    }
    if (count > limit_of(page)) {
        fprintf(page->out, "  ... %zu more: --limit=%zu\n", count - limit_of(page), count);
    }
}

/* What is told of a kind that is no suspect. */
static void put_kind(
    const struct ml_report_page *page,
    const struct ml_suspects *suspects,
    enum ml_growth_kind kind,
    size_t *shown
) {
    for (size_t i = 0; i < suspects->count && *shown < limit_of(page); i++) {
        if (suspects->suspects[i].growth.kind == kind) {
            if (*shown == 0) {
                ml_report_heading(page, "Grew, and is no suspect", "");
            }
            put_other(page, &suspects->suspects[i]);
            (*shown)++;
        }
    }
}

/* Steady growth of a process, and which part of it has a suspect. */
static void put_process(
    const struct ml_report_page *page,
    const struct ml_suspects *suspects,
    const struct ml_suspect_process *process
) {
    double named = 0;
    char text[2 * TEXT_BYTES];

    for (size_t i = 0; i < suspects->count; i++) {
        const struct ml_suspect *suspect = &suspects->suspects[i];
        if (suspect->process == process->process && suspect->growth.kind == ML_GROWTH_STEADY) {
            named += suspect->growth.bytes_per_s;
        }
    }
    snprintf(
        text,
        sizeof text,
        "%.200s %" PRIu32 " as a whole: %s/s \u00b1 %s since %s; %s",
        process->process->name.bytes,
        process->process->pid,
        size_of(process->growth.bytes_per_s).text,
        size_of(process->growth.error_per_s).text,
        time_of(page, process->growth.since_ms).text,
        named == 0 ? "in stacks that hold too little to be followed, or do not grow steadily "
                     "themselves"
                   : ""
    );
    if (named > 0) {
        const size_t at = strlen(text);
        snprintf(
            text + at,
            sizeof text - at,
            "the suspects are %.0f %% of it",
            fmin(100 * named / process->growth.bytes_per_s, 100)
        );
    }
    ml_report_print(page, "  ");
    ml_report_put_wrapped(page, 2, text);
    putc('\n', page->out);
}

static void put_processes(const struct ml_report_page *page, const struct ml_suspects *suspects) {
    for (size_t i = 0; i < suspects->processes_count && i < limit_of(page); i++) {
        if (suspects->processes[i].growth.kind != ML_GROWTH_STEADY) {
            break;
        }
        if (i == 0) {
            ml_report_heading(page, "Processes", "that grew steadily");
        }
        put_process(page, suspects, &suspects->processes[i]);
    }
}

/* What the verdicts rest on. */
static void put_known(const struct ml_report_page *page, const struct ml_suspects *suspects) {
    const size_t too_short = count_of(suspects, ML_GROWTH_SHORT);
    uint64_t followed_bytes = 0;
    uint64_t live_bytes = 0;
    char share[TEXT_BYTES] = "";
    char text[3 * TEXT_BYTES];

    for (size_t i = 0; i < suspects->processes_count; i++) {
        followed_bytes += suspects->processes[i].followed_bytes;
        live_bytes += suspects->processes[i].live_bytes;
    }
    if (live_bytes > 0 && followed_bytes > 0) {
        snprintf(
            share,
            sizeof share,
            ", which hold %.0f %% of what is live",
            100 * (double)followed_bytes / (double)live_bytes
        );
    }
    snprintf(
        text,
        sizeof text,
        "Known of %s: %s function%s%s. memlog follows the 20 stacks of each process that hold "
        "most.",
        ml_units_span((suspects->to_ms - suspects->from_ms) * 1000000).text,
        ml_units_count(suspects->count).text,
        ml_report_plural(suspects->count),
        share
    );
    if (too_short > 0 || suspects->count == 0) {
        const size_t at = strlen(text);
        snprintf(
            text + at,
            sizeof text - at,
            " For %s the time is too short to tell: memlog looks each second, and 11 looks are the "
            "least.",
            suspects->count == 0           ? "any"
            : too_short == suspects->count ? "all of them"
                                           : ml_units_count(too_short).text
        );
    }
    putc('\n', page->out);
    ml_report_put_wrapped(page, 0, text);
    putc('\n', page->out);
}

void ml_suspects_text(
    const struct ml_suspects *suspects, const struct ml_report_style *style, FILE *out
) {
    const struct ml_report_page page = {.report = suspects->report, .style = style, .out = out};
    size_t shown = 0;

    ml_report_put(&page, suspects->report->profile->program.bytes);
    fprintf(
        out,
        "\n%s to %s, %s\n",
        time_of(&page, suspects->from_ms).text,
        time_of(&page, suspects->to_ms).text,
        ml_units_span((suspects->to_ms - suspects->from_ms) * 1000000).text
    );
    put_steady(&page, suspects);
    put_processes(&page, suspects);
    put_kind(&page, suspects, ML_GROWTH_FREED, &shown);
    put_kind(&page, suspects, ML_GROWTH_SLOWING, &shown);
    put_kind(&page, suspects, ML_GROWTH_LEVELLED, &shown);
    put_known(&page, suspects);
}
