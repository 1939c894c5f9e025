/* A run of memlog over itself, which shows whether this system lets it record. Room: host. Context:
 * `memlog doctor`, which has no other child.
 *
 * One rule: it leaves neither file nor process. */
#ifndef MEMLOG_HOST_PROCESS_SELF_TEST_H
#define MEMLOG_HOST_PROCESS_SELF_TEST_H

#include <stdbool.h>

enum { ML_SELF_TEST_SAID_BYTES = 512 };

struct ml_self_test {
    bool recorded;                      /* it ended well, and left its dump */
    char said[ML_SELF_TEST_SAID_BYTES]; /* the first that it said, or why it could not be tried */
};

/* Run `memlog run SANDBOX -- memlog --version` in a new folder below TMPDIR. */
void ml_self_test_run(const char *sandbox, struct ml_self_test *out_self_test);

#endif
