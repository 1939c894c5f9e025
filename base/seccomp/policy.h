/* A seccomp filter from a table of permitted syscalls. Room: base (:seccomp). Context: once, before
 * the first foreign byte is read.
 *
 * One rule: permissions are data. generate.py makes the table from policy files, where each line
 * has its reason. The loader's caller chooses the action for listed calls and for all others. */
#ifndef MEMLOG_BASE_SECCOMP_POLICY_H
#define MEMLOG_BASE_SECCOMP_POLICY_H

#include <stddef.h>
#include <stdint.h>

/* A value that is known only at run time: the pid of the loading process. */
#define ML_SECCOMP_SELF UINT64_C(0xffffffff00000001)

enum {
    ML_SECCOMP_CONDITIONS_MAX = 2, /* as the longest line has */
    /* Lines of a further file are numbered from here on, and so on; as generate.py does. */
    ML_SECCOMP_FILE_LINES = 10000
};

/* (argument & mask) == value */
struct ml_seccomp_condition {
    uint32_t argument; /* 0 .. 5 */
    uint64_t mask;
    uint64_t value;
};

/* Permitted when all conditions hold; lines of one call are alternatives. */
struct ml_seccomp_line {
    const char *name;
    int number;    /* negative: this architecture does not have the call */
    uint32_t line; /* in the policy's file, plus ML_SECCOMP_FILE_LINES for each file before it */
    uint32_t conditions_count;
    struct ml_seccomp_condition conditions[ML_SECCOMP_CONDITIONS_MAX];
    const char *exercise; /* of a test that fails without this line */
};

struct ml_seccomp_policy {
    const struct ml_seccomp_line *lines;
    size_t lines_count;
};

struct ml_seccomp_choice {
    uint32_t refused; /* action for a call that no line permits: SCMP_ACT_... */
    /* Action for a call that the line permits: SCMP_ACT_...; `refused`: the line is left out.
     */
    uint32_t (*action)(const void *context, const struct ml_seccomp_line *line);
    const void *context;
};

/* Load it for all threads, or for none. Calls of other architectures (32-bit, x32) end the process.
 * 0, or a negative errno. */
int ml_seccomp_load(const struct ml_seccomp_policy *policy, const struct ml_seccomp_choice *choice);

#endif
