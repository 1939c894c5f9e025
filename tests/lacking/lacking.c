/* Runs a program as an older kernel would: system calls that the rules name are not there.
 *
 *   lacking RULE... -- PROGRAM [ARGS...]
 *
 * A rule is CALL[@ARGUMENT=VALUE]...[:ERROR]. The call, by name or number, fails with ERROR (ENOSYS
 * if none is given), where its arguments have those values. `madvise@2=18:EINVAL` is a kernel
 * without MADV_WIPEONFORK. A value is decimal or 0x..., and `ARGUMENT&MASK=VALUE` looks at some
 * bits alone.
 *
 * A rule /NAME[:ERROR] is about files of /proc: whoever opens one whose path ends so hears ERROR
 * (ENOENT if none is given), as under AppArmor, or without the kernel's option. A process beside
 * the program looks at its paths.
 *
 * Ends with 99 where a rule is wrong or a filter cannot be set. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT = 99, RULE_BYTES = 256, ARGUMENTS_MAX = 6, FILES_MAX = 8, PATH_BYTES = 512 };

/* Files that cannot be opened. */
struct file_rule {
    const char *name;
    int error;
};

static struct file_rule files[FILES_MAX];
static unsigned files_count;

__attribute__((noreturn)) static void die(const char *what, const char *why) {
    (void)fprintf(stderr, "lacking: %s: %s\n", what, why);
    exit(CANNOT);
}

static int error_of(const char *name) {
    static const struct {
        const char *name;
        int number;
    } errors[] = {
        {"EACCES", EACCES},
        {"EINVAL", EINVAL},
        {"ENOENT", ENOENT},
        {"ENOPROTOOPT", ENOPROTOOPT},
        {"ENOSYS", ENOSYS},
        {"EPERM", EPERM},
    };
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (strcmp(errors[i].name, name) == 0) {
            return errors[i].number;
        }
    }
    die(name, "no error that is known here");
}

/* "2=18" or "2&0xff=18". */
static struct scmp_arg_cmp argument_of(const char *text) {
    char *end = NULL;
    const unsigned long number = strtoul(text, &end, 10);
    const scmp_datum_t mask = *end == '&' ? strtoull(end + 1, &end, 0) : ~UINT64_C(0);
    if (number >= ARGUMENTS_MAX || *end != '=') {
        die(text, "not ARGUMENT=VALUE");
    }
    const scmp_datum_t value = strtoull(end + 1, &end, 0);
    if (*end != '\0') {
        die(text, "not ARGUMENT=VALUE");
    }
    return (struct scmp_arg_cmp
    ){.arg = (unsigned)number, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};
}

/* Calls that are younger than libseccomp have numbers alone. */
static int call_of(const char *text) {
    char *end = NULL;
    const long number = strtol(text, &end, 10);
    const int call = *end == '\0' && end != text ? (int)number : seccomp_syscall_resolve_name(text);
    if (call < 0) {
        die(text, "no such system call");
    }
    return call;
}

static void add_rule(scmp_filter_ctx filter, const char *rule) {
    char text[RULE_BYTES];
    struct scmp_arg_cmp arguments[ARGUMENTS_MAX];
    unsigned count = 0;
    if (snprintf(text, sizeof(text), "%s", rule) >= (int)sizeof(text)) {
        die(rule, "too long");
    }
    char *error = strchr(text, ':');
    if (error != NULL) {
        *error++ = '\0';
    }
    char *rest = text;
    const char *name = strsep(&rest, "@");
    while (rest != NULL) {
        if (count == ARGUMENTS_MAX) {
            die(rule, "too many arguments");
        }
        arguments[count++] = argument_of(strsep(&rest, "@"));
    }
    const uint32_t action = SCMP_ACT_ERRNO((unsigned)error_of(error != NULL ? error : "ENOSYS"));
    const int result = seccomp_rule_add_array(filter, action, call_of(name), count, arguments);
    if (result != 0) {
        die(rule, strerror(-result));
    }
}

static void add_file(const char *rule) {
    char *name = strdup(rule);
    char *error = name != NULL ? strchr(name, ':') : NULL;
    if (name == NULL || files_count == FILES_MAX) {
        die(rule, "no room");
    }
    if (error != NULL) {
        *error++ = '\0';
    }
    files[files_count++] =
        (struct file_rule){.name = name, .error = error != NULL ? error_of(error) : ENOENT};
}

