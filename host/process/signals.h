/* The signals that the host gets, on its loop. Room: host. Context: the host's one thread.
 *
 * One rule: a terminal sends to the whole process group, and the program has that signal already. A
 * signal to the host alone is meant for the program and is passed on. */
#ifndef MEMLOG_HOST_PROCESS_SIGNALS_H
#define MEMLOG_HOST_PROCESS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include <ev.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"

/* What to do with a signal. */
enum ml_signal_action {
    ML_SIGNAL_IGNORE,   /* the program has it, or it means nothing */
    ML_SIGNAL_FORWARD,  /* send it on to the program */
    ML_SIGNAL_END,      /* the program is gone: end the run now */
    ML_SIGNAL_CHILDREN, /* a child has changed its state */
    ML_SIGNAL_DUMP      /* --dump-signal */
};

/* Decide. Pure. `code` is the siginfo's si_code. */
enum ml_signal_action ml_signal_decide(int signal, int code, int dump_signal, bool program_runs);

struct ml_signals {
    int fd;
    struct ev_loop *loop;
    ev_io watcher;
    void (*on_signal)(void *context, int signal, int code);
    void *context;
};

/* Block every signal that can be waited for and deliver them to `on_signal` on the loop.
 *
 * Errors: ML_ENV_SYSTEM with an error message. Owner:  close with ml_signals_close, which leaves
 * them blocked: the program that ends the host is at its end. */
ML_NODISCARD enum ml_status ml_signals_open(
    struct ml_signals *signals,
    struct ev_loop *loop,
    void (*on_signal)(void *context, int signal, int code),
    void *context,
    struct ml_error_message *error
);
void ml_signals_close(struct ml_signals *signals);

#endif
