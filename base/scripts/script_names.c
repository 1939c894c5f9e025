#include "base/scripts/script_names.h"

#include <stdlib.h>
#include <string.h>

static const struct ml_script_names known[] = {
    {"node",
     "JavaScript",
     "node --perf-basic-prof --interpreted-frames-native-stack",
     "--perf-basic-prof"},
    {"java",
     "Java",
     "java -XX:+PreserveFramePointer and jcmd PID Compiler.perfmap (Java 17 or later)",
     NULL},
    {"ruby", "Ruby", "ruby --yjit-perf (Ruby 3.3 or later)", "--yjit-perf"},
    {"beam", "Erlang", "erl +JPperf true (OTP 24 or later)", "+JPperf"},
    {"dotnet", "C#", "DOTNET_PerfMapEnabled=1", NULL},
};

/* Python, by what is known of its version. */
static const struct ml_script_names python_3_11 = {
    "python", "Python", "memlog run --frames=python", NULL};
static const struct ml_script_names python_read = {
    "python", "Python", "memlog run --frames=python, or python -X perf,", "perf"};
static const struct ml_script_names python_unread = {
    "python", "Python", "python -X perf (--frames=python does not read this one)", "perf"};
static const struct ml_script_names python_any = {
    "python",
    "Python",
    "memlog run --frames=python (Python " ML_SCRIPT_NAMES_READ
    "), or python -X perf (3.12 or later),",
    "perf"};

enum { FIRST_READ_MINOR = 11, MINORS_READ = 1 << 11 | 1 << 13 | 1 << 14, MINORS_MOST = 31 };

enum python {
    PYTHON_NONE,
    PYTHON_ANY, /* its name has no version */
    PYTHON_OLD, /* nothing names its functions */
    PYTHON_3_11,
    PYTHON_READ,
    PYTHON_UNREAD
};

/* "python3.14t", "python3.14-nogil": the interpreter has no lock, which the reading relies on. */
static bool is_free_threaded(const char *behind_version) {
    static const char nogil[] = "-nogil";

    return *behind_version == 't' || strncmp(behind_version, nogil, sizeof nogil - 1) == 0;
}

static enum python python_of(const char *name) {
    static const char begin[] = "python";
    const char *version = name + sizeof begin - 1;
    char *end = NULL;

    if (strncmp(name, begin, sizeof begin - 1) != 0 || strchr("0123456789.-", *version) == NULL) {
        return PYTHON_NONE;
    }
    if (*version == '2') {
        return PYTHON_OLD;
    }
    if (strncmp(version, "3.", 2) != 0 || version[2] < '0' || version[2] > '9') {
        return PYTHON_ANY;
    }
    const long minor = strtol(version + 2, &end, 10);
    if (minor < FIRST_READ_MINOR) {
        return PYTHON_OLD;
    }
    if (minor > MINORS_MOST || (MINORS_READ >> minor & 1) == 0 || is_free_threaded(end)) {
        return PYTHON_UNREAD;
    }
    return minor == FIRST_READ_MINOR ? PYTHON_3_11 : PYTHON_READ;
}

static const char *name_of(const char *executable) {
    const char *slash = strrchr(executable, '/');

    return slash != NULL ? slash + 1 : executable;
}

const char *ml_script_names_unread_python(const char *executable) {
    const enum python python = python_of(name_of(executable));

    return python == PYTHON_OLD      ? "run it by one of those"
           : python == PYTHON_UNREAD ? "python -X perf names them"
                                     : NULL;
}

const struct ml_script_names *ml_script_names_of(const char *executable) {
    static const struct ml_script_names *const pythons[] = {
        [PYTHON_ANY] = &python_any,
        [PYTHON_OLD] = NULL,
        [PYTHON_3_11] = &python_3_11,
        [PYTHON_READ] = &python_read,
        [PYTHON_UNREAD] = &python_unread,
    };
    const char *name = name_of(executable);
    const enum python python = python_of(name);

    if (python != PYTHON_NONE) {
        return pythons[python];
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const size_t count = strlen(known[i].program);
        /* A version may follow: "node20", "ruby3.3", "beam.smp"; not "nodemon", "javac". */
        if (strncmp(name, known[i].program, count) == 0 &&
            strchr("0123456789.-", name[count]) != NULL) {
            return &known[i];
        }
    }
    return NULL;
}

bool ml_script_names_asked(const struct ml_script_names *names, const char *argument) {
    static const char option[] = "-X"; /* of Python, which takes the word with it or apart */

    return names->word != NULL && (strncmp(argument, names->word, strlen(names->word)) == 0 ||
                                   (strncmp(argument, option, sizeof option - 1) == 0 &&
                                    strcmp(argument + sizeof option - 1, names->word) == 0));
}
