#include "host/cli/summary.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/shell_word.h"
#include "host/process/paths.h"

/* Write the report of the five largest stacks to stderr. False: the analyzer failed. */
static bool
report(const char *analyzer_path, const struct ml_inherited *inherited, const char *dump_path) {
    pid_t pid = fork();
    if (pid < 0) {
        return false;
    }
    if (pid == 0) {
        ml_inherited_restore(inherited);
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
        ml_launcher_forget_loader(environ);
        (void)execl(analyzer_path, "memlog", "report", "--summary", dump_path, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return false;
        }
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The command by which a person can start memlog again from the current folder. */
static const char *own_name(char out_path[PATH_MAX]) {
    ssize_t count = readlink("/proc/self/exe", out_path, PATH_MAX - 1);
    if (count <= 0) {
        return "memlog";
    }
    out_path[count] = '\0';
    char folder[PATH_MAX];
    size_t folder_count = getcwd(folder, sizeof(folder)) != NULL ? strlen(folder) : 0;
    if (folder_count > 1 && strncmp(out_path, folder, folder_count) == 0 &&
        out_path[folder_count] == '/') {
        /* Make "./memlog" in place: the dot overwrites the byte before the slash. */
        char *relative = out_path + folder_count + 1;
        if (strchr(relative, '/') == NULL) {
            relative -= 2;
            relative[0] = '.';
        }
        return relative;
    }
    return strncmp(out_path, "/usr/", 5) == 0 ? "memlog" : out_path;
}

void ml_summary(
    const struct ml_log *log, const struct ml_inherited *inherited, const char *dump_path
) {
    if (log->quiet) {
        return;
    }
    struct ml_error_message error = {.text = ""};
    char analyzer_path[PATH_MAX];
    if (ml_paths_find(ML_ANALYZER_FILE, analyzer_path, &error) != ML_OK) {
        ml_say(log, "%s: no summary", error.text);
    } else if (!report(analyzer_path, inherited, dump_path)) {
        ml_say(log, "memlog-analyzer could not make a summary of %s", dump_path);
    }
    char path[PATH_MAX];
    char memlog[PATH_MAX];
    char dump[PATH_MAX];
    if (ml_shell_word(own_name(path), memlog, sizeof(memlog)) &&
        ml_shell_word(dump_path, dump, sizeof(dump))) {
        ml_say(log, "next: %s report %s", memlog, dump);
    }
}
