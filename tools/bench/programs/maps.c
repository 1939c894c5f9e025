/* bench-maps ROUNDS: map, touch a page, unmap; and every 64th round a thread
 * that starts and ends. What a program pays that does nothing else. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { BYTES = 64 << 10, ROUNDS_A_THREAD = 64 };

static void *end_at_once(void *argument) {
    return argument;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

int main(int count, char **words) {
    const unsigned long rounds = count == 2 ? strtoul(words[1], NULL, 10) : 0;
    for (unsigned long i = 0; i < rounds; i++) {
        char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) {
            fail("mmap");
        }
        *(volatile char *)at = 1;
        if (munmap(at, BYTES) != 0) {
            fail("munmap");
        }
        pthread_t thread;
        if (i % ROUNDS_A_THREAD == 0 && (pthread_create(&thread, NULL, end_at_once, NULL) != 0 ||
                                         pthread_join(thread, NULL) != 0)) {
            fail("pthread_create");
        }
    }
    return rounds == 0;
}
