/* A holder as text. Room: tools. */
#include <inttypes.h>
#include <string.h>

#include "base/printable.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/names/function_name.h"
#include "tools/analyzer/screen/holders.h"

enum {
    FIGURES_COLUMNS = 24, /* "   99.8 %    44.4 MiB   " */
    DETAILS_COLUMN = 11,
    LINE_BYTES = 1024
};

/* A line that is written from left to right. A part that finds no room is left out whole. */
struct line {
    char text[LINE_BYTES];
    size_t columns; /* there are in all */
};

static size_t left_in(const struct line *line) {
    const size_t used = ml_printable_columns(line->text);

    return used < line->columns ? line->columns - used : 0;
}

static bool add(struct line *line, const char *part) {
    const size_t at = strlen(line->text);

    if (ml_printable_columns(part) > left_in(line) || at + strlen(part) >= LINE_BYTES) {
        return false;
    }
    snprintf(line->text + at, LINE_BYTES - at, "%s", part);
    return true;
}

/* The line is empty then. */
static void put_detail(const struct ml_report_page *page, struct line *line) {
    if (line->text[0]) {
        ml_report_print(page, "%*s" ML_DIM, DETAILS_COLUMN, "");
        ml_report_put(page, line->text);
        ml_report_print(page, ML_PLAIN "\n");
    }
    line->text[0] = '\0';
}

/* "server.cpp:22 40.2 MiB, :21 1.9 MiB": the file once. */
static void add_places(struct line *line, const struct ml_screen_holder *holder) {
    const char *file = "";
    size_t shown = 0;

    for (size_t i = 0; i < holder->places_count && i < ML_HOLDER_PLACES; i++) {
        const struct ml_holder_place *place = &holder->places[i];
        const bool is_same = strcmp(file, place->file) == 0;
        char part[LINE_BYTES];

        if (!place->file[0]) {
            break; /* without source lines there is nothing to tell apart */
        }
        snprintf(
            part,
            sizeof part,
            "%s%s:%" PRIu32 " %s",
            shown > 0 ? ", " : "",
            is_same ? "" : place->file,
            place->line,
            ml_units_size(place->bytes).text
        );
        if (!add(line, part)) {
            break;
        }
        file = place->file;
        shown++;
    }
    if (shown > 0 && shown < holder->places_count) {
        char rest[LINE_BYTES];
        snprintf(rest, sizeof rest, ", %zu more", holder->places_count - shown);
        (void)add(line, rest);
    }
}

/* " < handle server.cpp:33 < main": the callers of the stack. */
static void
add_callers(struct line *line, const struct ml_report_page *page, uint32_t node, const char *sign) {
    struct ml_told told;

    ml_report_tell(page, node, &told);
    for (size_t i = told.asker + 1; i < told.count; i++) {
        const struct ml_told_frame *frame = &told.frames[i];
        char part[LINE_BYTES];
        const size_t at = (size_t)snprintf(part, sizeof part, "%s%s", sign, frame->name);

        if (frame->file[0]) {
            snprintf(part + at, sizeof part - at, " %s:%" PRIu32, frame->file, frame->line);
        }
        if (!add(line, part)) {
            part[at] = '\0'; /* without the place it may fit */
            if (!add(line, part)) {
                return;
            }
        }
        sign = " < ";
    }
    if (told.asker > 0) { /* what the script had an interpreter do */
        char part[LINE_BYTES];
        snprintf(part, sizeof part, "%sby %s", line->text[0] ? "  " : "", told.frames[0].name);
        (void)add(line, part);
    }
}

/* "in python3 7655 (83 %) and 2 other processes"; "": not known. */
static const char *process_words(const struct ml_screen_holder *holder, char out[LINE_BYTES]) {
    const struct ml_profile_process *process = holder->process;
    const size_t others = holder->processes_count > 0 ? holder->processes_count - 1 : 0;
    char name[ML_TOLD_NAME_BYTES];
    size_t at = 0;

    out[0] = '\0';
    if (!process || holder->bytes == 0) {
        return out;
    }
    ml_function_name_fit(process->name.bytes, 24, name, sizeof name);
    at = (size_t)snprintf(out, LINE_BYTES, "in %s %" PRIu32, name, process->pid);
    if (others > 0) {
        snprintf(
            out + at,
            LINE_BYTES - at,
            " (%.0f %%) and %zu other process%s",
            100.0 * (double)holder->process_bytes / (double)holder->bytes,
            others,
            others == 1 ? "" : "es"
        );
    }
    return out;
}

