/* jit PACKAGE: makes a function at run time, as a virtual machine does, tells its name in
 * /tmp/perf-PID.map, and keeps 70001 bytes through it. The name is one that ProGuard made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* push %rbp; mov %rsp,%rbp; call *%rsi; pop %rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3};

typedef void *made(size_t size, void *(*allocate)(size_t));

int main(int argc, char **argv) {
    void *place = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char path[64];
    FILE *map = NULL;

    (void)argv;
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    map = fopen(path, "w");
    if (argc != 2 || place == MAP_FAILED || !map) {
        return 1;
    }
    memcpy(place, code, sizeof code);
    fprintf(map, "%lx %zx void a.b.c(a.d,int)\n", (unsigned long)place, sizeof code);
    if (fclose(map) != 0 || mprotect(place, 4096, PROT_READ | PROT_EXEC) != 0) {
        return 1;
    }
    return ((made *)place)(70001, malloc) == NULL;
}
