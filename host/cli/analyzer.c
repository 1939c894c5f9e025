#include "host/cli/analyzer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/size.h"
#include "host/cli/commands.h"
#include "host/process/log.h"
#include "host/process/paths.h"

/* The child's side. */
__attribute__((noreturn)) static void become_analyzer(
    const char *path, const struct ml_inherited *inherited, char *const *argv, bool quiet
) {
    int said = STDERR_FILENO;
    if (inherited != NULL) {
        ml_inherited_restore(inherited);
    }
    if (quiet) {
        said = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(said, STDERR_FILENO);
    }
    (void)dup2(said, STDOUT_FILENO);
    ml_launcher_forget_loader(environ);
    (void)execv(path, argv);
    _exit(127);
}

/* An option whose value is the next word. */
static bool wants_a_word(const char *option) {
    static const char *const options[] = {"--pid", "--limit", "--dump"};
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (strcmp(option, options[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool ml_analyzer_dump_process(char **words) {
    static char path[PATH_MAX];
    size_t last = 0;
    uint64_t pid = 0;
    while (words[last + 1] != NULL) {
        last++;
    }
    if (strcmp(words[0], "suspects") != 0 || last == 0 || wants_a_word(words[last - 1]) ||
        !ml_count_read(words[last], INT32_MAX, &pid) || pid == 0 ||
        access(words[last], F_OK) == 0) {
        return true;
    }
    if (!ml_commands_dump_process((uint32_t)pid, path)) {
        ml_say_error(
            "there is no dump of process %s; 'memlog ps' lists what is recorded", words[last]
        );
        return false;
    }
    words[last] = path;
    return true;
}

int ml_analyzer_run(const struct ml_inherited *inherited, const char *const *words, bool quiet) {
    static char name[] = "memlog";
    struct ml_error_message error = {.text = ""};
    char path[PATH_MAX];
    char *argv[ML_ANALYZER_WORDS_MAX + 2] = {name};
    for (size_t i = 0; i < ML_ANALYZER_WORDS_MAX && words[i] != NULL; i++) {
        argv[i + 1] = (char *)(uintptr_t)words[i]; /* exec changes none of them */
    }
    if (ml_paths_find(ML_ANALYZER_FILE, path, &error) != ML_OK) {
        ml_say_error("%s", error.text);
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0) {
        become_analyzer(path, inherited, argv, quiet);
    }
    int status = 0;
    pid_t ended = -1;
    do {
        ended = pid > 0 ? waitpid(pid, &status, 0) : -1;
    } while (ended < 0 && pid > 0 && errno == EINTR);
    return ended == pid && pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
