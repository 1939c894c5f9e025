/* The checks of `memlog doctor` for memlog itself and for this machine, which always run. Room:
 * host. Context: its own process. */
#include <errno.h>
#include <gnu/libc-version.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/printable.h"
#include "host/cli/doctor_internal.h"
#include "host/kernel/features.h"
#include "host/process/paths.h"
#include "host/process/self_test.h"
#include "host/sockets/pipe_budget.h"
#include "host/sockets/socket_directory.h"

/* The first glibc with _dl_find_object, by which the client finds the module of a frame. */
enum { GLIBC_MAJOR = 2, GLIBC_MINOR = 35 };

/* Each process takes four descriptors; with fewer than these a large tree runs out of them. */
enum { DESCRIPTORS_FEW = 1024 };

enum { ADVICE_BYTES = 1024 };

void ml_doctor_find(
    struct ml_findings *findings,
    enum ml_doctor_verdict verdict,
    const char *what,
    const char *format,
    ...
) {
    static const char *const words[] = {"ok", "note", "FAIL"};
    static const char *const json_words[] = {"ok", "note", "fail"};
    char text[ADVICE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    findings->failed = findings->failed || verdict == ML_DOCTOR_FAIL;
    if (findings->is_json) {
        struct ml_json *json = &findings->json;
        ml_json_line(json);
        ml_json_open(json, '{');
        ml_json_string_member(json, "check", what);
        ml_json_string_member(json, "verdict", json_words[verdict]);
        ml_json_string_member(json, "text", text);
        ml_json_close(json, '}');
    } else {
        (void)printf("  %-4s  %-12s  ", words[verdict], what);
        ml_printable_put_text(stdout, text);
        (void)putchar('\n');
    }
}

void ml_doctor_parts(struct ml_findings *findings) {
    static const char *const files[] = {ML_PRELOAD_FILE, ML_SERVICE_FILE, ML_ANALYZER_FILE};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct ml_error_message error = {.text = ""};
        char path[PATH_MAX];
        if (ml_paths_find(files[i], path, &error) != ML_OK) {
            ml_doctor_find(findings, ML_DOCTOR_FAIL, "parts", "%s", error.text);
        } else if (access(path, R_OK) != 0) {
            ml_doctor_find(findings, ML_DOCTOR_FAIL, "parts", "%s: %s", path, strerror(errno));
        } else {
            ml_doctor_find(findings, ML_DOCTOR_OK, "parts", "%s", path);
        }
    }
}

void ml_doctor_system(struct ml_findings *findings) {
    struct utsname names = {.release = "?"};
    int major = 0;
    int minor = 0;
    (void)uname(&names);
    const char *glibc = gnu_get_libc_version();
    const bool known = sscanf(glibc, "%d.%d", &major, &minor) == 2;
    const bool enough =
        known && (major > GLIBC_MAJOR || (major == GLIBC_MAJOR && minor >= GLIBC_MINOR));
    ml_doctor_find(
        findings,
        enough ? ML_DOCTOR_OK : ML_DOCTOR_FAIL,
        "system",
        "Linux %s, %s, glibc %s%s",
        names.release,
        names.machine,
        glibc,
        enough ? "" : "; memlog needs 2.35 or later"
    );
}

void ml_doctor_kernel(struct ml_findings *findings) {
    size_t count = 0;
    bool is_whole = true;
    const struct ml_kernel_feature *features = ml_kernel_features(&count);
    for (size_t i = 0; i < count; i++) {
        if (!features[i].is_there()) {
            is_whole = false;
            ml_doctor_find(
                findings,
                features[i].is_needed ? ML_DOCTOR_FAIL : ML_DOCTOR_NOTE,
                "kernel",
                "no %s (Linux %s, or a filter forbids it): %s",
                features[i].name,
                features[i].since,
                features[i].without
            );
        }
    }
    if (is_whole) {
        ml_doctor_find(findings, ML_DOCTOR_OK, "kernel", "it has all that memlog uses");
    }
}

void ml_doctor_limits(struct ml_findings *findings) {
    struct rlimit limit = {.rlim_max = 0};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        const bool few = limit.rlim_max < DESCRIPTORS_FEW;
        ml_doctor_find(
            findings,
            few ? ML_DOCTOR_NOTE : ML_DOCTOR_OK,
            "descriptors",
            "memlog may open %" PRIu64 " files%s",
            (uint64_t)limit.rlim_max,
            few ? ", four for each process: raise it (ulimit -Hn) for large trees" : ""
        );
    }
    struct ml_pipe_budget budget;
    const bool privileged = ml_pipe_privileged();
    ml_pipe_budget_init(
        &budget, ML_PIPE_QUOTA_FOLDER, getuid(), privileged, ml_socket_directory_others()
    );
    if (budget.limit_bytes == UINT64_MAX || privileged) {
        ml_doctor_find(findings, ML_DOCTOR_OK, "pipes", "no quota binds memlog's pipes");
    } else {
        ml_doctor_find(
            findings,
            budget.limit_bytes < ML_PIPE_LARGE_BYTES ? ML_DOCTOR_NOTE : ML_DOCTOR_OK,
            "pipes",
            "%" PRIu64 " KiB for all of them (half of your quota, pipe-user-pages-soft); beyond it "
            "they are small and wait more often",
            budget.limit_bytes / 1024
        );
    }
}

void ml_doctor_self_test(struct ml_findings *findings) {
    struct ml_self_test self_test;
    ml_self_test_run("--sandbox=strict", &self_test);
    const bool strict = self_test.recorded;
    if (strict) {
        ml_doctor_find(findings, ML_DOCTOR_OK, "sandbox", "the service runs in its whole sandbox");
    } else {
        ml_doctor_find(findings, ML_DOCTOR_NOTE, "sandbox", "not whole here: %s", self_test.said);
        ml_self_test_run("--sandbox=auto", &self_test);
    }
    if (self_test.recorded) {
        ml_doctor_find(findings, ML_DOCTOR_OK, "trial", "a run of memlog over itself was recorded");
    } else {
        ml_doctor_find(
            findings,
            ML_DOCTOR_FAIL,
            "trial",
            "a run of memlog over itself left no dump: %s",
            self_test.said
        );
    }
}

struct ml_never_list ml_doctor_never(struct ml_findings *findings) {
    struct ml_error_message error = {.text = ""};
    struct ml_never_list list;
    if (ml_never_list_load(&list, ML_NEVER_LIST_FOLDER, ML_NEVER_LIST_FILE, 0, &error) != ML_OK) {
        ml_doctor_find(findings, ML_DOCTOR_FAIL, "never", "%s", error.text);
    } else if (list.path[0] == '\0') {
        ml_doctor_find(
            findings,
            ML_DOCTOR_OK,
            "never",
            "this machine forbids no program (there is no " ML_NEVER_LIST_FOLDER
            "/" ML_NEVER_LIST_FILE ")"
        );
    } else {
        ml_doctor_find(
            findings,
            ML_DOCTOR_OK,
            "never",
            "%s forbids what matches its %zu patterns",
            list.path,
            ml_never_list_count(&list)
        );
    }
    return list;
}
