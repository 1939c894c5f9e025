/* The sandbox around the service. Room: service (:sandbox). Context: once, in the only thread,
 * after the libev loop exists and before the first foreign byte is read. Other threads are made in
 * the middle of it (struct ml_sandbox_options).
 *
 * One rule: afterwards the open descriptors are all of the process's authority. Code that takes the
 * process over still reaches no file, no network and no other process. */
#ifndef MEMLOG_SERVICE_SANDBOX_SANDBOX_H
#define MEMLOG_SERVICE_SANDBOX_SANDBOX_H

#include <stdint.h>

#include "ipc/wire/ml_status.h"

enum ml_sandbox_level {
    ML_SANDBOX_AUTO = 0, /* all that the kernel permits; the rest is named */
    ML_SANDBOX_STRICT,   /* everything, or an error */
    ML_SANDBOX_NONE      /* nothing: for debuggers */
};

/* Each layer keeps an attacker from something. They are bits, so that tests can leave one out and
 * see what the others hold. */
enum ml_sandbox_layer {
    ML_SANDBOX_NAMESPACES = 1 << 0, /* user, mount, network, IPC, UTS, cgroup: its own, empty */
    ML_SANDBOX_ROOT = 1 << 1,       /* the root directory: empty and read-only */
    ML_SANDBOX_LANDLOCK = 1 << 2,   /* no file, no TCP, no signal and no abstract socket outside */
    ML_SANDBOX_PRIVILEGES = 1 << 3, /* no new privileges, no capabilities, not to be traced */
    ML_SANDBOX_LIMITS = 1 << 4,     /* no new processes or threads, no core file */
    ML_SANDBOX_SECCOMP =
        1 << 5 /* the syscalls of service/sandbox/policy/syscalls.policy, no other */
};

enum {
    ML_SANDBOX_ALL_LAYERS = (1 << 6) - 1,
    /* The Configure reply holds 4,096 bytes. All of our texts together have about 600. */
    ML_SANDBOX_MISSING_BYTES = 1024
};

struct ml_sandbox_report {
    /* The layers that are missing, for people: "Landlock (not in this kernel), ...". "":
     * none. */
    char missing[ML_SANDBOX_MISSING_BYTES];
};

/* The level of that name. Errors: ML_PEER_UNKNOWN. */
ML_NODISCARD enum ml_status
ml_sandbox_level_parse(const char *name, enum ml_sandbox_level *out_level);

struct ml_sandbox_options {
    enum ml_sandbox_level level;
    /* For tests: bits of enum ml_sandbox_layer, and a line of
     * service/sandbox/policy/syscalls.policy, to leave out. */
    uint32_t left_out_layers;
    uint32_t left_out_line;
    /* Called when only limits and filter are missing; may be NULL. A thread that is made here
     * inherits the layers that are on, and the filter is put on it as well. Earlier, it would keep
     * some namespaces from being left; later, no thread can be made. */
    void (*make_threads)(void *context);
    void *context;
};

/* Enter the sandbox.
 *
 * Errors: ML_ENV_REFUSED when a layer is missing that this level requires: at STRICT any, at AUTO
 * the privileges, the limits or the filter. Some layers may be on then: end the process.
 * *out_report is filled in any case. */
ML_NODISCARD enum ml_status
ml_sandbox_enter(const struct ml_sandbox_options *options, struct ml_sandbox_report *out_report);

#endif
