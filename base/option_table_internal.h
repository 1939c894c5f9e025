/* What the parser and the help of options share. Room: base. Context: any; constant.
 *
 * One rule: what an error message says is accepted and what help says come from the same row. */
#ifndef MEMLOG_BASE_OPTION_TABLE_INTERNAL_H
#define MEMLOG_BASE_OPTION_TABLE_INTERNAL_H

#include "base/option_table.h"

/* --help itself, which every command has. */
extern const struct ml_option ml_option_help;

/* Whether anything stands behind its name. */
bool ml_option_has_value(const struct ml_option *option);

/* Whether it is on or off, so that it has a negative form, too. */
bool ml_option_is_flag(const struct ml_option *option);

enum { ML_OPTION_NEGATIVE_BYTES = 64 };

/* A flag's negative form: "--no-full" of --full, "--stacks" of --no-stacks. Returns `out`. */
const char *ml_option_negative(const struct ml_option *option, char out[ML_OPTION_NEGATIVE_BYTES]);

/* Room for the longest list of words there is. */
enum { ML_OPTION_WANTS_BYTES = 400 };

/* What an option accepts: "a whole number from 1 on", "block or sample". Returns `out`, or a
 * constant. */
const char *ml_option_wants(const struct ml_option *option, char out[ML_OPTION_WANTS_BYTES]);

#endif
