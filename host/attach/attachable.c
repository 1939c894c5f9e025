#include "host/attach/attachable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/process/info.h"

/* Room for a whole /proc/PID/status, which has some 60 lines. */
enum { STATUS_BYTES = 16384 };

/* As in the kernel's headers: PF_KTHREAD, and bits of capabilities. */
enum { KERNEL_THREAD_FLAG = 0x00200000, CAPABILITY_PTRACE = 19, CAPABILITY_ADMIN = 21 };

static bool read_text(const char *path, char *out_text, size_t size_bytes) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t count = 0;
    ssize_t got = fd >= 0 ? 1 : -1;
    while (got > 0 && count + 1 < size_bytes) {
        got = read(fd, out_text + count, size_bytes - 1 - count);
        count += got > 0 ? (size_t)got : 0;
    }
    out_text[count] = '\0';
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

/* What stands behind a key of the file; NULL: it has no such line. */
static const char *value_of(const char *status, const char *key) {
    const size_t count = strlen(key);
    for (const char *line = status; line != NULL && *line != '\0';) {
        if (strncmp(line, key, count) == 0 && line[count] == ':') {
            return line + count + 1;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return NULL;
}

static unsigned long long number_of(const char *status, const char *key, int base) {
    const char *value = value_of(status, key);
    return value != NULL ? strtoull(value, NULL, base) : 0;
}

/* Field 9 of /proc/PID/stat, counted behind the name: state is field 3. */
static bool is_kernel_thread(const char *stat) {
    const char *behind = strrchr(stat, ')');
    unsigned flags = 0;
    return behind != NULL && sscanf(behind + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
           (flags & KERNEL_THREAD_FLAG) != 0;
}

void ml_attachable_parse(struct ml_attachable_facts *facts, const char *status, const char *stat) {
    const struct ml_process_facts process = ml_process_facts_parse(stat);
    facts->state = process.state;
    facts->has_ended = process.has_ended;
    facts->is_kernel = is_kernel_thread(stat);
    facts->process = (pid_t)number_of(status, "Tgid", 10);
    facts->tracer = (pid_t)number_of(status, "TracerPid", 10);
    facts->seccomp = (unsigned)number_of(status, "Seccomp", 10);
    const char *uids = value_of(status, "Uid");
    if (uids != NULL) {
        (void)sscanf(uids, "%u %u %u", &facts->uids[0], &facts->uids[1], &facts->uids[2]);
    }
}

void ml_attachable_parse_own(struct ml_attachable_facts *facts, const char *status) {
    const unsigned long long capabilities = number_of(status, "CapEff", 16);
    facts->may_trace_all = (capabilities >> CAPABILITY_PTRACE & 1) != 0;
    facts->may_read_filters = (capabilities >> CAPABILITY_ADMIN & 1) != 0;
}

/* One of memlog's has a process for moments, and ours waits for its turn. */
static bool is_tracer_of_memlog(pid_t pid) {
    char name[ML_PROCESS_NAME_BYTES] = "";
    ml_process_name(pid, name);
    return strcmp(name, "memlog-tracer") == 0;
}

struct ml_attachable_facts ml_attachable_read(pid_t pid) {
    struct ml_attachable_facts facts = {.is_dumpable = true, .own_uid = geteuid()};
    char status[STATUS_BYTES];
    char text[STATUS_BYTES];
    char path[64];
    struct stat file;
    (void)read_text("/proc/self/status", status, sizeof(status));
    ml_attachable_parse_own(&facts, status);
    if (read_text("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text))) {
        facts.yama = (unsigned)strtoul(text, NULL, 10);
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    (void)read_text(path, status, sizeof(status));
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    (void)read_text(path, text, sizeof(text));
    ml_attachable_parse(&facts, status, text);
    facts.tracer = facts.tracer != 0 && is_tracer_of_memlog(facts.tracer) ? 0 : facts.tracer;
    /* The kernel gives the files of a process that is not dumpable to root; its folder it does not.
     */
    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    facts.is_dumpable = stat(path, &file) != 0 || file.st_uid == facts.uids[1];
    return facts;
}

/* As __ptrace_may_access() in the kernel: a set-user-id program keeps another user's. */
static bool is_ours(const struct ml_attachable_facts *facts) {
    return facts->uids[0] == facts->own_uid && facts->uids[1] == facts->own_uid &&
           facts->uids[2] == facts->own_uid;
}

enum ml_attachable ml_attachable_judge(const struct ml_attachable_facts *facts, pid_t pid) {
    enum { YAMA_ADMIN = 2, YAMA_NOBODY = 3 };
    if (facts->state == 0 || facts->state == 'X') {
        return ML_ATTACHABLE_GONE;
    }
    if (facts->is_kernel) {
        return ML_ATTACHABLE_KERNEL;
    }
    if (facts->state == 'Z') {
        return facts->has_ended ? ML_ATTACHABLE_ZOMBIE : ML_ATTACHABLE_HEADLESS;
    }
    if (facts->process != 0 && facts->process != pid) {
        return ML_ATTACHABLE_THREAD;
    }
    if (!facts->may_trace_all && !is_ours(facts)) {
        return ML_ATTACHABLE_OTHER_USER;
    }
    if (facts->tracer != 0) {
        return ML_ATTACHABLE_TRACED;
    }
    if (!facts->may_trace_all && !facts->is_dumpable) {
        return ML_ATTACHABLE_NOT_DUMPABLE;
    }
    if (facts->yama >= YAMA_NOBODY || (facts->yama > 0 && !facts->may_trace_all)) {
        return ML_ATTACHABLE_YAMA;
    }
    return facts->seccomp != 0 && !facts->may_read_filters ? ML_ATTACHABLE_SECCOMP : ML_ATTACHABLE;
}

static const char secret_text[] = "it forbids to be looked at, as programs with secrets and with "
                                  "other rights than their user's do: attach as root";
static const char headless_text[] =
    "its first thread has ended, and the kernel shows nobody the memory of what runs on: start its "
    "program by 'memlog run'";
static const char seccomp_text[] = "a filter watches its system calls (seccomp), and might end it "
                                   "for memlog's: attach as root, who can read it, or start its "
                                   "program by 'memlog run'";
static const char children_text[] = "a process may trace its own children alone: as root 'sysctl "
                                    "kernel.yama.ptrace_scope=0' permits it, or attach as root";
static const char root_text[] = "only root may trace: attach as root";
static const char nobody_text[] =
    "nobody may trace until the next boot: start its program by 'memlog run'";

void ml_attachable_text(
    enum ml_attachable why,
    const struct ml_attachable_facts *facts,
    char out_text[ML_ATTACHABLE_TEXT_BYTES]
) {
    static const char *const texts[ML_ATTACHABLE_COUNT] = {
        [ML_ATTACHABLE] = "",
        [ML_ATTACHABLE_GONE] = "there is no such process",
        [ML_ATTACHABLE_ZOMBIE] = "it has ended, and waits for its parent to take note",
        [ML_ATTACHABLE_HEADLESS] = headless_text,
        [ML_ATTACHABLE_KERNEL] = "it is a thread of the kernel: it has no memory of its own",
        [ML_ATTACHABLE_NOT_DUMPABLE] = secret_text,
        [ML_ATTACHABLE_SECCOMP] = seccomp_text,
    };
    char name[ML_PROCESS_NAME_BYTES] = "";
    out_text[0] = '\0';
    if (why == ML_ATTACHABLE_THREAD) {
        (void)snprintf(
            out_text,
            ML_ATTACHABLE_TEXT_BYTES,
            "it is a thread of process %d: name that one",
            (int)facts->process
        );
    } else if (why == ML_ATTACHABLE_OTHER_USER) {
        (void)snprintf(
            out_text,
            ML_ATTACHABLE_TEXT_BYTES,
            "it is another user's (%u): attach as that user, or as root",
            (unsigned)facts->uids[1]
        );
    } else if (why == ML_ATTACHABLE_TRACED) {
        ml_process_name(facts->tracer, name);
        (void)snprintf(
            out_text,
            ML_ATTACHABLE_TEXT_BYTES,
            "%s (%d) traces it already, and a process has one tracer: end that one first",
            name,
            (int)facts->tracer
        );
    } else if (why == ML_ATTACHABLE_YAMA) {
        static const char *const rules[] = {children_text, root_text, nobody_text};
        enum { RULES = sizeof(rules) / sizeof(rules[0]) };
        (void)snprintf(
            out_text,
            ML_ATTACHABLE_TEXT_BYTES,
            "this system forbids it (kernel.yama.ptrace_scope is %u): %s",
            facts->yama,
            rules[(facts->yama < RULES ? facts->yama : RULES) - 1]
        );
    } else if ((unsigned)why < ML_ATTACHABLE_COUNT) {
        (void)snprintf(out_text, ML_ATTACHABLE_TEXT_BYTES, "%s", texts[why]);
    }
}

void ml_attachable_why_not(pid_t pid, char out_text[ML_ATTACHABLE_TEXT_BYTES]) {
    const struct ml_attachable_facts facts = ml_attachable_read(pid);
    ml_attachable_text(ml_attachable_judge(&facts, pid), &facts, out_text);
}
