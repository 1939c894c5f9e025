/* Runs a program as an older kernel would: system calls that the rules name are not there.
 *
 *   lacking RULE... -- PROGRAM [ARGS...]
 *
 * A rule is CALL[@ARGUMENT=VALUE]...[:ERROR]. The call, by name or number, fails with ERROR (ENOSYS
 * if none is given), where its arguments have those values. `madvise@2=18:EINVAL` is a kernel
 * without MADV_WIPEONFORK. A value is decimal or 0x..., and `ARGUMENT&MASK=VALUE` looks at some
 * bits alone. Ends with 99 where a rule is wrong or a filter cannot be set. */
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CANNOT = 99, RULE_BYTES = 256, ARGUMENTS_MAX = 6 };

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

int main(int count, char **words) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int at = 1;
    if (filter == NULL) {
        die("seccomp", "no filter");
    }
    for (; at < count && strcmp(words[at], "--") != 0; at++) {
        add_rule(filter, words[at]);
    }
    if (at + 1 >= count) {
        die("usage", "lacking RULE... -- PROGRAM [ARGS...]");
    }
    /* Root keeps its setuid programs. Everybody else sets a filter with no_new_privs alone. */
    (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, geteuid() != 0);
    const int result = seccomp_load(filter);
    if (result != 0) {
        die("seccomp", strerror(-result));
    }
    seccomp_release(filter);
    (void)execvp(words[at + 1], words + at + 1);
    die(words[at + 1], strerror(errno));
}
