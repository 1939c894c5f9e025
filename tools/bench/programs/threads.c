/* bench-threads PAIRS: 4 threads that free each other's blocks. A thread makes a message, puts it
 * into the mailbox of one of the others, takes one out of its own and frees it; a mailbox that is
 * full gives its oldest. Nobody waits but for a mailbox's lock. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/programs/random.h"

enum { THREADS = 4, MAILBOX_MESSAGES = 256, CACHE_LINE_BYTES = 64 };

struct mailbox {
    _Alignas(CACHE_LINE_BYTES) pthread_mutex_t lock;
    size_t first, count;
    void *messages[MAILBOX_MESSAGES];
};

static struct mailbox mailboxes[THREADS];
static uint64_t pairs_each;

/* The oldest message, or NULL. The lock is held. */
static void *oldest(struct mailbox *mailbox) {
    if (mailbox->count == 0) {
        return NULL;
    }
    void *message = mailbox->messages[mailbox->first];
    mailbox->first = (mailbox->first + 1) % MAILBOX_MESSAGES;
    mailbox->count--;
    return message;
}

/* What had to leave for it, or NULL. */
static void *put(struct mailbox *mailbox, void *message) {
    (void)pthread_mutex_lock(&mailbox->lock);
    void *left = mailbox->count == MAILBOX_MESSAGES ? oldest(mailbox) : NULL;
    mailbox->messages[(mailbox->first + mailbox->count) % MAILBOX_MESSAGES] = message;
    mailbox->count++;
    (void)pthread_mutex_unlock(&mailbox->lock);
    return left;
}

static void *take(struct mailbox *mailbox) {
    (void)pthread_mutex_lock(&mailbox->lock);
    void *message = oldest(mailbox);
    (void)pthread_mutex_unlock(&mailbox->lock);
    return message;
}

static void *work(void *context) {
    struct mailbox *own = context;
    const size_t index = (size_t)(own - mailboxes);
    uint64_t state = index + 1;
    for (uint64_t i = 0; i < pairs_each; i++) {
        const uint64_t random = ml_bench_random(&state);
        const size_t size = ml_bench_size(random);
        void *message = malloc(size);
        if (message == NULL) {
            break;
        }
        memset(message, (int)i, size);
        free(put(&mailboxes[(index + 1 + random % (THREADS - 1)) % THREADS], message));
        free(take(own));
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "bench-threads PAIRS\n");
        return 2;
    }
    pairs_each = strtoull(argv[1], NULL, 10) / THREADS;
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_mutex_init(&mailboxes[i].lock, NULL);
    }
    for (size_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, work, &mailboxes[i]) != 0) {
            fprintf(stderr, "bench-threads: no thread\n");
            return 1;
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < THREADS; i++) {
        while (mailboxes[i].count > 0) {
            free(oldest(&mailboxes[i]));
        }
    }
    return 0;
}
