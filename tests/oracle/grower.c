/* Grows on command (and "innocent" is not "guilty" to a linker that folds equal functions): `grower
 * ROLE ACTION...`, where an action is innocent=BYTES  guilty=BYTES   allocate and touch, by a
 * function of that name drop                           free what guilty has wait=FILE  done=FILE
 * wait until FILE is there; make it fork                           a child does the next actions up
 * to `end`, the parent those behind kill                           SIGKILL to itself ROLE is an
 * argument for --type=, "-" for none. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS_MAX = 4096 };
static void *blocks[BLOCKS_MAX];
static size_t blocks_count;

static void *touched(void *block, size_t bytes) {
    memset(block, 1, bytes);
    return block;
}

void *innocent(size_t bytes);
void *innocent(size_t bytes) {
    return touched(calloc(1, bytes), bytes);
}

void *guilty(size_t bytes);
void *guilty(size_t bytes) {
    return touched(malloc(bytes), bytes);
}

static void make(const char *path) {
    (void)close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static void wait_for(const char *path) {
    while (access(path, F_OK) != 0) {
        (void)usleep(5000);
    }
}

static void act(const char *action) {
    const char *value = strchr(action, '=');
    value = value != NULL ? value + 1 : "";
    if (strncmp(action, "innocent=", 9) == 0) {
        (void)innocent(strtoul(value, NULL, 10));
    } else if (strncmp(action, "guilty=", 7) == 0 && blocks_count < BLOCKS_MAX) {
        blocks[blocks_count++] = guilty(strtoul(value, NULL, 10));
    } else if (strcmp(action, "drop") == 0) {
        while (blocks_count > 0) {
            free(blocks[--blocks_count]);
        }
    } else if (strncmp(action, "wait=", 5) == 0) {
        wait_for(value);
    } else if (strncmp(action, "done=", 5) == 0) {
        make(value);
    } else if (strcmp(action, "kill") == 0) {
        (void)raise(SIGKILL);
    } else if (strcmp(action, "end") != 0) {
        _exit(3);
    }
}

int main(int argc, char **argv) {
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "fork") != 0) {
            act(argv[i]);
            continue;
        }
        const pid_t child = fork();
        for (i++; i < argc && strcmp(argv[i], "end") != 0; i++) {
            if (child == 0) {
                act(argv[i]);
            }
        }
        if (child == 0) {
            return 0;
        }
    }
    while (wait(NULL) > 0) {
    }
    return 0;
}
