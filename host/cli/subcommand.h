/* The sub-commands of `memlog` and their help. Room: host. Context: any; constant.
 *
 * One rule: every sub-command of the outside stands in this table; one that this version does not
 * have says so instead of being unknown. */
#ifndef MEMLOG_HOST_CLI_SUBCOMMAND_H
#define MEMLOG_HOST_CLI_SUBCOMMAND_H

#include <stdio.h>

#include "base/option_table.h"

/* Who carries it out. */
enum ml_subcommand_kind {
    ML_SUBCOMMAND_RUN,
    ML_SUBCOMMAND_HOST,     /* speaks to a running host over its command socket */
    ML_SUBCOMMAND_ANALYZER, /* memlog-analyzer, found beside memlog */
    ML_SUBCOMMAND_HELP,
    ML_SUBCOMMAND_VERSION
};

struct ml_subcommand {
    enum ml_subcommand_kind kind;
    const struct ml_option_table *options; /* NULL: the analyzer has its own, or there are none */
    const char *name, *summary;            /* of one without a table; the summary is one line */
    int (*run)(char *const *words);        /* of ML_SUBCOMMAND_HOST: its words; the exit code */
};

/* NULL: there is none of that name. */
const struct ml_subcommand *ml_subcommand_find(const char *name);

/* The nearest name, NULL if none is near. */
const char *ml_subcommand_suggest(const char *name);

/* The list of all, with their summaries. */
void ml_subcommand_overview(FILE *out);

/* The options of each that the host has, a line of JSON each (base/option_table.h). */
void ml_subcommand_dump(FILE *out);

#endif
