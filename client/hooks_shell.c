/* system and popen start a shell with the program's environment, inside libc, where nobody can add
 * to it. Room: client. Context: any thread.
 *
 * One rule: for the length of the call the environment is a copy with ours in it; whatever another
 * thread has made of it meanwhile stays, without ours. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/carry.h"
#include "client/libc.h"
#include "client/visible.h"

static inline void ready(void) {
    if (ml_libc.system == NULL) {
        ml_libc_resolve();
    }
}

/* Back to what was before; if the program has changed it meanwhile, take ours out of that. */
static void restore(char **before, char **carried) {
    if (environ == carried) {
        environ = before;
    } else if (environ != NULL) {
        (void)ml_carry_take(environ);
    }
}

#define WITH_CARRIED_ENVIRONMENT(call)                                                             \
    char **before = environ;                                                                       \
    size_t entries = 0;                                                                            \
    if (!ml_carry_on() || !ml_carry_count(before, &entries) ||                                     \
        !ml_carry_program(AT_FDCWD, "/bin/sh", 0)) {                                               \
        return call;                                                                               \
    }                                                                                              \
    char preload_space[ML_CARRY_PRELOAD_MAX_BYTES];                                                \
    char socket_space[ML_CARRY_SOCKET_MAX_BYTES];                                                  \
    char **carried = __builtin_alloca((entries + ML_CARRY_EXTRA) * sizeof(char *));                \
    ml_carry_environment(before, entries, carried, preload_space, socket_space);                   \
    environ = carried

ML_VISIBLE int system(const char *command) {
    ready();
    if (command == NULL) {
        return ml_libc.system(command);
    }
    WITH_CARRIED_ENVIRONMENT(ml_libc.system(command));
    const int result = ml_libc.system(command);
    restore(before, carried);
    return result;
}

ML_VISIBLE FILE *popen(const char *command, const char *mode) {
    ready();
    WITH_CARRIED_ENVIRONMENT(ml_libc.popen(command, mode));
    FILE *result = ml_libc.popen(command, mode);
    restore(before, carried);
    return result;
}
