/* Try whether a program comes under memlog. Room: host. Context: a process of its own that may wait
 * (`memlog doctor`), with no other children.
 *
 * One rule: the program's own code does not run. It is traced from its exec on; what is in front of
 * its first instruction are its loader, memlog's constructor and those of its libraries. It is
 * killed as soon as memlog has spoken, and at its first instruction at the latest. Its input and
 * output are /dev/null. */
#ifndef MEMLOG_HOST_CLI_ATTEMPT_H
#define MEMLOG_HOST_CLI_ATTEMPT_H

enum ml_attempt {
    ML_ATTEMPT_UNKNOWN = 0, /* it could not be tried */
    ML_ATTEMPT_REACHED,     /* it said hello */
    ML_ATTEMPT_REFUSED,     /* it said why not */
    ML_ATTEMPT_NOT_LOADED,  /* it came to its first instruction without memlog */
    ML_ATTEMPT_ENDED        /* it ended before that */
};

/* argv as for execvp; library_path is libmemlog.so's. *out_reason: of ML_ATTEMPT_REFUSED, else "".
 * Waits ten seconds at most. */
enum ml_attempt
ml_attempt_program(char *const *argv, const char *library_path, const char **out_reason);

#endif
