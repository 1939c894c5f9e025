/* loads [-w] LIBRARY...: keeps 70001 bytes through the first library, 70002 through the second, and
 * so on; "+LIBRARY": in a namespace of its own. -w: says so, then waits to be ended. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void keep(size_t size, void *(*allocate)(size_t));

__attribute__((noinline)) static void load_and_keep(const char *path, size_t size) {
    void *library = path[0] == '+' ? dlmopen(LM_ID_NEWLM, path + 1, RTLD_NOW)
                                   : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    keep *function = library ? (keep *)dlsym(library, "shelf_keep") : NULL;

    if (!function) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    function(size, malloc);
    __asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv) {
    int first = argc > 1 && strcmp(argv[1], "-w") == 0 ? 2 : 1;

    for (int i = first; i < argc; i++) {
        load_and_keep(argv[i], 70001 + (size_t)(i - first));
    }
    if (first == 2) {
        puts("kept");
        fflush(stdout);
        pause();
    }
    return 0;
}
