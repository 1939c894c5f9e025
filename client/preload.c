/* Where a preloaded (or linked) client begins and ends. Room: client. Context: the constructor runs
 * before every other one of the process (-z initfirst in libmemlog.so), with one thread.
 *
 * One rule: everything that needs more than write, fstat and poll happens here, dormant or not. */
#include "client/carry.h"
#include "client/libc.h"
#include "client/life.h"
#include "client/memlog.h"
#include "client/next.h"

__attribute__((constructor)) static void begin(int count, char **arguments, char **environment) {
    (void)count;
    (void)arguments;
    ml_next_resolve();
    ml_next_resolve_new();
    ml_libc_resolve();
    const char *socket_path = environment != NULL ? ml_carry_take(environment) : NULL;
    if (socket_path != NULL) {
        (void)memlog_start(socket_path);
    }
}

__attribute__((destructor)) static void end(void) {
    ml_life_end(ML_END_EXIT);
}
