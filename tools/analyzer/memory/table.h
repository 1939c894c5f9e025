/* The components of dumps side by side: one line for each process, and one for all. Room: tools.
 * Context: one thread.
 *
 * One rule: the components of a line and its remainder add up to the kernel's figure. Each page
 * counts once in the line of all: its proportional bytes are the sum of the members'. */
#ifndef MEMLOG_TOOLS_ANALYZER_MEMORY_TABLE_H
#define MEMLOG_TOOLS_ANALYZER_MEMORY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/memory/policy.h"
#include "tools/analyzer/memory/rows.h"

/* Which figure of the kernel's a table shows. */
enum ml_figure { ML_FIGURE_PROPORTIONAL, ML_FIGURE_RESIDENT, ML_FIGURE_PRIVATE, ML_FIGURE_SWAPPED };

struct ml_component_line {
    size_t dump;  /* index into dumps */
    uint32_t pid; /* 0: all processes together */
    char *name;
    struct ml_component_figures *values; /* by component; later ones are 0 */
    size_t values_count;
    struct ml_component_figures all; /* the kernel's */
    int64_t moved;
    uint64_t page_tables, kernel_stacks; /* the kernel's own for it, beside all */
};

struct ml_component_dump {
    char *path;
    uint64_t time_ns;             /* time of day of what is told */
    size_t unread;                /* processes whose mappings are not in it */
    size_t heapless;              /* processes of which it is not known what part is heap */
    size_t sampled;               /* of them: because they are sampled */
    uint64_t unread_bytes;        /* what is known to be resident of them */
    bool is_ended;                /* nobody runs: each process is as it was when it was largest */
    bool is_tree_peak;            /* all is as it was when all together had most private memory */
    uint64_t absent, dropped;     /* at the peak: processes that are not in it; and for want of
                                     room */
    uint64_t held_by_others;      /* ml_sharing_held_by_others() */
    size_t first_line, end_lines; /* the line of all comes first */
};

struct ml_component_table {
    struct ml_policy *policy;
    struct ml_row_text *text;
    struct ml_component_line *lines;
    size_t lines_count, lines_capacity;
    struct ml_component_dump *dumps;
    size_t dumps_count, dumps_capacity;
};

/* The policy is borrowed, and gets the components that rows bring. False: no memory; _fini is
 * needed even then. */
bool ml_component_table_init(struct ml_component_table *table, struct ml_policy *policy);
void ml_component_table_fini(struct ml_component_table *table);

/* Add a dump: those of its processes that count as live in it. False: no memory. */
bool ml_component_table_add(
    struct ml_component_table *table, const struct ml_stacks *stacks, const char *path
);

uint64_t ml_figure_of(const struct ml_component_figures *figures, enum ml_figure figure);

/* The line's bytes of a component, and what no component has of the kernel's figure. */
uint64_t
ml_component_value(const struct ml_component_line *line, size_t component, enum ml_figure figure);
int64_t ml_component_remainder(const struct ml_component_line *line, enum ml_figure figure);

/* The rows of all processes that count as live. *out_unread: how many have none. False: no memory;
 * ml_rows_fini() is needed even then. */
bool ml_rows_of_dump(struct ml_rows *rows, const struct ml_stacks *stacks, size_t *out_unread);

/* Numbers of the components with bytes in any line, the largest first. NULL: no memory. Owner:
 * free. */
size_t *ml_component_order(
    const struct ml_component_table *table, enum ml_figure figure, size_t *out_count
);

#endif
