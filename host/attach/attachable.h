/* What stands in the way of attaching to a process that runs, by /proc alone. Room: host. Context:
 * any; reads only.
 *
 * One rule: it only refuses. The kernel decides when the process is traced, and the process may
 * have changed by then. What cannot be read is no reason. */
#ifndef MEMLOG_HOST_PROCESS_ATTACHABLE_H
#define MEMLOG_HOST_PROCESS_ATTACHABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum ml_attachable {
    ML_ATTACHABLE = 0,
    ML_ATTACHABLE_GONE,     /* there is no such process */
    ML_ATTACHABLE_ZOMBIE,   /* it has ended, and its parent has not taken note */
    ML_ATTACHABLE_HEADLESS, /* its first thread has ended, others run on */
    ML_ATTACHABLE_KERNEL,   /* a thread of the kernel */
    ML_ATTACHABLE_THREAD,   /* the number is a thread's, not a process's */
    ML_ATTACHABLE_OTHER_USER,
    ML_ATTACHABLE_NOT_DUMPABLE,
    ML_ATTACHABLE_TRACED,  /* by another program */
    ML_ATTACHABLE_YAMA,    /* the system forbids it */
    ML_ATTACHABLE_SECCOMP, /* a filter watches its system calls; root alone can read what it says */
    ML_ATTACHABLE_COUNT
};

/* What /proc says. */
struct ml_attachable_facts {
    char state;     /* as /proc/PID/stat has it; 0: there is no such process */
    bool has_ended; /* all of its threads have */
    bool is_kernel;
    pid_t process;         /* the process whose thread it is; its own pid where it is no thread */
    uid_t uids[3];         /* real, effective, saved */
    bool is_dumpable;      /* its files in /proc belong to it */
    pid_t tracer;          /* 0: nobody traces it */
    unsigned seccomp;      /* 0: it is under none */
    unsigned yama;         /* kernel.yama.ptrace_scope; 0: none, or no Yama */
    uid_t own_uid;         /* ours */
    bool may_trace_all;    /* we have CAP_SYS_PTRACE */
    bool may_read_filters; /* we have CAP_SYS_ADMIN */
};

/* The texts of /proc/PID/status and /proc/PID/stat into the facts; what else is in them stays. */
void ml_attachable_parse(struct ml_attachable_facts *facts, const char *status, const char *stat);

/* The capabilities of /proc/self/status. */
void ml_attachable_parse_own(struct ml_attachable_facts *facts, const char *status);

/* Read them. */
struct ml_attachable_facts ml_attachable_read(pid_t pid);

/* The first reason not to. Pure. */
enum ml_attachable ml_attachable_judge(const struct ml_attachable_facts *facts, pid_t pid);

enum { ML_ATTACHABLE_TEXT_BYTES = 256 };

/* The same in words, with what to do; "" for ML_ATTACHABLE. */
void ml_attachable_text(
    enum ml_attachable why,
    const struct ml_attachable_facts *facts,
    char out_text[ML_ATTACHABLE_TEXT_BYTES]
);

/* All of it: "": nothing stands in the way. */
void ml_attachable_why_not(pid_t pid, char out_text[ML_ATTACHABLE_TEXT_BYTES]);

#endif
