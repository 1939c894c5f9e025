/* A forked child whose first events are those of several threads at once: glibc takes their stacks
 * from those that the parent's threads have left, so that the thread that starts them allocates
 * nothing. `born`: by pthread_create; `born past`: by libc's own, past whoever stands in front of
 * it. Parent and children write their truth as "end". */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/oracle/ledger.h"

enum { THREADS = 4, CHILDREN = 20, BLOCKS = 300 };

typedef int create_thread(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static create_thread *create = pthread_create;
static struct ledger_site kept[THREADS];

int main(int argc, char *argv[]);
LEDGER_PATH void *live(void *argument);

LEDGER_PATH void *live(void *argument) {
    struct ledger_site *site = argument;
    for (size_t i = 0; i < BLOCKS; i++) {
        ledger_add(site, i + 1);
        if (malloc(i + 1) == NULL) {
            ledger_die("malloc failed");
        }
    }
    return NULL;
}

static void live_together(void) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        kept[i].chain = "live";
        if (create(&threads[i], NULL, live, &kept[i]) != 0) {
            ledger_die("pthread_create failed");
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

int main(int argc, char *argv[]) {
    if (argc > 1 && strcmp(argv[1], "past") == 0) {
        /* glibc before 2.34 has it in the other one. */
        const char *const names[] = {"libc.so.6", "libpthread.so.0"};
        void *own = NULL;
        for (unsigned i = 0; i < 2 && own == NULL; i++) {
            void *library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
            own = library != NULL ? dlsym(library, "pthread_create") : NULL;
        }
        *(void **)&create = own;
        if (create == NULL || create == pthread_create) {
            ledger_die("libc has no pthread_create of its own");
        }
    }
    live_together();
    for (unsigned i = 0; i < CHILDREN; i++) {
        const pid_t child = fork();
        if (child == 0) {
            ledger_forked();
            live_together();
            ledger_write("end", 0, argc, argv);
            _exit(0);
        }
        int status = 0;
        if (waitpid(child, &status, 0) != child || status != 0) {
            ledger_die("a child did not end as it should");
        }
    }
    ledger_write("end", 0, argc, argv);
    return 0;
}
