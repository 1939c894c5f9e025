/* The syscalls that the analyzer may make behind its walls. Room: tools (private; :walls). Context:
 * constant data.
 *
 * One rule: the table is generated from tools/policy, where each line has its reason. */
#ifndef MEMLOG_TOOLS_CONFINE_POLICY_H
#define MEMLOG_TOOLS_CONFINE_POLICY_H

#include <stddef.h>
#include <stdint.h>

#define ML_CONFINE_SELF UINT64_C(0xffffffff00000001) /* a value of run time: the analyzer's pid */
#define ML_CONFINE_WRITING (O_ACCMODE | O_CREAT | O_TRUNC) /* of open's flags */

enum {
    ML_CONFINE_CONDITIONS_MAX = 2,
    /* Lines are numbered from here on in the second file, and so on; as generate.py does. */
    ML_CONFINE_FILE_LINES = 10000
};

/* The files, in the order in which tools/BUILD.gn names them. */
enum ml_confine_file { ML_CONFINE_ALWAYS, ML_CONFINE_READING, ML_CONFINE_TO_WRITE };

/* (argument & mask) == value */
struct ml_confine_condition {
    uint32_t argument; /* 0 .. 5 */
    uint64_t mask;
    uint64_t value;
};

/* Permitted when all conditions hold; lines of one call are alternatives. */
struct ml_confine_line {
    const char *name;
    int number;    /* negative: this architecture does not have the call */
    uint32_t line; /* in the policy's file, plus ML_CONFINE_FILE_LINES for each file before it */
    uint32_t conditions_count;
    struct ml_confine_condition conditions[ML_CONFINE_CONDITIONS_MAX];
    const char *exercise; /* which uses it: tests/tools/confine_policy_test.py */
};

extern const struct ml_confine_line ml_confine_lines[];
extern const size_t ml_confine_lines_count;

#endif
