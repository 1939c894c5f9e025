#include "tools/fetcher.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* A question is a build id in hex with its NUL, an answer a path with its own; "" for none. Both
 * fit into one write of a pipe, so nothing comes in pieces. */
enum { QUESTION_MAX_BYTES = 2 * 64 + 1, ANSWER_MAX_BYTES = PATH_MAX };

/* The one process, and the ends of the pipes to it. */
static struct {
    pid_t pid;
    int to_fd, from_fd;
} fetcher;

/* Of libdebuginfod, loaded by the fetcher alone: it brings a dozen libraries with it. */
struct library {
    debuginfod_client *(*begin)(void);
    int (*find)(debuginfod_client *, const unsigned char *, int, char **);
};

static bool library_load(struct library *library) {
    void *handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!handle) {
        return false;
    }
    *(void **)&library->begin = dlsym(handle, "debuginfod_begin");
    *(void **)&library->find = dlsym(handle, "debuginfod_find_debuginfo");
    return library->begin && library->find;
}

/* Answer until the other end is closed. */
static void serve(int questions_fd, int answers_fd) {
    struct library library = {NULL, NULL};
    debuginfod_client *client = library_load(&library) ? library.begin() : NULL;
    char question[QUESTION_MAX_BYTES];

    for (;;) {
        ssize_t count = read(questions_fd, question, sizeof question);
        char *path = NULL;
        int fd = -1;
        if (count < 0 && errno == EINTR) {
            continue;
        }
        /* Nothing but hex: it becomes a part of paths. */
        if (count <= 1 || question[count - 1] != '\0' ||
            strspn(question, "0123456789abcdef") != (size_t)count - 1) {
            return;
        }
        if (client) {
            /* Length 0: the id is text in hex. */
            fd = library.find(client, (const unsigned char *)question, 0, &path);
        }
        if (fd >= 0) {
            close(fd);
        }
        if (fd < 0 || !path || strlen(path) >= ANSWER_MAX_BYTES) {
            free(path);
            path = strdup("");
        }
        if (!path || write(answers_fd, path, strlen(path) + 1) < 0) {
            return;
        }
        free(path);
    }
}

void ml_fetcher_start(void) {
    const char *urls = getenv("DEBUGINFOD_URLS");
    int questions[2];
    int answers[2];

    if (!urls || !urls[strspn(urls, " ")] || fetcher.pid != 0) {
        return;
    }
    if (pipe2(questions, O_CLOEXEC) != 0) {
        return;
    }
    if (pipe2(answers, O_CLOEXEC) != 0) {
        close(questions[0]);
        close(questions[1]);
        return;
    }
    fetcher.pid = fork();
    if (fetcher.pid == 0) {
        close(questions[1]);
        close(answers[0]);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(questions[0], answers[1]);
        _exit(0);
    }
    close(questions[0]);
    close(answers[1]);
    fetcher.to_fd = questions[1];
    fetcher.from_fd = answers[0];
    if (fetcher.pid < 0) {
        fetcher.pid = 0;
        close(fetcher.to_fd);
        close(fetcher.from_fd);
    }
}

bool ml_fetcher_is_there(void) {
    return fetcher.pid > 0;
}

void ml_fetcher_stop(void) {
    if (fetcher.pid > 0) {
        close(fetcher.to_fd);
        close(fetcher.from_fd);
        (void)waitpid(fetcher.pid, NULL, 0);
        fetcher.pid = 0;
    }
}

bool ml_fetcher_get(const char *build_id_hex, char *out_path, unsigned long path_bytes) {
    size_t count = strlen(build_id_hex) + 1;
    ssize_t got = 0;

    if (fetcher.pid <= 0 || count > QUESTION_MAX_BYTES || count < 2 ||
        write(fetcher.to_fd, build_id_hex, count) != (ssize_t)count) {
        return false;
    }
    do {
        got = read(fetcher.from_fd, out_path, path_bytes);
    } while (got < 0 && errno == EINTR);
    return got > 1 && out_path[got - 1] == '\0';
}
