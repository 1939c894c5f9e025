#include "host/process/signals.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "host/process/loop.h"

enum ml_signal_action ml_signal_decide(int signal, int code, int dump_signal, bool program_runs) {
    if (signal == SIGCHLD) {
        return ML_SIGNAL_CHILDREN;
    }
    if (signal == dump_signal) {
        return ML_SIGNAL_DUMP;
    }
    switch (signal) {
    case SIGPIPE: /* of our own writing; the write's error says it */
    case SIGTTIN:
    case SIGTTOU:
    case SIGCONT: /* the loop runs again, that is all it means for us */
        return ML_SIGNAL_IGNORE;
    case SIGWINCH:
    case SIGTSTP:
        return program_runs && code != SI_KERNEL ? ML_SIGNAL_FORWARD : ML_SIGNAL_IGNORE;
    default:
        break;
    }
    if (program_runs) {
        return code == SI_KERNEL ? ML_SIGNAL_IGNORE : ML_SIGNAL_FORWARD;
    }
    switch (signal) {
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
        return ML_SIGNAL_END;
    default:
        return ML_SIGNAL_IGNORE;
    }
}

static void on_readable(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_signals *signals = watcher->data;
    struct signalfd_siginfo info;
    while (signals->fd >= 0 && read(signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        signals->on_signal(signals->context, (int)info.ssi_signo, info.ssi_code);
    }
}

enum ml_status ml_signals_open(
    struct ml_signals *signals,
    struct ev_loop *loop,
    void (*on_signal)(void *context, int signal, int code),
    void *context,
    struct ml_error_message *error
) {
    /* Faults of the host's own crash it. */
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t set;
    (void)sigfillset(&set);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        (void)sigdelset(&set, faults[i]);
    }
    signals->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals->fd < 0 || sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        ml_error_set(error, "cannot watch signals: %s", strerror(errno));
        ml_descriptor_close(&signals->fd);
        signals->fd = -1;
        return ML_ENV_SYSTEM;
    }
    signals->loop = loop;
    signals->on_signal = on_signal;
    signals->context = context;
    ml_watch_readable(loop, &signals->watcher, on_readable, signals->fd, signals);
    return ML_OK;
}

void ml_signals_close(struct ml_signals *signals) {
    if (signals->fd < 0) {
        return;
    }
    ev_io_stop(signals->loop, &signals->watcher);
    (void)close(signals->fd);
    signals->fd = -1;
}
