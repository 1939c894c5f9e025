/* A program that memlog is attached to while it runs. Its threads are there before memlog is, and
 * do nothing but allocate. By a word on stdin they stop, allocate by the books (an epoch), or go
 * on; each word is answered by a line on stdout. Built three times: with glibc, glibc as a static
 * program, musl.
 *
 *   quiet, warm        the threads stand still, or allocate
 *   epoch N            each makes N steps by the books, and stands still
 *   books              what the epochs have done, by function, as JSON
 *   forget             from now on the books are empty
 *   fork, _Fork, spawn, exec, system
 *                      a child that makes an epoch and writes its books to $ORACLE_DIR/PID.json
 *   end N              exit with N
 *
 * Called as `attached child N` it is such a child. The books never touch the heap. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    THREADS = 8,
    KEPT = 512,       /* blocks of a thread that the books know */
    BEFORE = 1024,    /* blocks of a thread from before */
    BEFORE_FREED = 7, /* of them in an epoch */
    SHARED = 64,
    WORD_BYTES = 64,
    TEXT_BYTES = 4096
};
enum site { BY_MALLOC = 0, BY_CALLOC, BY_REALLOC, BY_ALIGNED, BY_POSIX, SITES };
enum phase { WARM = 0, QUIET, EPOCH };
static const char *const site_names[SITES] = {
    "by_malloc", "by_calloc", "by_realloc", "by_aligned", "by_posix"};

struct books {
    _Atomic uint64_t total_bytes, total_blocks, freed_bytes, freed_blocks;
};
static struct books books[SITES];
static _Atomic uint64_t before_freed;

/* A block of the books, or room for one. */
struct block {
    void *address;
    size_t size_bytes;
    enum site site;
};
struct thread {
    pthread_t id;
    uint64_t random;
    struct block pool[KEPT];
    struct block *kept[KEPT]; /* changed against other threads' by `shared` */
    void *before[BEFORE];
    uint32_t before_count;
};
static struct thread threads[THREADS];
static _Atomic(struct block *) shared[SHARED];
static struct block shared_pool[SHARED];
static _Atomic int phase;
static _Atomic uint32_t arrived;
static _Atomic uint64_t steps, warm_steps;
static bool is_alone; /* a forked child: blocks of other threads are none of its own */

static void die(const char *what) {
    (void)!write(2, what, strlen(what));
    _exit(99);
}

static uint64_t next(struct thread *thread) {
    thread->random ^= thread->random << 13;
    thread->random ^= thread->random >> 7;
    thread->random ^= thread->random << 17;
    return thread->random;
}

/* ---- allocations by the books: each function is the one that its blocks are known by */

#define NAMED static __attribute__((noipa))

static void note(struct block *block, void *address, size_t size_bytes, enum site site) {
    if (address == NULL) {
        die("no memory\n");
    }
    *block = (struct block){.address = address, .size_bytes = size_bytes, .site = site};
    memset(address, 0x5a, size_bytes < 64 ? size_bytes : 64);
    atomic_fetch_add(&books[site].total_bytes, size_bytes);
    atomic_fetch_add(&books[site].total_blocks, 1);
}

static void note_gone(struct block *block) {
    atomic_fetch_add(&books[block->site].freed_bytes, block->size_bytes);
    atomic_fetch_add(&books[block->site].freed_blocks, 1);
    block->address = NULL;
}

NAMED void by_malloc(struct block *block, size_t size_bytes) {
    note(block, malloc(size_bytes), size_bytes, BY_MALLOC);
}

NAMED void by_calloc(struct block *block, size_t size_bytes) {
    note(block, calloc(3, size_bytes), 3 * size_bytes, BY_CALLOC);
}

NAMED void by_aligned(struct block *block, size_t size_bytes) {
    size_bytes = (size_bytes + 63) & ~(size_t)63;
    note(block, aligned_alloc(64, size_bytes), size_bytes, BY_ALIGNED);
}

NAMED void by_posix(struct block *block, size_t size_bytes) {
    void *address = NULL;
    if (posix_memalign(&address, 256, size_bytes) != 0) {
        die("no memory\n");
    }
    note(block, address, size_bytes, BY_POSIX);
}

/* The block is another one then, wherever it lies. */
NAMED void by_realloc(struct block *block, size_t size_bytes) {
    void *address = realloc(block->address, size_bytes);
    note_gone(block);
    note(block, address, size_bytes, BY_REALLOC);
}