/* How many of the ways are worth a line. */
static size_t ways_of(const struct ml_screen_holder *holder) {
    enum { WORTH_A_LINE_PERCENT = 5 };
    size_t count = 1;

    while (count < ML_HOLDER_WAYS && count < holder->ways_count &&
           holder->ways[count].bytes >= holder->bytes / 100 * WORTH_A_LINE_PERCENT) {
        count++;
    }
    return count;
}

static void put_way(
    const struct ml_report_page *page,
    const struct ml_screen_holder *holder,
    size_t number,
    struct line *line
) {
    enum { PERCENT_OF_ALL = 99 };
    const struct ml_holder_way *way = &holder->ways[number];
    char share[LINE_BYTES];

    if (way->bytes < holder->bytes / 100 * PERCENT_OF_ALL) {
        snprintf(
            share,
            sizeof share,
            "%s%.0f %%",
            line->text[0] ? "  " : "",
            100.0 * (double)way->bytes / (double)holder->bytes
        );
        (void)add(line, share);
    }
    add_callers(line, page, way->node, line->text[0] ? " < " : "< ");
}

/* Places, callers, and where the first line has no room for it the process. */
static void put_details(
    const struct ml_report_page *page, const struct ml_screen_holder *holder, const char *process
) {
    struct line line = {.columns = page->style->width - DETAILS_COLUMN};
    const size_t ways = ways_of(holder);

    if (holder->places_count > 1) {
        add_places(&line, holder);
    } else if (holder->places[0].file[0]) {
        snprintf(
            line.text,
            sizeof line.text,
            "%s:%" PRIu32,
            holder->places[0].file,
            holder->places[0].line
        );
    }
    if (holder->places_count > 1 || ways > 1) {
        put_detail(page, &line);
    }
    for (size_t i = 0; i < ways; i++) {
        put_way(page, holder, i, &line);
        put_detail(page, &line);
    }
    (void)add(&line, process);
    put_detail(page, &line);
}

/* The function, its blocks, and its process. False: there was no room for the process. */
static bool put_function(
    const struct ml_report_page *page, const struct ml_screen_holder *holder, const char *process
) {
    struct line line = {.columns = page->style->width - FIGURES_COLUMNS};
    char part[LINE_BYTES];
    bool has_process = false;

    ml_function_name_fit(holder->name, line.columns, line.text, sizeof line.text);
    ml_report_print(page, ML_BOLD);
    ml_report_put(page, line.text);
    ml_report_print(page, ML_PLAIN ML_DIM);
    snprintf(
        part,
        sizeof part,
        "   %s block%s",
        ml_units_count(holder->blocks).text,
        ml_report_plural(holder->blocks)
    );
    if (add(&line, part)) {
        fputs(part, page->out);
    }
    snprintf(part, sizeof part, " at %zu places", holder->places_count);
    if (holder->places_count > 1 && add(&line, part)) {
        fputs(part, page->out);
    }
    if (process[0]) {
        snprintf(part, sizeof part, "   %s", process);
        has_process = add(&line, part);
        if (has_process) {
            ml_report_put(page, part);
        }
    }
    ml_report_print(page, ML_PLAIN "\n");
    return has_process;
}

void ml_holders_put(
    const struct ml_report_page *page,
    const struct ml_screen_holder *holder,
    uint64_t whole_bytes,
    bool has_details
) {
    char text[LINE_BYTES];

    ml_report_print(
        page,
        "  %5.1f %%  " ML_BOLD "%10s" ML_PLAIN "   ",
        whole_bytes > 0 ? 100.0 * (double)holder->bytes / (double)whole_bytes : 0.0,
        ml_units_size(holder->bytes).text
    );
    if (has_details) {
        const char *process = process_words(holder, text);
        const bool is_told = put_function(page, holder, process);
        put_details(page, holder, is_told ? "" : process);
    } else {
        ml_report_callers(page, holder->node, text);
        ml_report_put(page, text);
        putc('\n', page->out);
    }
}
