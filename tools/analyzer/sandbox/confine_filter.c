/* The sandbox itself: Landlock for files, seccomp from the table that base/seccomp/generate.py
 * makes of tools/analyzer/sandbox/policy. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/seccomp/policy.h"
#include "tools/analyzer/sandbox/confine_filter.h"
#include "tools/analyzer/sandbox/confine_policy.h"

/* At the end AddressSanitizer's leak check traces this process from another one. */
#ifdef __SANITIZE_ADDRESS__
enum { CONFINE_CALLS = 0 };
#else
enum { CONFINE_CALLS = 1 };
#endif

/* All rights that change the file system in Landlock's first version. Later versions add more. */
static const uint64_t writing =
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
    LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_EXECUTE;

/* `convert` writes a new file, then renames it over the old one or removes it. */
static const uint64_t writing_output =
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG;

static void permit_folder_of(int ruleset_fd, const char *path) {
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX] = ".";
    struct landlock_path_beneath_attr rule = {.allowed_access = writing_output, .parent_fd = -1};

    if (slash) {
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    }
    rule.parent_fd = open(folder, O_PATH | O_CLOEXEC | O_DIRECTORY);
    if (rule.parent_fd >= 0) {
        syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
        close(rule.parent_fd);
    }
}

static void confine_files(const char *output_path, const char *second_path) {
    const struct landlock_ruleset_attr attributes = {.handled_access_fs = writing};
    int ruleset_fd = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);

    if (ruleset_fd < 0) {
        return;
    }
    if (output_path) {
        permit_folder_of(ruleset_fd, output_path);
    }
    if (second_path) {
        permit_folder_of(ruleset_fd, second_path);
    }
    syscall(SYS_landlock_restrict_self, ruleset_fd, 0);
    close(ruleset_fd);
}

/* Which lines count beside those of always.policy. */
enum files { FILES_READ, FILES_WRITE, FILES_NONE };

struct choice {
    enum files files;
    uint32_t deadly_line;
};

static bool counts(enum files files, uint32_t file) {
    return file == ML_CONFINE_ALWAYS || (files == FILES_READ && file == ML_CONFINE_READING) ||
           (files == FILES_WRITE && file == ML_CONFINE_TO_WRITE);
}

/* Lines of files that do not count are refused as what stands in none. */
static uint32_t action(const void *context, const struct ml_seccomp_line *line) {
    const struct choice *choice = context;

    if (!counts(choice->files, line->line / ML_SECCOMP_FILE_LINES)) {
        return SCMP_ACT_ERRNO(EPERM);
    }
    return line->line == choice->deadly_line ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ALLOW;
}

static void confine_calls(enum files files, uint32_t deadly_line) {
    const struct choice chosen = {.files = files, .deadly_line = deadly_line};
    const struct ml_seccomp_choice choice = {
        .refused = SCMP_ACT_ERRNO(EPERM), .action = action, .context = &chosen};

    if (CONFINE_CALLS) {
        (void)ml_seccomp_load(&ml_analyzer_policy, &choice);
    }
}

void ml_confine_but(const char *output_path, const char *second_path, uint32_t deadly_line) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return;
    }
    confine_files(output_path, second_path);
    confine_calls(output_path || second_path ? FILES_WRITE : FILES_READ, deadly_line);
}

void ml_confine_closed_but(uint32_t deadly_line) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return;
    }
    confine_files(NULL, NULL);
    confine_calls(FILES_NONE, deadly_line);
}
