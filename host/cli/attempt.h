/* Try whether a program can be profiled. Room: host. Context: a process of its own that may wait
 * (`memlog doctor`), with no other children.
 *
 * One rule: the program's own code does not run. The program is traced from its exec on. Before its
 * first instruction run its loader, memlog's constructor and those of its libraries. It is killed
 * when memlog has sent its first message, and at its first instruction at the latest. Its input and
 * output are /dev/null. */
#ifndef MEMLOG_HOST_CLI_ATTEMPT_H
#define MEMLOG_HOST_CLI_ATTEMPT_H

enum ml_attempt {
    ML_ATTEMPT_UNKNOWN = 0, /* the program could not be tried */
    ML_ATTEMPT_REACHED,     /* the client sent its hello */
    ML_ATTEMPT_REFUSED,     /* the client sent the reason why it does not record */
    ML_ATTEMPT_NOT_LOADED,  /* the program reached its first instruction without memlog */
    ML_ATTEMPT_ENDED        /* the program ended before its first instruction */
};

/* Try a program. `argv` is as for execvp; `library_path` names libmemlog.so. *out_reason is the
 * reason of ML_ATTEMPT_REFUSED, else "". Waits ten seconds at most. */
enum ml_attempt
ml_attempt_program(char *const *argv, const char *library_path, const char **out_reason);

#endif
