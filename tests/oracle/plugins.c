/* Libraries that come and go: plugins.c swap|race.
 *   swap  one library is closed and another opened, many times; both have stood at the same address
 *   race  threads load and unload while others allocate, and others walk the list of modules with a
 * callback that allocates Writes its truth as "end". */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/oracle/ledger.h"
#include "tests/oracle/plugin.h"

enum { SWAPS = 200, LOADS = 300, ALLOCATORS = 3, WALKS = 500 };

static char folder[512];
static _Atomic bool stop;

int main(int argc, char *argv[]);
LEDGER_PATH void call_plugin(struct ledger_site *site, plugin_make_fn *make, size_t size);
LEDGER_PATH void *allocate(void *argument);
LEDGER_PATH void *load(void *argument);
LEDGER_PATH void *walk(void *argument);
LEDGER_PATH int visit(struct dl_phdr_info *info, size_t size, void *argument);

static void find_folder(void) {
    ssize_t count = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    char *slash = count > 0 ? strrchr(folder, '/') : NULL;
    if (!slash) {
        ledger_die("cannot find my own folder");
    }
    slash[1] = '\0';
}

static void *open_plugin(const char *name) {
    char path[640];
    strcpy(path, folder);
    strcat(path, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        ledger_die("dlopen failed");
    }
    return library;
}

static plugin_make_fn *maker(void *library) {
    plugin_make_fn *make;
    void *symbol = dlsym(library, "plugin_make");
    memcpy(&make, &symbol, sizeof(make));
    return make;
}

LEDGER_PATH void call_plugin(struct ledger_site *site, plugin_make_fn *make, size_t size) {
    void *block = make(size);
    ledger_add(site, size);
    if (size % 4) {
        free(block);
        ledger_sub(site, size);
    }
}

static void swap(void) {
    static struct ledger_site small = {.chain = "small_alloc<plugin_make<call_plugin<swap<main"};
    static struct ledger_site large = {
        .chain = "large_innermost<large_alloc<plugin_make<call_plugin<swap<main"};
    uintptr_t bases[2] = {0, 1};
    bool same = false;
    for (size_t i = 0; i < SWAPS; i++) {
        void *library = open_plugin(i % 2 ? "plugin_large.so" : "plugin_small.so");
        struct link_map *map = library;
        bases[i % 2] = map->l_addr;
        same = same || bases[0] == bases[1];
        for (size_t n = 0; n < 5; n++) {
            call_plugin(i % 2 ? &large : &small, maker(library), 100 + i + n);
        }
        dlclose(library);
    }
    if (!same) {
        ledger_die("the libraries never stood at the same address: nothing was tested");
    }
}

LEDGER_PATH void *allocate(void *argument) {
    struct ledger_site *site = argument;
    while (!atomic_load(&stop)) {
        for (size_t size = 16; size < 400; size += 7) {
            void *block = malloc(size);
            ledger_add(site, size);
            free(block);
            ledger_sub(site, size);
        }
    }
    return NULL;
}

static struct life {
    const char *library;
    struct ledger_site site;
} lives[] = {
    {.library = "plugin_small.so", .site = {.chain = "small_alloc<plugin_make<call_plugin<load"}},
    {.library = "plugin_large.so",
     .site = {.chain = "large_innermost<large_alloc<plugin_make<call_plugin<load"}},
};

LEDGER_PATH void *load(void *argument) {
    struct life *life = argument;
    for (size_t i = 0; i < LOADS; i++) {
        void *library = open_plugin(life->library);
        call_plugin(&life->site, maker(library), 100 + i);
        dlclose(library);
    }
    return NULL;
}

LEDGER_PATH int visit(struct dl_phdr_info *info, size_t size, void *argument) {
    static struct ledger_site site = {.chain = "visit<walk"};
    (void)info;
    (void)argument;
    free(malloc(size));
    ledger_add(&site, size);
    ledger_sub(&site, size);
    return 0;
}

LEDGER_PATH void *walk(void *argument) {
    for (size_t i = 0; i < WALKS; i++) {
        dl_iterate_phdr(visit, argument);
    }
    return argument;
}

static pthread_t start(void *(*life)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, life, argument) != 0) {
        ledger_die("pthread_create failed");
    }
    return thread;
}

static void race(void) {
    static struct ledger_site sites[ALLOCATORS];
    pthread_t allocators[ALLOCATORS];
    for (size_t i = 0; i < ALLOCATORS; i++) {
        sites[i].chain = "allocate";
        allocators[i] = start(allocate, &sites[i]);
    }
    /* Two open one library, which stays as long as one of them has it. A third one's goes while
     * they are in theirs. */
    pthread_t loaders[] = {
        start(load, &lives[0]), start(load, &lives[0]), start(load, &lives[1]), start(walk, NULL)};
    for (size_t i = 0; i < sizeof(loaders) / sizeof(loaders[0]); i++) {
        pthread_join(loaders[i], NULL);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < ALLOCATORS; i++) {
        pthread_join(allocators[i], NULL);
    }
}

int main(int argc, char *argv[]) {
    find_folder();
    ledger_module("plugin_small.so");
    ledger_module("plugin_large.so");
    if (argc > 1 && strcmp(argv[1], "race") == 0) {
        race();
    } else {
        swap();
    }
    ledger_write("end", 0, argc, argv);
    return 0;
}
