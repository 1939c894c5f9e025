/* A million blocks, of which all but the last one are freed: what stays resident is the
 * allocator's. Then it stands still until a byte comes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1000000, BYTES = 100 };

static char *blocks[COUNT];

static void fill(void) {
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = malloc(BYTES);
        memset(blocks[i], 1, BYTES);
    }
}

int main(void) {
    char byte = 0;
    fill();
    for (size_t i = 0; i + 1 < COUNT; i++) {
        free(blocks[i]);
    }
    (void)write(STDOUT_FILENO, "ready\n", 6);
    (void)read(STDIN_FILENO, &byte, 1);
    return 0;
}
