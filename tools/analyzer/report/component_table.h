/* What people and programs read of components: `memlog components`, `expand` and `list`. Room:
 * tools. Context: one thread.
 *
 * One rule: what is printed adds up to the kernel's figure, and the remainder is printed, too. */
#ifndef MEMLOG_TOOLS_ANALYZER_REPORT_COMPONENT_TABLE_H
#define MEMLOG_TOOLS_ANALYZER_REPORT_COMPONENT_TABLE_H

#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/memory/table.h"
#include "tools/analyzer/report/report.h"

struct ml_component_view {
    const struct ml_component_table *table;
    const char *policy; /* as the user named it */
    enum ml_figure figure;
    size_t limit; /* components in text; the others are one line; 0: all */
};

/* One dump: its components with all figures. Several: a column of each. */
ML_NODISCARD enum ml_status ml_components_text(
    const struct ml_component_view *view, const struct ml_report_style *style, FILE *out
);
void ml_components_json(const struct ml_component_view *view, FILE *out);
void ml_components_csv(const struct ml_component_view *view, FILE *out);

/* One page with a stacked chart, which loads nothing and runs no script. */
ML_NODISCARD enum ml_status ml_components_html(const struct ml_component_view *view, FILE *out);

/* Who holds a component: its stacks from the innermost function outwards, at most `depth` frames
 * (0: all). Errors: ML_ENV_MISSING, no memory is in that component; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_component_expand(
    const struct ml_component_table *table,
    const struct ml_stacks *stacks,
    const char *component,
    size_t depth,
    const struct ml_report_style *style,
    FILE *out
);

/* Each row with its component, the largest first. */
ML_NODISCARD enum ml_status ml_component_rows(
    const struct ml_component_table *table,
    const struct ml_stacks *stacks,
    const struct ml_report_style *style,
    FILE *out
);
ML_NODISCARD enum ml_status ml_component_rows_csv(
    const struct ml_component_table *table, const struct ml_stacks *stacks, FILE *out
);

#endif
