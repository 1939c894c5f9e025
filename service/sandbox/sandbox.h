/* The sandbox around the service. Room: service (:sandbox). Context: once, in the only thread,
 * after the libev loop exists and before the first foreign byte is read; other threads are made in
 * the middle of it (struct ml_sandbox_options).
 *
 * One rule: afterwards all authority is the descriptors that are open. What is read from then on
 * may take over this process and still reaches no file, no network, no other process. */
#ifndef MEMLOG_SERVICE_SANDBOX_SANDBOX_H
#define MEMLOG_SERVICE_SANDBOX_SANDBOX_H

#include <stdint.h>

#include "ipc/wire/ml_status.h"

enum ml_sandbox_level {
    ML_SANDBOX_AUTO = 0, /* everything that the kernel permits; what it does not is named */
    ML_SANDBOX_STRICT,   /* everything, or an error */
    ML_SANDBOX_NONE      /* nothing: for debuggers */
};

/* Each of them alone keeps an attacker from something; bits, so that tests can take one away and
 * look at what the others hold. */
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
    /* What the Configure reply can hold is 4,096; all our own texts together have about 600. */
    ML_SANDBOX_MISSING_BYTES = 1024
};

struct ml_sandbox_report {
    /* What is not on, for people: "no Landlock (Function not implemented), ..."; "" if all is. */
    char missing[ML_SANDBOX_MISSING_BYTES];
};

/* The level of that name. Errors: ML_PEER_UNKNOWN. */
ML_NODISCARD enum ml_status
ml_sandbox_level_parse(const char *name, enum ml_sandbox_level *out_level);

struct ml_sandbox_options {
    enum ml_sandbox_level level;
    /* For tests, which look at some layers alone, and at the policy without one of its lines: bits
     * of enum ml_sandbox_layer, and a line number in service/sandbox/policy/syscalls.policy. */
    uint32_t left_out_layers;
    uint32_t left_out_line;
    /* Called when only limits and filter are missing; NULL: not. A thread that is made here
     * inherits every layer that stands, which are each thread's own, and the filter is laid over it
     * as well. Before, some namespaces could not be left; later, there are no new threads. */
    void (*make_threads)(void *context);
    void *context;
};

/* Enter.
 *
 * Errors: ML_ENV_REFUSED when something is missing that this level does not do without: at STRICT
 *         anything, at AUTO the privileges, the limits or the filter. Half of the layers may stand
 * then: end the process. *out_report is filled in any case. */
ML_NODISCARD enum ml_status
ml_sandbox_enter(const struct ml_sandbox_options *options, struct ml_sandbox_report *out_report);

#endif
