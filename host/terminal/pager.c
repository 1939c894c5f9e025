#include "host/terminal/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/process/log.h"

enum { NOT_SHOWN = 1 }; /* as of stdout that cannot be written */

static const char *value_of(const char *key) {
    const char *value = getenv(key);
    return value != NULL ? value : "";
}

/* The pager's command line for the shell; NULL: none. */
static const char *chosen_pager(void) {
    const char *own = getenv("MEMLOG_PAGER");
    const char *pager = own != NULL ? own : getenv("PAGER");
    if (pager == NULL) {
        pager = "less";
    }
    return pager[0] == '\0' || strcmp(pager, "cat") == 0 ? NULL : pager;
}

/* What is no text, or goes to a file, needs none. */
static bool is_for_reading(char *const *words) {
    static const char *const commands[] = {
        "report", "diff", "timeline", "components", "expand", "list"};
    static const char *const others[] = {"--html", "--pprof", "--output", "-o", "--help", "-h"};
    bool is_text = false;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        is_text = is_text || strcmp(words[0], commands[i]) == 0;
    }
    for (size_t i = 1; is_text && words[i] != NULL; i++) {
        for (size_t j = 0; j < sizeof(others) / sizeof(others[0]); j++) {
            is_text = is_text && strncmp(words[i], others[j], strlen(others[j])) != 0;
        }
    }
    return is_text;
}

/* The analyzer writes into a pipe from now on, and is told of the terminal behind it. */
static void tell_of_terminal(void) {
    struct winsize size;
    char columns[16];
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        (void)snprintf(columns, sizeof(columns), "%u", size.ws_col);
        (void)setenv("COLUMNS", columns, 0);
    }
    (void)setenv("CLICOLOR_FORCE", "1", 0);
    (void)setenv("LESS", "FRX", 0); /* a short answer ends it at once, and stays on the screen */
}

static int wait_for(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return 0;
        }
    }
    return status;
}

/* Wait for both. A command whose reader has left in the middle has done what it was asked for. */
static int wait_for_both(pid_t command, pid_t pager, const char *words) {
    enum { CANNOT_BE_RUN = 126, NOT_FOUND = 127 }; /* the shell's exit codes */
    (void)signal(SIGINT, SIG_IGN);                 /* the pager's, which the same key reaches */
    (void)signal(SIGQUIT, SIG_IGN);
    const int status = wait_for(command);
    const int shown = wait_for(pager);
    if (WIFEXITED(shown) &&
        (WEXITSTATUS(shown) == CANNOT_BE_RUN || WEXITSTATUS(shown) == NOT_FOUND)) {
        ml_say_error("the pager '%s' cannot be run; MEMLOG_PAGER= shows the answer without", words);
        return NOT_SHOWN;
    }
    if (WIFSIGNALED(status)) {
        return WTERMSIG(status) == SIGPIPE ? 0 : 128 + WTERMSIG(status);
    }
    return WEXITSTATUS(status);
}

static pid_t start_pager(const char *pager, const int ends[2]) {
    const pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(ends[0], STDIN_FILENO);
        (void)execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* Without less there is no pager, and nobody is told: the answer comes as it did. */
static bool can_be_run(const char *pager) {
    static const char folders[] = "/usr/local/bin:/usr/bin:/bin";
    char path[4096];
    const char *set = getenv("PATH");
    const char *all = set != NULL ? set : folders;
    if (strcmp(pager, "less") != 0) {
        return true; /* the reader's own words: the shell says what is wrong with them */
    }
    for (const char *at = all; at[0] != '\0';) {
        const size_t count = strcspn(at, ":");
        (void)snprintf(path, sizeof(path), "%.*s/less", (int)count, at);
        if (access(path, X_OK) == 0) {
            return true;
        }
        at += count + (at[count] == ':');
    }
    return false;
}

int ml_pager_start(char *const *words) {
    const char *pager = chosen_pager();
    int ends[2];
    if (pager == NULL || !isatty(STDOUT_FILENO) || strcmp(value_of("TERM"), "dumb") == 0 ||
        !is_for_reading(words) || !can_be_run(pager) || pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    tell_of_terminal();
    const pid_t pager_pid = start_pager(pager, ends);
    const pid_t command = pager_pid > 0 ? fork() : -1;
    if (command == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        /* The pager draws on the terminal once the answer begins: no progress from then on. */
        (void)setenv("MEMLOG_PAGER_IN_USE", "1", 1);
        return -1;
    }
    (void)close(ends[0]);
    (void)close(ends[1]);
    if (command < 0) { /* no process: the pager sees the end of an empty answer */
        if (pager_pid > 0) {
            (void)wait_for(pager_pid);
        }
        return -1;
    }
    return wait_for_both(command, pager_pid, pager);
}
