/* Eight threads that free each other's blocks at full speed: an address freed by one is handed out
 * to another within nanoseconds. The peak lies in a quiet phase before, so it is known. Writes its
 * truth as "end". `threads ROUNDS`: so many rounds a thread (tests/e2e/soak.py). */
#include <pthread.h>
#include <stdlib.h>

#include "tests/oracle/ledger.h"

enum {
    THREADS = 8,
    ROUNDS = 150000,
    SLOTS = 256,
    PEAK_BYTES =
        200000, /* of each thread; SLOTS * BLOCK_MAX stays far under THREADS * PEAK_BYTES */
    BLOCK_MAX = 600
};

/* Kept in the block itself: whoever frees it must know whose it is. */
struct cell {
    struct ledger_site *site;
    size_t size_bytes;
};

struct worker {
    pthread_t thread;
    struct ledger_site plateau, direct, deep, grown;
    uint64_t random_state;
};

static struct worker workers[THREADS];
static _Atomic(struct cell *) slots[SLOTS];
static unsigned long rounds = ROUNDS; /* set once before threads */
static pthread_barrier_t all_hold, peak_taken;

int main(int argc, char *argv[]);
LEDGER_PATH struct cell *make(struct ledger_site *site, size_t size);
LEDGER_PATH struct cell *make_deep(struct ledger_site *site, size_t size);
LEDGER_PATH struct cell *grow(struct ledger_site *site, struct cell *cell, size_t size);
LEDGER_PATH void hold(struct worker *worker);
LEDGER_PATH void exchange(struct worker *worker);
LEDGER_PATH void *work(void *argument);

LEDGER_PATH struct cell *make(struct ledger_site *site, size_t size) {
    struct cell *cell = malloc(size);
    if (!cell) {
        ledger_die("malloc failed");
    }
    *cell = (struct cell){.site = site, .size_bytes = size};
    ledger_add(site, size);
    return cell;
}

LEDGER_PATH struct cell *make_deep(struct ledger_site *site, size_t size) {
    return make(site, size);
}

static void drop(struct cell *cell) {
    if (cell) {
        ledger_sub(cell->site, cell->size_bytes);
        free(cell);
    }
}

LEDGER_PATH struct cell *grow(struct ledger_site *site, struct cell *cell, size_t size) {
    ledger_sub(cell->site, cell->size_bytes);
    cell = realloc(cell, size);
    if (!cell) {
        ledger_die("realloc failed");
    }
    *cell = (struct cell){.site = site, .size_bytes = size};
    ledger_add(site, size);
    return cell;
}

LEDGER_PATH void hold(struct worker *worker) {
    struct cell *cell = make(&worker->plateau, PEAK_BYTES);
    pthread_barrier_wait(&all_hold);
    pthread_barrier_wait(&peak_taken);
    drop(cell);
}

static uint32_t random_below(struct worker *worker, uint32_t bound) {
    worker->random_state = worker->random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((worker->random_state >> 33) % bound);
}

LEDGER_PATH void exchange(struct worker *worker) {
    for (unsigned long round = 0; round < rounds; round++) {
        size_t size = sizeof(struct cell) + random_below(worker, BLOCK_MAX - sizeof(struct cell));
        uint32_t way = random_below(worker, 8);
        struct cell *mine = NULL;
        if (way < 3) {
            mine = make(&worker->direct, size);
        } else if (way < 6) {
            mine = make_deep(&worker->deep, size);
        }
        _Atomic(struct cell *) *slot = &slots[random_below(worker, SLOTS)];
        struct cell *theirs = atomic_exchange(slot, mine);
        if (theirs && way == 7) {
            drop(atomic_exchange(slot, grow(&worker->grown, theirs, size)));
        } else {
            drop(theirs);
        }
    }
}

LEDGER_PATH void *work(void *argument) {
    struct worker *worker = argument;
    hold(worker);
    exchange(worker);
    return NULL;
}

int main(int argc, char *argv[]) {
    if (argc > 1) {
        rounds = strtoul(argv[1], NULL, 10);
    }
    pthread_barrier_init(&all_hold, NULL, THREADS + 1);
    pthread_barrier_init(&peak_taken, NULL, THREADS + 1);
    for (size_t i = 0; i < THREADS; i++) {
        struct worker *worker = &workers[i];
        worker->plateau.chain = "make<hold<work";
        worker->direct.chain = "make<exchange<work";
        worker->deep.chain = "make<make_deep<exchange<work";
        worker->grown.chain = "grow<exchange<work";
        worker->random_state = i * 1000003 + 17;
        if (pthread_create(&worker->thread, NULL, work, worker) != 0) {
            ledger_die("pthread_create failed");
        }
    }
    pthread_barrier_wait(&all_hold);
    ledger_mark_peak();
    pthread_barrier_wait(&peak_taken);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    ledger_write("end", LEDGER_PEAK, argc, argv);
    return 0;
}
