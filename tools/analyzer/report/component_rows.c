/* The rows of a dump with their components, as text and as comma-separated values. Room: tools. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "tools/analyzer/report/component_table.h"
#include "tools/analyzer/report/internal.h"

/* A row and the component that its policy gives it. */
struct sorted {
    const struct ml_row *row;
    uint32_t component;
};

struct listing {
    struct ml_rows rows;
    struct sorted *sorted; /* the largest first */
    size_t unread;
};

static int sorted_order(const void *left, const void *right) {
    const struct sorted *a = left, *b = right;
    const uint64_t bytes_a = a->row->figures.proportional + a->row->figures.swapped;
    const uint64_t bytes_b = b->row->figures.proportional + b->row->figures.swapped;

    if (bytes_a != bytes_b) {
        return bytes_a < bytes_b ? 1 : -1;
    }
    return (a->row > b->row) - (a->row < b->row);
}

static void listing_fini(struct listing *listing) {
    free(listing->sorted);
    ml_rows_fini(&listing->rows);
}

/* False: no memory; _fini is needed even then. */
static bool listing_init(
    struct listing *listing, const struct ml_component_table *table, const struct ml_stacks *stacks
) {
    *listing = (struct listing){.unread = 0};
    if (!ml_rows_of_dump(&listing->rows, stacks, &listing->unread)) {
        return false;
    }
    listing->sorted = calloc(listing->rows.count + 1, sizeof *listing->sorted);
    for (size_t i = 0; listing->sorted && i < listing->rows.count; i++) {
        const struct ml_row *row = &listing->rows.items[i];
        const uint32_t component = ml_policy_component(table->policy, stacks, row, table->text);
        if (component == ML_STRING_NONE) {
            return false;
        }
        listing->sorted[i] = (struct sorted){.row = row, .component = component};
    }
    if (listing->sorted) {
        ML_SORT(listing->sorted, listing->rows.count, sorted_order);
    }
    return listing->sorted != NULL;
}

static const char *component_name(const struct ml_component_table *table, uint32_t component) {
    return table->policy->components.strings[component].bytes;
}

/* What a row is of: the mapping's path or name. */
static void put_mapping(const struct ml_report_page *page, const struct ml_row *row) {
    char name[ML_REPORT_NAME_BYTES];

    if (row->path.count_bytes > 0) {
        ml_report_print(page, "  ");
        ml_report_put(page, row->path.bytes);
    } else if (row->name.count_bytes > 0) {
        snprintf(name, sizeof name, "  [%.*s]", (int)row->name.count_bytes, row->name.bytes);
        ml_report_put(page, name);
    }
}

static void put_row(
    const struct ml_report_page *page,
    const struct ml_component_table *table,
    const struct ml_stacks *stacks,
    const struct sorted *sorted
) {
    const struct ml_row *row = sorted->row;
    char permissions[ML_ROW_PERMISSIONS_BYTES];
    char callers[ML_REPORT_CALLERS_BYTES];

    ml_report_print(
        page,
        "%12s  %7" PRIu32 "  %-8s %s %-7s  ",
        ml_units_size(row->figures.proportional + row->figures.swapped).text,
        row->process->pid,
        ml_row_allocator_name(row->allocator),
        ml_row_permissions(row->permissions, permissions),
        ml_row_sharing_name(row->sharing)
    );
    ml_report_put(page, component_name(table, sorted->component));
    put_mapping(page, row);
    if (row->type.count_bytes > 0) {
        ml_report_print(page, "  ");
        ml_report_put(page, row->type.bytes);
    }
    if (row->node != ML_STACKS_NONE) {
        const struct ml_report report = {.profile = stacks->profile, .stacks = stacks};
        const struct ml_report_page stack_page = {
            .report = &report, .style = page->style, .out = page->out};
        ml_report_callers(&stack_page, row->node, callers);
        ml_report_print(page, "  ");
        ml_report_put(page, callers);
    }
    ml_report_print(page, "\n");
}

enum ml_status ml_component_rows(
    const struct ml_component_table *table,
    const struct ml_stacks *stacks,
    const struct ml_report_style *style,
    FILE *out
) {
    const struct ml_report_page page = {.style = style, .out = out};
    struct listing listing;
    const bool done = listing_init(&listing, table, stacks);

    if (done) {
        ml_report_print(
            &page,
            ML_DIM "%12s  %7s  %-8s %s %-7s  component, mapping, type, stack" ML_PLAIN "\n",
            "bytes",
            "process",
            "by",
            "may ",
            "with"
        );
    }
    for (size_t i = 0; done && i < listing.rows.count; i++) {
        put_row(&page, table, stacks, &listing.sorted[i]);
    }
    listing_fini(&listing);
    return done ? ML_OK : ML_ENV_MEMORY;
}

static void csv_row(
    const struct ml_component_table *table,
    const struct ml_stacks *stacks,
    const struct sorted *sorted,
    FILE *out
) {
    const struct ml_row *row = sorted->row;
    const struct ml_component_figures *figures = &row->figures;
    char permissions[ML_ROW_PERMISSIONS_BYTES];
    char name[ML_REPORT_NAME_BYTES];

    fprintf(out, "%" PRIu32 ",", row->process->pid);
    ml_csv_text(out, component_name(table, sorted->component));
    fprintf(out, ",%s,%s,", ml_row_allocator_name(row->allocator), ml_component_name(row->kind));
    ml_csv_text(out, ml_row_permissions(row->permissions, permissions)); /* ---p is a formula */
    fprintf(out, ",%s,", ml_row_sharing_name(row->sharing));
    ml_csv_text(out, row->path.bytes);
    snprintf(name, sizeof name, "%.*s", (int)row->name.count_bytes, row->name.bytes);
    (void)putc(',', out);
    ml_csv_text(out, name);
    fprintf(
        out,
        ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
        figures->private,
        figures->shared,
        figures->proportional,
        figures->swapped
    );
    ml_row_text_make(table->text, stacks, row->node);
    ml_csv_text(out, table->text->functions);
    (void)putc(',', out);
    ml_csv_text(out, row->type.bytes);
    (void)putc('\n', out);
}

enum ml_status ml_component_rows_csv(
    const struct ml_component_table *table, const struct ml_stacks *stacks, FILE *out
) {
    struct listing listing;
    const bool done = listing_init(&listing, table, stacks);

    fputs(
        "pid,component,allocator,kind,permissions,shared_with,path,name,private_bytes,shared_bytes,"
        "proportional_bytes,swapped_bytes,stack,type\n",
        out
    );
    for (size_t i = 0; done && i < listing.rows.count; i++) {
        csv_row(table, stacks, &listing.sorted[i], out);
    }
    listing_fini(&listing);
    return done ? ML_OK : ML_ENV_MEMORY;
}
