/* Threads by the thousand that start, allocate and die: blocks are left to later threads, and
 * thread-specific destructors allocate while their thread is ending. Writes its truth as "end". */
#include <pthread.h>
#include <stdlib.h>

#include "tests/oracle/ledger.h"

enum { WAVES = 125, WAVE_THREADS = 16, SLOTS = 64 };

struct cell {
    struct ledger_site *site;
    size_t size_bytes;
};

static struct ledger_site born = {.chain = "make<live_short"};
static struct ledger_site at_end = {.chain = "make<say_farewell"};
static _Atomic(struct cell *) slots[SLOTS];
static pthread_key_t farewell;

int main(int argc, char *argv[]);
LEDGER_PATH struct cell *make(struct ledger_site *site, size_t size);
LEDGER_PATH void *live_short(void *argument);
LEDGER_PATH void say_farewell(void *argument);

LEDGER_PATH struct cell *make(struct ledger_site *site, size_t size) {
    struct cell *cell = malloc(size);
    if (!cell) {
        ledger_die("malloc failed");
    }
    *cell = (struct cell){.site = site, .size_bytes = size};
    ledger_add(site, size);
    return cell;
}

static void drop(struct cell *cell) {
    if (cell) {
        ledger_sub(cell->site, cell->size_bytes);
        free(cell);
    }
}

LEDGER_PATH void *live_short(void *argument) {
    size_t self = (size_t)argument;
    pthread_setspecific(farewell, argument);
    for (size_t i = 0; i < 5; i++) {
        drop(atomic_exchange(&slots[(self * 7 + i) % SLOTS], make(&born, 24 + self % 300 + i)));
    }
    return NULL;
}

LEDGER_PATH void say_farewell(void *argument) {
    size_t self = (size_t)argument;
    drop(atomic_exchange(&slots[self % SLOTS], make(&at_end, 40 + self % 50)));
    if (self % 10 == 0) {
        drop(make(&at_end, 99));
    }
}

int main(int argc, char *argv[]) {
    pthread_key_create(&farewell, say_farewell);
    for (size_t wave = 0; wave < WAVES; wave++) {
        pthread_t threads[WAVE_THREADS];
        for (size_t i = 0; i < WAVE_THREADS; i++) {
            if (pthread_create(
                    &threads[i], NULL, live_short, (void *)(wave * WAVE_THREADS + i + 1)
                ) != 0) {
                ledger_die("pthread_create failed");
            }
        }
        for (size_t i = 0; i < WAVE_THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
    }
    ledger_write("end", 0, argc, argv);
    return 0;
}
