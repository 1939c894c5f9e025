/* What an attacker tries who has taken a process over: one table for the service and the analyzer.
 * Room: tests. Context: a process that is given up.
 *
 * One rule: an attack that is refused must work outside of any sandbox, or else the refusal proves
 * nothing. tests/service/sandbox/sandbox_test.c tries those that leave nothing behind and need no
 * special kernel. */
#ifndef MEMLOG_TESTS_SERVICE_SANDBOX_ATTACKS_H
#define MEMLOG_TESTS_SERVICE_SANDBOX_ATTACKS_H

#include <stddef.h>
#include <sys/types.h>

struct attack {
    const char *name;
    long (*attempt)(void); /* below 0: refused */
};

/* The last one is "nothing", which works everywhere. */
extern const struct attack attacks[];
extern const size_t attacks_count;

enum attack_end { ATTACK_WORKED, ATTACK_REFUSED, ATTACK_UNKNOWN };

/* Try the one of that name; `whose` is the process that those upon others are aimed at. */
enum attack_end attack_try(const char *name, pid_t whose);

#endif