/* The error of a path; 0: it may be opened. */
static int refused(const char *path) {
    const size_t count = strlen(path);
    for (unsigned i = 0; i < files_count && strncmp(path, "/proc/", 6) == 0; i++) {
        const size_t tail = strlen(files[i].name);
        if (count > tail && strcmp(path + count - tail, files[i].name) == 0) {
            return files[i].error;
        }
    }
    return 0;
}

static int error_for(const struct seccomp_notif *asked) {
    char memory[64];
    char path[PATH_BYTES];
    const uint64_t at = asked->data.args[asked->data.nr == SYS_open ? 0 : 1];
    (void)snprintf(memory, sizeof(memory), "/proc/%u/mem", asked->pid);
    const int fd = open(memory, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd >= 0 ? pread(fd, path, sizeof(path) - 1, (off_t)at) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    path[got > 0 ? got : 0] = '\0';
    return refused(path);
}

/* Until nobody with the filter is left. */
__attribute__((noreturn)) static void supervise(int listener) {
    struct seccomp_notif *asked = NULL;
    struct seccomp_notif_resp *answer = NULL;
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    const int nothing = open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        (void)dup2(nothing, fd);
    }
    if (seccomp_notify_alloc(&asked, &answer) != 0) {
        exit(CANNOT);
    }
    while (poll(&wait, 1, -1) >= 0 && (wait.revents & POLLHUP) == 0) {
        memset(asked, 0, sizeof(*asked));
        if (seccomp_notify_receive(listener, asked) == 0) {
            const int error = error_for(asked);
            *answer = (struct seccomp_notif_resp
            ){.id = asked->id,
              .error = -error,
              .flags = error == 0 ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0};
            (void)seccomp_notify_respond(listener, answer);
        }
    }
    exit(0);
}

/* One descriptor over a socket. */
union passing {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static struct msghdr message_of(union passing *passing, struct iovec *piece) {
    return (struct msghdr
    ){.msg_iov = piece,
      .msg_iovlen = 1,
      .msg_control = passing->bytes,
      .msg_controllen = sizeof(passing->bytes)};
}

/* Start who looks at paths, before there is a filter, and as nobody's child that the program could
 * meet. Returns where it waits for the listener. */
static int start_supervisor(void) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        die("socketpair", strerror(errno));
    }
    const pid_t between = fork();
    if (between == 0) {
        char byte = 0;
        int listener = -1;
        union passing passing = {.bytes = {0}};
        struct iovec piece = {.iov_base = &byte, .iov_len = 1};
        struct msghdr message = message_of(&passing, &piece);
        if (fork() != 0) {
            _exit(0);
        }
        (void)close(pair[1]);
        if (recvmsg(pair[0], &message, MSG_CMSG_CLOEXEC) != 1 || CMSG_FIRSTHDR(&message) == NULL) {
            exit(CANNOT);
        }
        memcpy(&listener, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(listener));
        supervise(listener);
    }
    (void)waitpid(between, NULL, 0);
    (void)close(pair[0]);
    return pair[1];
}

static void hand_over(int socket_fd, int listener) {
    char byte = 0;
    union passing passing = {.bytes = {0}};
    struct iovec piece = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = message_of(&passing, &piece);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr
    ){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(head), &listener, sizeof(listener));
    if (sendmsg(socket_fd, &message, 0) != 1) {
        die("sendmsg", strerror(errno));
    }
    (void)close(socket_fd);
    (void)close(listener);
}

int main(int count, char **words) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int at = 1;
    if (filter == NULL) {
        die("seccomp", "no filter");
    }
    for (; at < count && strcmp(words[at], "--") != 0; at++) {
        if (words[at][0] == '/') {
            add_file(words[at]);
        } else {
            add_rule(filter, words[at]);
        }
    }
    if (at + 1 >= count) {
        die("usage", "lacking RULE... -- PROGRAM [ARGS...]");
    }
    /* Root keeps its setuid programs. Everybody else sets a filter with no_new_privs alone. */
    (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, geteuid() != 0);
    const int opening[] = {SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(openat2)};
    for (size_t i = 0; files_count > 0 && i < sizeof(opening) / sizeof(opening[0]); i++) {
        (void)seccomp_rule_add(filter, SCMP_ACT_NOTIFY, opening[i], 0);
    }
    const int supervisor = files_count > 0 ? start_supervisor() : -1;
    const int result = seccomp_load(filter);
    if (result != 0) {
        die("seccomp", strerror(-result));
    }
    if (supervisor >= 0) {
        hand_over(supervisor, seccomp_notify_fd(filter));
    }
    seccomp_release(filter);
    (void)execvp(words[at + 1], words + at + 1);
    die(words[at + 1], strerror(errno));
}