NAMED void by_free(struct block *block) {
    free(block->address);
    note_gone(block);
}

static void allocate(struct thread *thread, struct block *block) {
    const size_t size_bytes = 1 + (size_t)(next(thread) % 3000);
    switch (next(thread) % 4) {
    case 0:
        by_malloc(block, size_bytes);
        break;
    case 1:
        by_calloc(block, size_bytes);
        break;
    case 2:
        by_aligned(block, size_bytes);
        break;
    default:
        by_posix(block, size_bytes);
    }
}

static void step(struct thread *thread) {
    struct block **place = &thread->kept[next(thread) % KEPT];
    if (!is_alone && next(thread) % 4 == 0) {
        *place = atomic_exchange(&shared[next(thread) % SHARED], *place);
    }
    if ((*place)->address == NULL) {
        allocate(thread, *place);
    } else if (next(thread) % 3 == 0) {
        by_realloc(*place, 1 + (size_t)(next(thread) % 5000));
    } else {
        by_free(*place);
    }
}

NAMED void epoch(struct thread *thread) {
    const uint64_t count = atomic_load(&steps);
    for (uint64_t i = 0; i < count; i++) {
        step(thread);
    }
    for (uint32_t i = 0; i < BEFORE_FREED && thread->before_count > 0; i++) {
        free(thread->before[--thread->before_count]);
        atomic_fetch_add(&before_freed, 1);
    }
}

/* ---- threads */

NAMED void warm(struct thread *thread) {
    static _Atomic(void *) slots[SHARED];
    for (uint32_t i = 0; i < 64; i++) {
        void *address = malloc(1 + (size_t)(next(thread) % 700));
        free(atomic_exchange(&slots[next(thread) % SHARED], address));
    }
    atomic_fetch_add(&warm_steps, 1);
}

static void pause_us(long count) {
    const struct timespec pause = {.tv_nsec = count * 1000};
    (void)nanosleep(&pause, NULL);
}

static void *run(void *argument) {
    struct thread *thread = argument;
    int seen = WARM;
    for (;;) {
        const int now = atomic_load(&phase);
        if (now == WARM) {
            warm(thread);
        } else if (now != seen) {
            if (now == EPOCH) {
                epoch(thread);
            }
            atomic_fetch_add(&arrived, 1);
        } else {
            pause_us(200);
        }
        seen = now;
    }
    return NULL;
}

/* All threads are there, and stand still. */
static void have_all(enum phase wanted) {
    atomic_store(&arrived, 0);
    atomic_store(&phase, wanted);
    while (wanted != WARM && atomic_load(&arrived) < THREADS) {
        pause_us(200);
    }
}

static void prepare(void) {
    for (uint32_t t = 0; t < THREADS; t++) {
        threads[t].random = 0x9e3779b97f4a7c15u * (t + 1);
        for (uint32_t i = 0; i < KEPT; i++) {
            threads[t].kept[i] = &threads[t].pool[i];
        }
        for (; threads[t].before_count < BEFORE; threads[t].before_count++) {
            threads[t].before[threads[t].before_count] = malloc(40 + threads[t].before_count);
        }
    }
    for (uint32_t i = 0; i < SHARED; i++) {
        atomic_store(&shared[i], &shared_pool[i]);
    }
}

/* ---- books */

static size_t print_books(char text[TEXT_BYTES]) {
    int used =
        snprintf(text, TEXT_BYTES, "{\"before_freed\": %llu", (unsigned long long)before_freed);
    for (uint32_t i = 0; i < SITES; i++) {
        const struct books *one = &books[i];
        used += snprintf(
            text + used,
            TEXT_BYTES - (size_t)used,
            ", \"%s\": [%llu, %llu, %llu, %llu]",
            site_names[i],
            (unsigned long long)one->total_bytes,
            (unsigned long long)one->total_blocks,
            (unsigned long long)(one->total_bytes - one->freed_bytes),
            (unsigned long long)(one->total_blocks - one->freed_blocks)
        );
    }
    used += snprintf(text + used, TEXT_BYTES - (size_t)used, "}\n");
    return (size_t)used;
}

static void write_books(void) {
    char path[PATH_MAX];
    char text[TEXT_BYTES];
    const char *folder = getenv("ORACLE_DIR");
    (void)snprintf(path, sizeof(path), "%s/%d.json", folder != NULL ? folder : ".", (int)getpid());
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    const size_t bytes = print_books(text);
    if (fd < 0 || write(fd, text, bytes) != (ssize_t)bytes || close(fd) != 0) {
        die("the books cannot be written\n");
    }
}

