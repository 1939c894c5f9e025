/* memlog-tracer: puts memlog into a process that runs already, or takes it back. Room: tracer.
 * Context: a program of its own, one process for one piece of work; the host starts it.
 *
 * One rule: it dies without harm. */
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tracer/attachment.h"
#include "tracer/host_link.h"

static const char usage[] =
    "Usage: memlog-tracer attach PID START_TIME [--allocators=NAME=PREFIX,...]\n"
    "                     [--library=PATH --socket=PATH]\n"
    "       memlog-tracer detach PID START_TIME\n"
    "       memlog-tracer repair PID START_TIME\n"
    "\n"
    "The part of memlog that puts it into running processes. memlog attach and memlog start run "
    "it.\n";

/* Our own file beside this program. */
static bool find_client(char out_path[PATH_MAX]) {
    char self[PATH_MAX];
    const ssize_t count = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (count <= 0) {
        return false;
    }
    self[count] = '\0';
    const int length = snprintf(out_path, PATH_MAX, "%s/libmemlog-attached.so", dirname(self));
    return length > 0 && length < PATH_MAX;
}

/* The value of `--name=` in a word; NULL: it is another word. */
static const char *value_of(const char *word, const char *name) {
    const size_t bytes = strlen(name);
    return strncmp(word, name, bytes) == 0 ? word + bytes : NULL;
}

static bool read_option(const char *word, struct ml_attachment *out) {
    const struct {
        const char *name;
        const char **to;
    } options[] = {
        {"--allocators=", &out->allocators},
        {"--library=", &out->library},
        {"--socket=", &out->socket_path},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        const char *value = value_of(word, options[i].name);
        if (value != NULL) {
            *options[i].to = value;
            return true;
        }
    }
    return false;
}

static bool read_arguments(int count, char **words, struct ml_attachment *out) {
    char *end = NULL;
    if (count < 4) {
        return false;
    }
    const long pid = strtol(words[2], &end, 10);
    if (*end != '\0' || pid <= 0 || pid > INT_MAX) {
        return false;
    }
    out->pid = (pid_t)pid;
    out->start_ticks = strtoull(words[3], &end, 10);
    out->allocators = "";
    out->library = "";
    out->socket_path = "";
    bool known = *end == '\0';
    for (int i = 4; known && i < count; i++) {
        known = read_option(words[i], out);
    }
    return known;
}

int main(int count, char **words) {
    enum { FIRST_OF_ALL = -20 };
    char path[PATH_MAX];
    struct ml_attachment attachment = {.on_connection = ml_host_link_connected};
    const bool is_attach = count > 1 && strcmp(words[1], "attach") == 0;
    const bool is_detach =
        count > 1 && (strcmp(words[1], "detach") == 0 || strcmp(words[1], "repair") == 0);
    if ((!is_attach && !is_detach) || !read_arguments(count, words, &attachment)) {
        (void)fputs(usage, stderr);
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    /* A process stands still while it waits for a processor; root alone may be before others. */
    (void)setpriority(PRIO_PROCESS, 0, FIRST_OF_ALL);
    enum memlog_tracer_outcome outcome = MEMLOG_TRACER_OUTCOME_FAILED;
    if (!find_client(path) || !ml_client_image_read(path, &attachment.image, &attachment.error)) {
        ml_error_set(&attachment.error, "libmemlog-attached.so is not beside memlog-tracer");
    } else {
        outcome = is_attach ? ml_attach(&attachment) : ml_detach(&attachment);
    }
    attachment.traced.refused =
        ml_string_cut(attachment.refused, MEMLOG_TRACER_TRACED_REFUSED_LIMIT);
    ml_host_link_finished(attachment.pid, outcome, attachment.error.text, &attachment.traced);
    ml_client_image_free(&attachment.image);
    return outcome == MEMLOG_TRACER_OUTCOME_DONE ? 0 : 1;
}
