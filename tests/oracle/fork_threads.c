/* A threaded program that forks while its threads allocate at full speed; the children allocate at
 * once, too. Parent and children write their truth as "end". */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/oracle/ledger.h"

enum { THREADS = 4, CHILDREN = 40 };

static _Atomic bool stop;
static struct ledger_site noise[THREADS];
static struct ledger_site kept[THREADS];

int main(int argc, char *argv[]);
LEDGER_PATH void *make_noise(void *argument);
LEDGER_PATH void child_life(unsigned number);
LEDGER_PATH void between_forks(void);

LEDGER_PATH void *make_noise(void *argument) {
    size_t self = (size_t)argument;
    for (size_t i = 0; !atomic_load(&stop); i++) {
        size_t size = 16 + i % 700;
        void *block = malloc(size);
        ledger_add(&noise[self], size);
        ledger_sub(&noise[self], size);
        free(block);
        if (i % 2000 == 0 && i < 200000) {
            if (!calloc(1, 33)) {
                ledger_die("calloc failed");
            }
            ledger_add(&kept[self], 33);
        }
    }
    return NULL;
}

/* Only the forking thread lives here. */
LEDGER_PATH void child_life(unsigned number) {
    static struct ledger_site site = {.chain = "child_life<main"};
    for (unsigned i = 0; i < 100; i++) {
        ledger_alloc(&site, malloc(20 + number + i), 20 + number + i);
    }
}

LEDGER_PATH void between_forks(void) {
    static struct ledger_site site = {.chain = "between_forks<main"};
    ledger_add(&site, 777);
    if (!malloc(777)) {
        ledger_die("malloc failed");
    }
}

int main(int argc, char *argv[]) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        noise[i].chain = "make_noise";
        kept[i].chain = "make_noise";
        if (pthread_create(&threads[i], NULL, make_noise, (void *)i) != 0) {
            ledger_die("pthread_create failed");
        }
    }
    for (unsigned i = 0; i < CHILDREN; i++) {
        between_forks();
        pid_t child = fork();
        if (child < 0) {
            ledger_die("fork failed"); /* waitpid would answer the same -1 */
        }
        if (child == 0) {
            ledger_forked();
            child_life(i);
            ledger_write("end", LEDGER_EXACT | LEDGER_PEAK, argc, argv);
            _exit(0);
        }
        int status = 0;
        if (waitpid(child, &status, 0) != child || status != 0) {
            ledger_die("a child did not end as it should");
        }
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    ledger_write("end", 0, argc, argv);
    return 0;
}
