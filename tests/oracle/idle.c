/* Threads that hold a few events each and then sleep, while a dump is taken: none of it may wait
 * for them to go on. Writes its truth as "asleep", sleeps until $ORACLE_DIR/go exists, writes
 * "end". */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/oracle/ledger.h"

enum { THREADS = 6 };

static pthread_barrier_t allocated;
static pthread_mutex_t never = PTHREAD_MUTEX_INITIALIZER;
static struct ledger_site sites[THREADS];

int main(int argc, char *argv[]);
LEDGER_PATH void *doze(void *argument);
LEDGER_PATH void last_words(void);

LEDGER_PATH void *doze(void *argument) {
    size_t self = (size_t)argument;
    for (size_t i = 0; i <= self; i++) {
        ledger_add(&sites[self], 1000 + self);
        if (!malloc(1000 + self)) {
            ledger_die("malloc failed");
        }
    }
    pthread_barrier_wait(&allocated);
    pthread_mutex_lock(&never);
    pthread_mutex_unlock(&never);
    return NULL;
}

LEDGER_PATH void last_words(void) {
    static struct ledger_site site = {.chain = "last_words<main"};
    ledger_add(&site, 54321);
    if (!malloc(54321)) {
        ledger_die("malloc failed");
    }
}

static bool may_go(void) {
    char path[512];
    const char *dir = getenv("ORACLE_DIR");
    if (!dir || strlen(dir) > sizeof(path) - 8) {
        return true;
    }
    strcpy(path, dir);
    strcat(path, "/go");
    return access(path, F_OK) == 0;
}

int main(int argc, char *argv[]) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&allocated, NULL, THREADS + 1);
    pthread_mutex_lock(&never);
    for (size_t i = 0; i < THREADS; i++) {
        sites[i].chain = "doze";
        if (pthread_create(&threads[i], NULL, doze, (void *)i) != 0) {
            ledger_die("pthread_create failed");
        }
    }
    pthread_barrier_wait(&allocated);
    ledger_write("asleep", LEDGER_PARTIAL, argc, argv);
    while (!may_go()) {
        usleep(5000);
    }
    last_words();
    pthread_mutex_unlock(&never);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    ledger_write("end", 0, argc, argv);
    return 0;
}
