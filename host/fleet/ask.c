#include "host/fleet/ask.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/printable.h"
#include "base/shell_word.h"
#include "base/suggest.h"
#include "host/process/log.h"

enum { PATH_BYTES = 6144, NUMBER_BYTES = 24, NAMES_MOST = 8, PREFIX_LEAST = 4 };

static const struct {
    const char *list; /* what is empty where there is nothing */
    void (*show)(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out);
} answers[ML_FLEET_QUESTIONS] = {
    [ML_FLEET_PROGRAMS] = {"programs", ml_fleet_show_programs},
    [ML_FLEET_BUILDS] = {"builds", ml_fleet_show_builds},
    [ML_FLEET_TOP] = {"stacks", ml_fleet_show_top},
    [ML_FLEET_FLAME] = {"nodes", ml_fleet_show_flame},
    [ML_FLEET_DIFF] = {NULL, ml_fleet_show_diff},
    [ML_FLEET_HOSTS] = {"hosts", ml_fleet_show_hosts},
    [ML_FLEET_REPORTS] = {"reports", ml_fleet_show_reports},
    [ML_FLEET_REPORT] = {"reports", ml_fleet_show_report},
};

/* ---- asking */

static uint64_t now_ms(void) {
    struct timespec now = {.tv_sec = 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool add_number(char path[PATH_BYTES], const char *name, uint64_t number) {
    char text[NUMBER_BYTES];
    (void)snprintf(text, sizeof(text), "%" PRIu64, number);
    return number == 0 || ml_fleet_path_add(path, PATH_BYTES, name, text);
}

/* A question of the collector's about a program. NULL: it failed, and stderr says why. */
static json_t *
ask_about(struct ml_fleet_client *client, const char *question, const char *program) {
    struct ml_error_message error = {.text = ""};
    char path[PATH_BYTES];
    const char *bytes = NULL;
    size_t count = 0;
    json_t *answer = NULL;
    (void)snprintf(path, sizeof(path), "/api/v1/fleet/%s", question);
    if (!ml_fleet_path_add(path, sizeof(path), "program", program) ||
        !add_number(path, "limit", ML_FLEET_LIMIT_MOST)) {
        ml_error_set(&error, "the program's name is too long");
    } else if (ml_fleet_client_ask(client, path, &bytes, &count, &error) == ML_OK) {
        answer = ml_fleet_answer_read(bytes, count, &error);
    }
    if (answer == NULL) {
        ml_say_error("%s", error.text);
    }
    return answer;
}

static bool path_of(const struct ml_fleet_asked *asked, char out_path[PATH_BYTES]) {
    const struct ml_fleet_options *options = asked->options;
    const uint64_t now = now_ms();
    const bool has_metric = options->question == ML_FLEET_TOP ||
                            options->question == ML_FLEET_FLAME ||
                            options->question == ML_FLEET_DIFF;
    /* The tree for people is cut by its lines. */
    const bool is_tree = options->question == ML_FLEET_FLAME && !options->json && !options->folded;
    (void)snprintf(out_path, PATH_BYTES, "/api/v1/fleet/%s", ml_fleet_questions[options->question]);
    const struct {
        const char *name, *value;
    } words[] = {
        {"program", options->program},
        {"build", asked->build},
        {"other", asked->other},
        {"host", options->host},
        {"stack", options->stack},
        {"guid", options->guid},
        {"metric", has_metric ? ml_fleet_metrics[options->metric] : NULL},
        {"control", options->control ? "1" : NULL},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (!ml_fleet_path_add(out_path, PATH_BYTES, words[i].name, words[i].value)) {
            return false;
        }
    }
    return add_number(out_path, "from_ms", ml_fleet_time_ms(options->from, now)) &&
           add_number(out_path, "until_ms", ml_fleet_time_ms(options->until, now)) &&
           add_number(out_path, "limit", is_tree ? 0 : options->limit);
}

/* ---- what does not exist */

/* "a, b, c and 4 more" of the members of a list. */
static void put_names(FILE *out, const json_t *answer, const char *list, const char *member) {
    const size_t count = ml_fleet_count(answer, list);
    for (size_t i = 0; i < count && i < NAMES_MOST; i++) {
        char name[ML_FLEET_NAME_BYTES];
        const json_t *one = ml_fleet_element(answer, list, i);
        const char *version = ml_fleet_text(one, "version");
        (void
        )fprintf(out, "%s%s", i > 0 ? ", " : "", ml_fleet_name(ml_fleet_text(one, member), name));
        if (version[0] != '\0') {
            (void)fprintf(out, " (%s)", ml_fleet_name(version, name));
        }
    }
    if (count > NAMES_MOST) {
        (void)fprintf(out, " and %zu more", count - NAMES_MOST);
    }
}

static const char *suggestion(const json_t *answer, const char *program) {
    const size_t count = ml_fleet_count(answer, "programs");
    const char **names = calloc(count + 1, sizeof(*names));
    for (size_t i = 0; names != NULL && i < count; i++) {
        names[i] = ml_fleet_text(ml_fleet_element(answer, "programs", i), "program");
    }
    const char *near = names != NULL ? ml_suggest(program, names, count) : NULL;
    free(names);
    return near;
}

/* Say that there is no such program, and which there are. */
static void say_no_program(const json_t *programs, const char *program) {
    char *text = NULL;
    size_t bytes = 0;
    char name[ML_FLEET_NAME_BYTES];
    char near_name[ML_FLEET_NAME_BYTES];
    FILE *out = open_memstream(&text, &bytes);
    const char *near = suggestion(programs, program);
    if (out == NULL) {
        return;
    }
    (void)fprintf(out, "no report is of a program '%s'", ml_fleet_name(program, name));
    if (near != NULL) {
        (void)fprintf(out, "; did you mean '%s'?", ml_fleet_name(near, near_name));
    } else if (ml_fleet_count(programs, "programs") > 0) {
        (void)fputs("; there are ", out);
        put_names(out, programs, "programs", "program");
    } else {
        (void)fputs("; none has come at all: 'memlog run --upload=URL' sends them", out);
    }
    if (fclose(out) == 0) {
        ml_say_error("%s", text);
    }
    free(text);
}

/* Whether the collector has that program. An exit code; 0: it has. */
static int find_program(struct ml_fleet_client *client, const char *program) {
    json_t *programs = ask_about(client, "programs", NULL);
    if (programs == NULL) {
        return ML_FLEET_EXIT_FAILED;
    }
    bool is_there = false;
    for (size_t i = 0; i < ml_fleet_count(programs, "programs"); i++) {
        const json_t *one = ml_fleet_element(programs, "programs", i);
        is_there = is_there || strcmp(ml_fleet_text(one, "program"), program) == 0;
    }
    if (!is_there) {
        say_no_program(programs, program);
    }
    json_decref(programs);
    return is_there ? 0 : ML_FLEET_EXIT_LACKING;
}

/* ---- which builds */

static void
say_build(const json_t *builds, const char *said, bool are_several, const char *program) {
    char *text = NULL;
    size_t bytes = 0;
    char names[2][ML_FLEET_NAME_BYTES];
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL) {
        return;
    }
    (void)fprintf(
        out,
        are_several ? "several builds of %s are called '%s'; it has "
                    : "%s has no build '%s'; it has ",
        ml_fleet_name(program, names[0]),
        ml_fleet_name(said, names[1])
    );
    put_names(out, builds, "builds", "build_id");
    if (fclose(out) == 0) {
        ml_say_error("%s", text);
    }
    free(text);
}

enum likeness { UNLIKE, BEGINS, VERSION, SAME };

/* What a collector calls it: one without an id has a name, too. */
static const char *id_of(const json_t *build) {
    const char *id = ml_fleet_text(build, "build_id");
    return id[0] != '\0' ? id : "none";
}

static enum likeness likeness_of(const json_t *build, const char *said) {
    const char *id = id_of(build);
    if (strcmp(id, said) == 0) {
        return SAME;
    }
    if (strcmp(ml_fleet_text(build, "version"), said) == 0) {
        return VERSION;
    }
    return strlen(said) >= PREFIX_LEAST && strncmp(id, said, strlen(said)) == 0 ? BEGINS : UNLIKE;
}

static void keep(const json_t *build, char out_id[256], char out_version[64]) {
    (void)snprintf(out_id, 256, "%s", id_of(build));
    (void)snprintf(out_version, 64, "%s", ml_fleet_text(build, "version"));
}

/* The whole id of what a person calls a build. False: there is none, or several. */
static bool resolve(
    const json_t *builds,
    const char *said,
    const char *program,
    char out_id[256],
    char out_version[64]
) {
    enum likeness best = UNLIKE;
    unsigned of_best = 0;
    for (size_t i = 0; i < ml_fleet_count(builds, "builds"); i++) {
        const json_t *one = ml_fleet_element(builds, "builds", i);
        const enum likeness likeness = likeness_of(one, said);
        if (likeness > best) {
            best = likeness;
            of_best = 0;
            keep(one, out_id, out_version);
        }
        of_best += likeness == best;
    }
    if (best == UNLIKE || of_best > 1) {
        say_build(builds, said, best != UNLIKE, program);
    }
    return best != UNLIKE && of_best == 1;
}

/* The newest two. False: there is one alone. */
static bool newest_two(const json_t *builds, struct ml_fleet_asked *asked) {
    if (ml_fleet_count(builds, "builds") < 2) {
        char name[ML_FLEET_NAME_BYTES];
        ml_say_error(
            "%s has one build, and nothing to compare it with",
            ml_fleet_name(asked->options->program, name)
        );
        return false;
    }
    keep(ml_fleet_element(builds, "builds", 1), asked->build, asked->versions[0]);
    keep(ml_fleet_element(builds, "builds", 0), asked->other, asked->versions[1]);
    return true;
}

/* The builds that are asked about. An exit code; 0: they are there. */
static int find_builds(struct ml_fleet_client *client, struct ml_fleet_asked *asked) {
    const struct ml_fleet_options *options = asked->options;
    const bool compares = options->question == ML_FLEET_DIFF;
    if (options->program == NULL || (options->build == NULL && !compares)) {
        (void)snprintf(
            asked->build, sizeof(asked->build), "%s", options->build != NULL ? options->build : ""
        );
        return 0;
    }
    json_t *builds = ask_about(client, "builds", options->program);
    int exit_code = builds != NULL ? ML_FLEET_EXIT_LACKING : ML_FLEET_EXIT_FAILED;
    if (builds != NULL && ml_fleet_count(builds, "builds") == 0) {
        exit_code = find_program(client, options->program);
    } else if (builds != NULL && options->build == NULL) {
        exit_code = newest_two(builds, asked) ? 0 : ML_FLEET_EXIT_LACKING;
    } else if (builds != NULL &&
               resolve(builds, options->build, options->program, asked->build, asked->versions[0]) &&
               (!compares || resolve(
                                 builds,
                                 options->other,
                                 options->program,
                                 asked->other,
                                 asked->versions[1]
                             ))) {
        exit_code = 0;
    }
    json_decref(builds);
    return exit_code;
}

/* ---- answering */

static void put_missing(const json_t *answer, FILE *out) {
    const size_t count = ml_fleet_count(answer, "missing_shards");
    if (count == 0) {
        return;
    }
    (void)fprintf(out, "INCOMPLETE: %zu of the store's parts did not answer (", count);
    for (size_t i = 0; i < count && i < NAMES_MOST; i++) {
        char name[ML_FLEET_NAME_BYTES];
        const char *shard = json_string_value(ml_fleet_element(answer, "missing_shards", i));
        (void
        )fprintf(out, "%s%s", i > 0 ? ", " : "", ml_fleet_name(shard != NULL ? shard : "", name));
    }
    (void)fputs("): what they have is in no figure\n", out);
}

/* Nothing was found: because there is no such thing? An exit code. */
static int explain_nothing(struct ml_fleet_client *client, const struct ml_fleet_asked *asked) {
    const struct ml_fleet_options *options = asked->options;
    char name[ML_FLEET_NAME_BYTES];
    if (options->question == ML_FLEET_REPORT) {
        ml_say_error(
            "there is no report '%s'; 'memlog fleet reports' lists the newest",
            ml_fleet_name(options->guid, name)
        );
        return ML_FLEET_EXIT_LACKING;
    }
    if (options->program != NULL) {
        const int exit_code = find_program(client, options->program);
        if (exit_code != 0) {
            return exit_code;
        }
    }
    if (options->question == ML_FLEET_PROGRAMS && options->from.from == ML_TIME_NONE &&
        options->until.from == ML_TIME_NONE) {
        ml_say_error("no report has come yet: 'memlog run --upload=URL' sends them");
        return 0;
    }
    if (options->stack != NULL) {
        ml_say_error(
            "nothing that was asked for has a stack %s; 'memlog fleet top' tells the numbers of "
            "stacks",
            options->stack
        );
        return ML_FLEET_EXIT_LACKING;
    }
    ml_say_error("nothing that came is what was asked for");
    return options->host != NULL || options->build != NULL ? ML_FLEET_EXIT_LACKING : 0;
}

static void put(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out) {
    const struct ml_fleet_options *options = asked->options;
    put_missing(answer, options->folded ? stderr : out);
    answers[options->question].show(asked, answer, out);
}

int ml_fleet_ask(
    struct ml_fleet_client *client,
    const struct ml_fleet_options *options,
    const char *again,
    FILE *out
) {
    struct ml_fleet_asked asked = {.options = options, .again = again};
    struct ml_error_message error = {.text = ""};
    char path[PATH_BYTES];
    const char *bytes = NULL;
    size_t count = 0;
    json_t *answer = NULL;
    int exit_code = find_builds(client, &asked);
    if (exit_code != 0) {
        return exit_code;
    }
    if (!path_of(&asked, path)) {
        ml_error_set(&error, "the question is too long");
    } else if (ml_fleet_client_ask(client, path, &bytes, &count, &error) == ML_OK) {
        answer = ml_fleet_answer_read(bytes, count, &error);
    }
    if (answer == NULL) {
        ml_say_error("%s", error.text);
        return ML_FLEET_EXIT_FAILED;
    }
    const char *list = answers[options->question].list;
    const bool is_empty = list != NULL && ml_fleet_count(answer, list) == 0;
    if (options->json) {
        ml_fleet_answer_put(out, bytes, count);
    } else if (!is_empty) {
        put(&asked, answer, out);
    } else {
        put_missing(answer, out);
    }
    exit_code = is_empty ? explain_nothing(client, &asked) : 0;
    json_decref(answer);
    return exit_code;
}

/* ---- what some dumps do not say */

const char *const ml_fleet_figures[3] = {"live_bytes", "peak_bytes", "total_bytes"};

/* NULL: each dump says it. */
static const char *const lacking[] = {NULL, "dumps_without_peak", "dumps_without_total"};

double ml_fleet_dumps_with(const json_t *answer, enum ml_fleet_metric metric) {
    const double dumps = ml_fleet_number(answer, "dumps");
    return lacking[metric] != NULL ? dumps - ml_fleet_number(answer, lacking[metric]) : dumps;
}

void ml_fleet_put_without(FILE *out, const char *metric, double without, double dumps) {
    char one[ML_FLEET_CELL_BYTES];
    char all[ML_FLEET_CELL_BYTES];
    if (without > 0) {
        (void)fprintf(
            out,
            "%s of %s dump%s say%s no %s\n",
            ml_fleet_many(without, one),
            ml_fleet_many(dumps, all),
            dumps == 1 ? "" : "s",
            without == 1 ? "s" : "",
            metric
        );
    }
}

void ml_fleet_put_without_metric(FILE *out, const json_t *answer, enum ml_fleet_metric metric) {
    const double dumps = ml_fleet_number(answer, "dumps");
    ml_fleet_put_without(
        out, ml_fleet_metrics[metric], dumps - ml_fleet_dumps_with(answer, metric), dumps
    );
}

void ml_fleet_put_callers(const json_t *stack, size_t from, char *out, size_t out_bytes) {
    const json_t *frames = json_object_get(stack, "frames");
    const size_t count = json_array_size(frames);
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = count; i > 0 && at + 1 < out_bytes; i--) {
        char name[ML_FLEET_NAME_BYTES];
        if (count - i < from) {
            continue;
        }
        const int written = snprintf(
            out + at,
            out_bytes - at,
            "%s%s",
            count - i > 0 ? (count - i > from ? " < " : "< ") : "",
            ml_fleet_frame(json_array_get(frames, i - 1), name)
        );
        at += written > 0 ? (size_t)written : 0;
    }
    ml_printable_clean(out); /* a name may have been cut within a letter */
}

void ml_fleet_put_next(
    const struct ml_fleet_asked *asked, const char *words, const char *program, FILE *out
) {
    char word[ML_FLEET_NAME_BYTES * 4];
    if (program == NULL || program[0] == '\0') {
        (void)fprintf(out, "next: memlog fleet %s%s\n", words, asked->again);
    } else if (ml_shell_word(program, word, sizeof(word))) {
        /* A program of another machine may be called like an option of ours. */
        const char *option = program[0] == '-' ? "--program=" : "";
        (void)fprintf(out, "next: memlog fleet %s %s%s%s\n", words, option, word, asked->again);
    }
}
