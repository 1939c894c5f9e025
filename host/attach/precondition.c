#include "host/attach/precondition.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_message.h"
#include "host/process/image.h"
#include "host/process/info.h"
#include "host/process/paths.h"

static const char ours_text[] = "it is a part of memlog itself";
static const char another_text[] = "another memlog has it: a process has one profiler at a time; "
                                   "where that one has ended, start the program again";
static const char narrow_text[] = "it is a 32-bit program, which memlog cannot record";

bool ml_attach_is_memlog(pid_t pid) {
    static const char *const files[] = {
        "memlog", ML_SERVICE_FILE, ML_ANALYZER_FILE, ML_TRACER_FILE};
    struct ml_error_message error = {.text = ""};
    char executable[PATH_MAX];
    char path[PATH_MAX];
    bool is_one = pid == getpid();
    ml_process_executable(pid, executable, sizeof(executable));
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && !is_one && executable[0] != '\0';
         i++) {
        is_one = ml_paths_find(files[i], path, &error) == ML_OK && strcmp(path, executable) == 0;
    }
    return is_one;
}

void ml_attach_why_not(pid_t pid, char out_text[ML_ATTACHABLE_TEXT_BYTES]) {
    ml_attachable_why_not(pid, out_text);
    const char *why = "";
    if (out_text[0] == '\0' && ml_attach_is_memlog(pid)) {
        why = ours_text;
    } else if (out_text[0] == '\0' && ml_process_maps(pid, ML_PRELOAD_FILE)) {
        why = another_text;
    } else if (out_text[0] == '\0' && ml_image_peek(pid) == ML_IMAGE_32_BIT) {
        why = narrow_text;
    }
    if (why[0] != '\0') {
        (void)snprintf(out_text, ML_ATTACHABLE_TEXT_BYTES, "%s", why);
    }
}

static bool is_own_user(pid_t pid) {
    char path[64];
    struct stat folder;
    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return stat(path, &folder) == 0 && folder.st_uid == geteuid();
}

/* A command line of another program than the asker's may hold the expression, too: that of the
 * shell which runs it. */
static bool is_asker(pid_t pid, pid_t asker) {
    enum { ANCESTORS_MAX = 256 };
    for (int i = 0; i < ANCESTORS_MAX && asker > 0; i++) {
        if (asker == pid) {
            return true;
        }
        asker = ml_process_parent(asker);
    }
    return false;
}

static bool has_name(const struct ml_patterns *wanted, pid_t pid) {
    char name[ML_PROCESS_NAME_BYTES];
    struct ml_command_line line;
    ml_process_name(pid, name);
    bool matches = ml_patterns_match(wanted, name) >= 0;
    /* Threads of the kernel have no command line. */
    if (ml_process_command_line(pid, &line) != ML_OK) {
        return false;
    }
    matches = matches || ml_patterns_match(wanted, line.joined) >= 0;
    ml_command_line_fini(&line);
    return matches;
}

size_t
ml_attach_find(const struct ml_patterns *name, pid_t asker, pid_t *out_pids, size_t capacity) {
    DIR *proc = opendir("/proc");
    size_t count = 0;
    if (proc == NULL) {
        return 0;
    }
    for (const struct dirent *entry = readdir(proc); entry != NULL; entry = readdir(proc)) {
        const pid_t pid = (pid_t)atol(entry->d_name); /* 0 for the entries that are no processes */
        if (pid <= 0 || !is_own_user(pid) || is_asker(pid, asker) || !has_name(name, pid) ||
            ml_attach_is_memlog(pid) || ml_process_maps(pid, ML_PRELOAD_FILE)) {
            continue;
        }
        if (count < capacity) {
            out_pids[count] = pid;
        }
        count++;
    }
    (void)closedir(proc);
    return count;
}
