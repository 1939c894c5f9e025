/* The walls themselves: Landlock for files, seccomp from the table that service/policy/generate.py
 * makes of tools/policy. */
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

#include "tools/confine_policy.h"
#include "tools/confine_walls.h"

/* AddressSanitizer's leak check at the end is a process that traces this one. */
#ifdef __SANITIZE_ADDRESS__
enum { CONFINE_CALLS = 0 };
#else
enum { CONFINE_CALLS = 1 };
#endif

/* Everything that changes the file system, as of Landlock's first version; later ones add to it. */
static const uint64_t writing =
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
    LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_EXECUTE;

/* What convert does to its output: write a new file, rename it over the old one or remove it. */
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

static void confine_files(const char *output_path) {
    const struct landlock_ruleset_attr attributes = {.handled_access_fs = writing};
    int ruleset_fd = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);

    if (ruleset_fd < 0) {
        return;
    }
    if (output_path) {
        permit_folder_of(ruleset_fd, output_path);
    }
    syscall(SYS_landlock_restrict_self, ruleset_fd, 0);
    close(ruleset_fd);
}

static uint64_t value_of(const struct ml_confine_condition *condition) {
    return condition->value == ML_CONFINE_SELF ? (uint64_t)getpid() : condition->value;
}

static bool add(scmp_filter_ctx filter, const struct ml_confine_line *line, uint32_t action) {
    struct scmp_arg_cmp compared[ML_CONFINE_CONDITIONS_MAX];

    for (uint32_t i = 0; i < line->conditions_count; i++) {
        compared[i] = (struct scmp_arg_cmp
        ){.arg = line->conditions[i].argument,
          .op = SCMP_CMP_MASKED_EQ,
          .datum_a = line->conditions[i].mask,
          .datum_b = value_of(&line->conditions[i])};
    }
    return seccomp_rule_add_array(filter, action, line->number, line->conditions_count, compared) ==
           0;
}

/* Whether the line's file counts. */
static bool is_for(const struct ml_confine_line *line, bool writes) {
    const uint32_t file = line->line / ML_CONFINE_FILE_LINES;

    return file == ML_CONFINE_ALWAYS ||
           file == (uint32_t)(writes ? ML_CONFINE_TO_WRITE : ML_CONFINE_READING);
}

static void confine_calls(bool writes, uint32_t deadly_line) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    bool done = filter != NULL;

    done = done && seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) == 0;
    for (size_t i = 0; done && i < ml_confine_lines_count; i++) {
        const struct ml_confine_line *line = &ml_confine_lines[i];
        /* Negative: this architecture has no such call, so nobody can make it. */
        if (line->number >= 0 && is_for(line, writes)) {
            done =
                add(filter, line, line->line == deadly_line ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ALLOW
                );
        }
    }
    if (done) {
        (void)seccomp_load(filter);
    }
    seccomp_release(filter);
}

void ml_confine_but(const char *output_path, uint32_t deadly_line) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return;
    }
    confine_files(output_path);
    if (CONFINE_CALLS) {
        confine_calls(output_path != NULL, deadly_line);
    }
}
