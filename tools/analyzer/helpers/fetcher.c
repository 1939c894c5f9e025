#include "tools/analyzer/helpers/fetcher.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/analyzer/helpers/helper.h"
#include "tools/analyzer/progress/progress.h"
#include "tools/analyzer/symbols/search.h"

/* A question is a build id in hex with zeros behind it, an answer a path with zeros behind it. */
enum { QUESTION_BYTES = ML_BUILD_ID_HEX_BYTES, ANSWER_BYTES = PATH_MAX };

/* Before the server has said how much it is, libdebuginfod counts its own steps, and tells no
 * total.
 */
static void tell_progress(uint64_t done, uint64_t total) {
    ml_progress_meanwhile("Fetching debug files", total > 0 ? done : 0, total);
}

static struct ml_helper helper = {
    .lost = "debug files from DEBUGINFOD_URLS may be missing", .progress = tell_progress};

/* Functions of libdebuginfod. Only the fetcher loads it, as it brings a dozen libraries with it. */
struct library {
    debuginfod_client *(*begin)(void);
    int (*find)(debuginfod_client *, const unsigned char *, int, char **);
    void (*set_progress)(debuginfod_client *, debuginfod_progressfn_t);
};

/* In the helper's process: where the analyzer reads. */
static int progress_fd = -1;

/* Not 0: the fetch ends. */
static int on_progress(debuginfod_client *client, long done, long total) {
    (void)client;
    return ml_helper_tell(
               progress_fd, done > 0 ? (uint64_t)done : 0, total > 0 ? (uint64_t)total : 0
           )
               ? 0
               : 1;
}

static bool library_load(struct library *library) {
    void *handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!handle) {
        return false;
    }
    *(void **)&library->begin = dlsym(handle, "debuginfod_begin");
    *(void **)&library->find = dlsym(handle, "debuginfod_find_debuginfo");
    *(void **)&library->set_progress = dlsym(handle, "debuginfod_set_progressfn");
    return library->begin && library->find && library->set_progress;
}

/* The debug file's path in debuginfod's cache. */
static bool fetch(
    const struct library *library,
    debuginfod_client *client,
    const char *hex,
    char path[ANSWER_BYTES]
) {
    char *found = NULL;
    /* Length 0: the id is text in hex. */
    int fd = client ? library->find(client, (const unsigned char *)hex, 0, &found) : -1;
    bool done = fd >= 0 && found && strlen(found) < ANSWER_BYTES;

    if (fd >= 0) {
        close(fd);
    }
    memset(path, 0, ANSWER_BYTES);
    if (done) {
        memcpy(path, found, strlen(found));
    }
    free(found);
    return done;
}

static void serve(int questions_fd, int answers_fd, int own_fd) {
    struct library library = {.begin = NULL};
    debuginfod_client *client = NULL;
    char question[QUESTION_BYTES];
    char path[ANSWER_BYTES];
    bool goes_on = true;

    (void)own_fd;
    while (goes_on && ml_helper_read(questions_fd, question, sizeof question)) {
        size_t count = strnlen(question, sizeof question);
        bool done = false;
        /* Accept hex alone, since it becomes a part of paths. */
        if (count == 0 || count == sizeof question ||
            strspn(question, "0123456789abcdef") != count) {
            return;
        }
        /* Load it only at the first question, since it opens descriptors. */
        if (!library.begin && library_load(&library)) {
            client = library.begin();
            if (client) {
                progress_fd = answers_fd;
                library.set_progress(client, on_progress);
            }
        }
        done = fetch(&library, client, question, path);
        goes_on = ml_helper_answer(answers_fd, done, path, done ? sizeof path : 0);
    }
}

bool ml_fetcher_start(void) {
    const char *urls = getenv("DEBUGINFOD_URLS");

    if (!urls || !urls[strspn(urls, " ")]) {
        return false;
    }
    ml_helper_start(&helper, serve, -1);
    return true;
}

bool ml_fetcher_get(const char *build_id_hex, char *out_path, unsigned long path_bytes) {
    char question[QUESTION_BYTES] = {0};

    if (strlen(build_id_hex) >= sizeof question || path_bytes < ANSWER_BYTES) {
        return false;
    }
    memcpy(question, build_id_hex, strlen(build_id_hex));
    return ml_helper_ask(&helper, question, sizeof question, NULL, 0) &&
           ml_helper_take(&helper, out_path, ANSWER_BYTES) &&
           memchr(out_path, '\0', ANSWER_BYTES) != NULL;
}
