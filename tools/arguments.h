/* A sub-command's words: options and files. Room: tools. Context: one thread.
 *
 * One rule: nothing is guessed. An unknown option, a missing or surplus value is an error that
 * names it, and the nearest valid one. */
#ifndef MEMLOG_TOOLS_ARGUMENTS_H
#define MEMLOG_TOOLS_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

/* One option of a sub-command. */
struct ml_option {
    const char *name;       /* "--limit" */
    const char *short_name; /* "-o"; NULL: none */
    const char **out_value; /* takes a value, put here; NULL: takes none */
    bool *out_given;        /* set when it stood there; NULL: nobody asks */
};

/* Read argv[0 .. argc) into the options; what is no option goes to out_files (at most
 * files_max; *out_files_count says how many). "--name=value", "--name value", "-o value", "--".
 * NULL when all is well, else the complaint, in out_complaint. */
enum { ML_COMPLAINT_BYTES = 256 };
const char *ml_arguments_read(
    int argc,
    char **argv,
    const struct ml_option *options,
    size_t options_count,
    const char **out_files,
    size_t files_max,
    size_t *out_files_count,
    char out_complaint[ML_COMPLAINT_BYTES]
);

#endif
