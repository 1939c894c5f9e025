/* The pipes between the analyzer and its helpers, when whoever is at the other end has been taken
 * over: answers of any bytes to the analyzer (of the fetcher, which speaks to servers), and
 * questions of any bytes to the cache's helper, which has the user's rights and may write nothing
 * but files of names in its folder. The input's first byte says which. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/helpers/cache_keeper.h"
#include "tools/analyzer/helpers/helper.h"
#include "tools/analyzer/symbols/cache.h"

enum { PIPE_BYTES = 1 << 20, ANSWER_BYTES = 64, MODE_MAX = 0600 };

static char folder[PATH_MAX];
static char cache[PATH_MAX];

static void begin(void) {
    (void)snprintf(folder, sizeof(folder), "%s", fuzz_folder());
    (void)snprintf(cache, sizeof(cache), "%.4000s/cache", folder);
    REQUIRE(setenv("MEMLOG_SYMBOL_CACHE", cache, 1) == 0);
    REQUIRE(ml_cache_keeper_start() != NULL && strcmp(ml_cache_keeper_start(), cache) == 0);
}

/* The read end of a pipe that holds that, and nothing behind it. */
static int pipe_of(const uint8_t *bytes, size_t count_bytes) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    (void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
    if (count_bytes > 0) {
        REQUIRE(write(ends[1], bytes, count_bytes) == (ssize_t)count_bytes);
    }
    (void)close(ends[1]);
    return ends[0];
}

/* The first byte of an answer, behind what is told of its progress: 2 and two numbers. False: the
 * bytes end first. */
static bool answer_at(const uint8_t *data, size_t count_bytes, size_t *at, uint8_t *out_answer) {
    enum { COMES = 2, FIGURES_BYTES = 16 };
    for (; *at < count_bytes; *at += FIGURES_BYTES) {
        *out_answer = data[(*at)++];
        if (*out_answer != COMES) {
            return true;
        }
        if (count_bytes - *at < FIGURES_BYTES) {
            return false;
        }
    }
    return false;
}

static void check_answers(const uint8_t *data, size_t count_bytes) {
    struct ml_helper helper = {.lost = "", .pid = getpid(), .was_tried = true};
    size_t at = 0;
    helper.to_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    helper.from_fd = pipe_of(data, count_bytes);
    while (!helper.is_gone) {
        char answer[ANSWER_BYTES];
        uint8_t wanted = 0;
        const bool done = ml_helper_ask(&helper, "question", 8, "more", 4);
        const bool is_there = answer_at(data, count_bytes, &at, &wanted);
        REQUIRE(helper.is_gone == !is_there);
        REQUIRE(done == (is_there && wanted == 1));
        if (done && ml_helper_take(&helper, answer, sizeof(answer))) {
            REQUIRE(memcmp(answer, data + at, sizeof(answer)) == 0);
            at += sizeof(answer);
        } else if (done) {
            REQUIRE(helper.is_gone && count_bytes - at < sizeof(answer));
        }
    }
    REQUIRE(!ml_helper_ask(&helper, "question", 8, NULL, 0));
    (void)close(helper.to_fd);
    (void)close(helper.from_fd);
}

/* HEX.names, whole, for the user alone; and no more of them than one question each. */
static void check_folder(size_t files_max) {
    DIR *entries = opendir(cache);
    const struct dirent *entry = NULL;
    size_t files = 0;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        struct stat status;
        if (entry->d_name[0] == '.') {
            REQUIRE(strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
            continue;
        }
        const size_t hex = strspn(entry->d_name, "0123456789abcdef");
        REQUIRE(hex > 0 && strcmp(entry->d_name + hex, ML_SYMBOL_CACHE_SUFFIX) == 0);
        REQUIRE(fstatat(dirfd(entries), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0);
        REQUIRE(S_ISREG(status.st_mode) && (status.st_mode & ~(mode_t)S_IFMT) == MODE_MAX);
        REQUIRE(unlinkat(dirfd(entries), entry->d_name, 0) == 0);
        files++;
    }
    REQUIRE(files <= files_max);
    if (entries != NULL) {
        (void)closedir(entries);
    }
    /* Nothing beside it. */
    REQUIRE(rmdir(cache) == 0 || files_max == 0 || entries == NULL);
    entries = opendir(folder);
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        REQUIRE(entry->d_name[0] == '.');
    }
    REQUIRE(entries != NULL && closedir(entries) == 0);
}

static void check_questions(const uint8_t *data, size_t count_bytes) {
    char answers[4096];
    int ends[2];
    const int questions_fd = pipe_of(data, count_bytes);
    REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    ml_cache_keeper_serve(questions_fd, ends[1], -1);
    const ssize_t count = read(ends[0], answers, sizeof(answers));
    for (ssize_t i = 0; i < count; i++) {
        REQUIRE(answers[i] == 0 || answers[i] == 1);
    }
    check_folder(count > 0 ? (size_t)count : 0);
    (void)close(questions_fd);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    if (folder[0] == '\0') {
        begin();
    }
    if (count_bytes > 0 && count_bytes < PIPE_BYTES) {
        if ((data[0] & 1) != 0) {
            check_questions(data + 1, count_bytes - 1);
        } else {
            check_answers(data + 1, count_bytes - 1);
        }
    }
    return 0;
}
