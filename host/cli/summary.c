#include "host/cli/summary.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/shell_word.h"
#include "host/cli/analyzer.h"

/* Write the report of the five largest stacks to stderr. False: the analyzer failed. */
static bool report(const struct ml_inherited *inherited, const char *dump_path) {
    const char *const words[] = {"report", "--summary", dump_path, NULL};
    return ml_analyzer_run(inherited, words, false) == 0;
}

/* In the archive bin/memlog has become this program (tools/dev/starter). */
static void name_the_starter(char *path) {
    static const char inside[] = "/lib/memlog/memlog", starter[] = "/bin/memlog";
    const size_t count = strlen(path);
    if (count > strlen(inside) && strcmp(path + count - strlen(inside), inside) == 0) {
        memcpy(path + count - strlen(inside), starter, sizeof(starter));
    }
}

/* The command by which a person can start memlog again from the current folder. */
static const char *own_name(char out_path[PATH_MAX]) {
    ssize_t count = readlink("/proc/self/exe", out_path, PATH_MAX - 1);
    if (count <= 0) {
        return "memlog";
    }
    out_path[count] = '\0';
    name_the_starter(out_path);
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
    if (!report(inherited, dump_path)) {
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
