/* Holds a thousand blocks until it is told to let go of them. Reads bytes: 'f' frees those, 'w' is
 * a wave: more blocks at once than a client remembers of those that it passed over, all freed
 * again. Answers each with a line; "ready" comes first. Nothing else is allocated, by stdio
 * neither. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HELD = 1000, WAVE = 600000, BYTES = 24 };

static void *blocks[WAVE];

static void say(const char *line) {
    if (write(STDOUT_FILENO, line, strlen(line)) < 0) {
        _exit(1);
    }
}

static void take(size_t count) {
    for (size_t i = 0; i < count; i++) {
        blocks[i] = malloc(BYTES);
        if (blocks[i] == NULL) {
            _exit(1);
        }
    }
}

static void give_back(size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
}

int main(void) {
    char word = 0;
    void *held[HELD];
    take(HELD);
    memcpy(held, blocks, sizeof(held));
    say("ready\n");
    while (read(STDIN_FILENO, &word, 1) == 1) {
        if (word == 'f') {
            memcpy(blocks, held, sizeof(held));
            give_back(HELD);
            say("freed\n");
        } else if (word == 'w') {
            take(WAVE);
            give_back(WAVE);
            say("wave\n");
        }
    }
    return 0;
}