/* What lives is of before: its frees are known to nobody. */
static void forget(void) {
    memset(books, 0, sizeof(books));
    atomic_store(&before_freed, 0);
    for (uint32_t t = 0; t < THREADS; t++) {
        for (uint32_t i = 0; i < KEPT; i++) {
            *threads[t].kept[i] = (struct block){.address = NULL}; /* lost on purpose */
        }
    }
    for (uint32_t i = 0; i < SHARED; i++) {
        *atomic_load(&shared[i]) = (struct block){.address = NULL};
    }
}

/* ---- children */

/* In a child: one thread, with books of its own. */
static void be_child(uint64_t count) {
    is_alone = true;
    atomic_store(&steps, count);
    forget();
    epoch(&threads[0]);
    write_books();
    _exit(0);
}

static pid_t fork_by(const char *word) {
#ifdef __GLIBC__
    if (strcmp(word, "_Fork") == 0) {
        return _Fork();
    }
#endif
    (void)word;
    return fork();
}

static pid_t make_child(const char *word, const char *self) {
    char count[] = "3000";
    char *words[] = {(char *)(uintptr_t)self, "child", count, NULL};
    pid_t child = -1;
    if (strcmp(word, "spawn") == 0) {
        return posix_spawn(&child, self, NULL, NULL, words, environ) == 0 ? child : -1;
    }
    if (strcmp(word, "system") == 0) {
        char line[PATH_MAX + 32];
        (void)snprintf(line, sizeof(line), "exec %s child %s", self, count);
        return system(line) == 0 ? 0 : -1;
    }
    child = fork_by(word);
    if (child == 0 && strcmp(word, "exec") == 0) {
        (void)execv(self, words);
        _exit(98);
    }
    if (child == 0) {
        be_child(2000);
    }
    return child;
}

/* The answer: the child's pid; 0 where system() keeps it to itself. */
static void answer_child(const char *word, const char *self, char text[TEXT_BYTES]) {
    int status = 0;
    const pid_t child = make_child(word, self);
    if (child < 0 || (child > 0 && (waitpid(child, &status, 0) != child || status != 0))) {
        (void)snprintf(text, TEXT_BYTES, "failed: status %d, errno %d\n", status, errno);
        return;
    }
    (void)snprintf(text, TEXT_BYTES, "%d\n", (int)child);
}

/* ---- words */

static bool read_word(char out_word[WORD_BYTES]) {
    size_t used = 0;
    while (used + 1 < WORD_BYTES) {
        const ssize_t got = read(0, out_word + used, 1);
        if (got < 0) {
            die("a read was interrupted\n");
        }
        if (got == 0) {
            return false;
        }
        if (out_word[used] == '\n') {
            break;
        }
        used++;
    }
    out_word[used] = '\0';
    return true;
}

static void obey(const char *word, const char *self, char text[TEXT_BYTES]) {
    (void)snprintf(text, TEXT_BYTES, "ok\n");
    if (strcmp(word, "quiet") == 0) {
        have_all(QUIET);
    } else if (strcmp(word, "warm") == 0) {
        have_all(WARM);
    } else if (strncmp(word, "epoch ", 6) == 0) {
        atomic_store(&steps, strtoull(word + 6, NULL, 10));
        have_all(EPOCH);
        have_all(QUIET);
    } else if (strcmp(word, "books") == 0) {
        (void)print_books(text);
    } else if (strcmp(word, "forget") == 0) {
        forget();
    } else if (strcmp(word, "steps") == 0) {
        (void)snprintf(text, TEXT_BYTES, "%llu\n", (unsigned long long)warm_steps);
    } else if (strncmp(word, "end ", 4) == 0) {
        exit((int)strtol(word + 4, NULL, 10));
    } else {
        answer_child(word, self, text);
    }
}

int main(int count, char **words) {
    static char text[TEXT_BYTES];
    char word[WORD_BYTES];
    prepare();
    if (count > 2 && strcmp(words[1], "child") == 0) {
        be_child(strtoull(words[2], NULL, 10));
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i].id, NULL, run, &threads[i]) != 0) {
            die("no thread\n");
        }
    }
    (void)!write(1, "ready\n", 6);
    while (read_word(word)) {
        obey(word, words[0], text);
        (void)!write(1, text, strlen(text));
    }
    return 0;
}
