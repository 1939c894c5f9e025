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
    {"python3.11", "Python", "memlog run --frames=python", NULL},
    {"python",
     "Python",
     "python -X perf (of Python 3.12 or later, which --frames=python does not read)",
     "perf"},
    {"ruby", "Ruby", "ruby --yjit-perf (Ruby 3.3 or later)", "--yjit-perf"},
    {"beam", "Erlang", "erl +JPperf true (OTP 24 or later)", "+JPperf"},
    {"dotnet", "C#", "DOTNET_PerfMapEnabled=1", NULL},
};

/* The version that --frames=python reads, the first that has names at all. */
enum { READ_MINOR = 11 };

/* The 11 of "python3.11"; 0 of "python2.7"; -1: it is no Python, or of any version. */
static long python_minor(const char *name) {
    static const char begin[] = "python3.";
    const size_t count = sizeof begin - 1;

    if (strncmp(name, "python2", sizeof "python2" - 1) == 0) {
        return 0;
    }
    return strncmp(name, begin, count) == 0 && name[count] >= '0' && name[count] <= '9'
               ? strtol(name + count, NULL, 10)
               : -1;
}

/* "python3.10": nothing names its functions. "python3" may be any. */
static bool is_old_python(const char *name) {
    const long minor = python_minor(name);

    return minor >= 0 && minor < READ_MINOR;
}

static const char *name_of(const char *executable) {
    const char *slash = strrchr(executable, '/');

    return slash != NULL ? slash + 1 : executable;
}

const char *ml_script_names_unread_python(const char *executable) {
    const long minor = python_minor(name_of(executable));

    if (minor < 0 || minor == READ_MINOR) {
        return NULL;
    }
    return minor < READ_MINOR ? "run it by python3.11" : "python -X perf names them";
}

const struct ml_script_names *ml_script_names_of(const char *executable) {
    const char *name = name_of(executable);

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const size_t count = strlen(known[i].program);
        /* A version may follow: "node20", "ruby3.3", "beam.smp"; not "nodemon", "javac". */
        if (strncmp(name, known[i].program, count) == 0 &&
            strchr("0123456789.-", name[count]) != NULL && !is_old_python(name)) {
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
