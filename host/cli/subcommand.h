/* The sub-commands of `memlog` and their help. Room: host. Context: any; constant.
 *
 * One rule: every sub-command is a row of the one table in subcommand.c. Lookup, suggestions and
 * help all come from it. */
#ifndef MEMLOG_HOST_CLI_SUBCOMMAND_H
#define MEMLOG_HOST_CLI_SUBCOMMAND_H

#include <stdio.h>

#include "base/option_table.h"

/* What carries a sub-command out. */
enum ml_subcommand_kind {
    ML_SUBCOMMAND_RUN,
    ML_SUBCOMMAND_ATTACH,
    ML_SUBCOMMAND_HOST,     /* speaks to a running host over its command socket */
    ML_SUBCOMMAND_ANALYZER, /* memlog-analyzer, found beside memlog */
    ML_SUBCOMMAND_COLLECT,  /* memlog-collect, found there, too */
    ML_SUBCOMMAND_FLEET,    /* memlog-fleet, likewise */
    ML_SUBCOMMAND_HELP,
    ML_SUBCOMMAND_VERSION
};

struct ml_subcommand {
    enum ml_subcommand_kind kind;
    const struct ml_option_table *options; /* NULL: the analyzer has the table, or there is none */
    const char *name, *summary;     /* set where `options` is NULL; the summary is one line */
    int (*run)(char *const *words); /* of ML_SUBCOMMAND_HOST; returns the exit code */
};

/* NULL: there is none of that name. */
const struct ml_subcommand *ml_subcommand_find(const char *name);

/* The most similar name; NULL if none is similar. */
const char *ml_subcommand_suggest(const char *name);

/* Print all sub-commands with their summaries. */
void ml_subcommand_overview(FILE *out);

/* Print the option tables that the host has, one line of JSON each (base/option_table.h). */
void ml_subcommand_dump(FILE *out);

#endif
