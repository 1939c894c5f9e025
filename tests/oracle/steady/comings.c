/* Threads that load a library, have it allocate, and unload it, all the time. Every other thread's
 * has an allocator of its own.
 *
 *   comings FOLDER    library0.so ... library5.so in it: each a thread's own */
#include "tests/oracle/steady/steady.h"

#include <dlfcn.h>
#include <stdatomic.h>

enum { THREADS = 6 };
static const char *folder;
static _Atomic uint32_t ended;

static uint64_t sum_of(uint64_t seed) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 16; i++) {
        sum += seed * i + 77;
    }
    return sum;
}

static void *run(void *argument) {
    const uint64_t number = (uint64_t)(uintptr_t)argument;
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/library%u.so", folder, (unsigned)number);
    for (uint64_t turn = number; !steady_is_over(); turn += THREADS) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        uint64_t (*const ask)(uint64_t) =
            library != NULL ? (uint64_t(*)(uint64_t))(uintptr_t)dlsym(library, "library_sum")
                            : NULL;
        steady_count(ask != NULL && ask(turn) == sum_of(turn), "a library's sum", (long)number);
        steady_count(steady_blocks(turn), "blocks", (long)number);
        steady_count(library != NULL && dlclose(library) == 0, "dlclose", (long)number);
        if (turn % 4 == 0) {
            steady_count(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL, "it stays", (long)number);
        }
    }
    atomic_fetch_add(&ended, 1);
    return NULL;
}

int main(int count, char **words) {
    folder = count > 1 ? words[1] : ".";
    for (uintptr_t i = 0; i < THREADS; i++) {
        steady_thread(run, (void *)i);
    }
    steady_wait();
    while (atomic_load(&ended) < THREADS) {
        steady_sleep_us(1000);
    }
    return steady_end();
}
