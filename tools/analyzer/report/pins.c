/* Who pins pages: what live blocks hold of resident pages, and what they leave of them unused. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/report/internal.h"

enum {
    WORTH_A_PART_PERCENT = 10,
    STACKS_SHOWN = 5, /* by default */
    REST_BYTES = 256,
    FIGURES_COLUMNS = 47 /* of a row, in front of its callers */
};

/* Less waste needs no explanation. */
#define WORTH_A_PART_BYTES ((uint64_t)1 << 20)

static void put_or_null(struct ml_json *json, const char *name, bool is_known, uint64_t bytes) {
    if (is_known) {
        ml_json_number_member(json, name, bytes);
    } else {
        ml_json_key(json, name);
        ml_json_null(json);
    }
}

void ml_report_json_pages(
    struct ml_json *json,
    const struct ml_profile *profile,
    const struct ml_profile_process *process,
    const struct ml_profile_totals *totals
) {
    const bool knows_pages = process ? process->cells_were_laid : ml_profile_knows_pages(profile);
    const bool knows_waste =
        process ? ml_profile_process_knows_waste(process) : ml_profile_knows_waste(profile);

    if (knows_pages) {
        ml_json_number_member(json, "resident_bytes", totals->pages.resident_bytes);
        put_or_null(json, "pinned_bytes", knows_waste, totals->pages.alone_bytes);
        put_or_null(json, "waste_bytes", knows_waste, totals->pages.waste_bytes);
    }
}

void ml_report_json_heap_pages(
    struct ml_json *json,
    const struct ml_profile *profile,
    const struct ml_profile_process *process,
    const struct ml_profile_totals *totals
) {
    if (process ? process->cells_were_laid : ml_profile_knows_pages(profile)) {
        ml_json_open_member(json, "heap_pages", '{');
        ml_report_json_pages(json, profile, process, totals);
        ml_json_close(json, '}');
    } else {
        ml_json_key(json, "heap_pages");
        ml_json_null(json);
    }
}

static bool matters(const struct ml_profile_pages *pages) {
    const uint64_t all = pages->resident_bytes + pages->waste_bytes;

    return pages->waste_bytes >= WORTH_A_PART_BYTES &&
           pages->waste_bytes >= all / 100 * WORTH_A_PART_PERCENT;
}

/* Whose pages are not known, and of which moment the others are. */
static void put_reach(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    uint64_t unknown = 0;
    uint64_t forked = 0;
    bool anybody_ended = false;

    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        if (ml_profile_is_shown(profile, process)) {
            const bool is_known = ml_profile_process_knows_waste(process);
            unknown += process->cells_were_laid ? 0 : ml_profile_stands_for(process);
            forked += process->cells_were_laid && !is_known ? 1 : 0;
            anybody_ended = anybody_ended || (is_known && process->left_tree);
        }
    }
    if (anybody_ended) {
        fputs("  of ended processes: when their private memory was largest\n", page->out);
    }
    if (unknown > 0) {
        fprintf(
            page->out,
            "  not known of %s process%s\n",
            ml_units_count(unknown).text,
            unknown == 1 ? "" : "es"
        );
    }
    if (forked > 0) {
        fprintf(
            page->out,
            "  not known of %s forked process%s: blocks of the parent lie there, too\n",
            ml_units_count(forked).text,
            forked == 1 ? "" : "es"
        );
    }
}

static void put_row(const struct ml_report_page *page, const struct ml_stack *stack) {
    const struct ml_profile_pages *pages = &stack->own.pages;
    char callers[ML_REPORT_CALLERS_BYTES];

    fprintf(page->out, "%11s", ml_units_size(stack->own.live_bytes).text);
    fprintf(page->out, "%11s", ml_units_size(pages->resident_bytes).text);
    fprintf(page->out, "%11s", ml_units_size(pages->alone_bytes).text);
    ml_report_print(page, ML_BOLD "%11s" ML_PLAIN "   ", ml_units_size(pages->waste_bytes).text);
    ml_report_callers_in(page, stack->node, page->style->width - FIGURES_COLUMNS, callers);
    ml_report_put(page, callers);
    putc('\n', page->out);
}

void ml_report_pins(const struct ml_report_page *page) {
    const struct ml_profile_pages *all = &page->report->profile->tree.pages;
    const size_t wanted = page->report->limit > 0 ? page->report->limit : STACKS_SHOWN;
    char rest[REST_BYTES];
    size_t count = 0;

    if (!matters(all)) {
        return;
    }
    snprintf(
        rest,
        sizeof rest,
        "blocks use %s of their pages' %s",
        ml_units_size(all->resident_bytes).text,
        ml_units_size(all->resident_bytes + all->waste_bytes).text
    );
    ml_report_heading(page, "Who pins pages", rest);
    put_reach(page);
    struct ml_stack *stacks = ml_report_sorted(page, ML_METRIC_WASTE, ML_ORDER_SELF, &count);
    ml_report_print(
        page, ML_DIM "%11s%11s%11s%11s" ML_PLAIN "\n", "requested", "resident", "alone", "waste"
    );
    for (size_t i = 0; stacks && i < count && i < wanted; i++) {
        if (stacks[i].own.pages.waste_bytes >= all->waste_bytes / 100) {
            put_row(page, &stacks[i]);
        }
    }
    free(stacks);
}
