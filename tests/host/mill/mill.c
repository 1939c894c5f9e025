/* Makes a fleet of a million dumps, or of a few: tools/bench/fleet starts it, and tests do.
 *
 *   fleet_mill fill|bodies|truth [NAME=NUMBER...] [templates=FOLDER] [store=PATH] [spool=FOLDER]
 *
 * fill: into a store; says how many and how long. bodies: as machines would send them, on stdout.
 * truth: what was planted where, in JSON. Without templates programs are made up. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/json_writer.h"
#include "tests/host/mill/feed.h"

enum number {
    SEED,
    DUMPS,
    FROM,
    UNTIL,
    HOSTS,
    BUILDS,
    DAYS,
    BATCH,
    PROGRAMS,
    STACKS,
    CONTROL,
    DUMP_NOISE,
    STACK_NOISE,
    HOST_NOISE,
    LEAKS,
    CHANGES,
    BY_HOST,
    NUMBERS
};

/* Noise as the prototype's trials had it; a batch as the collector's. */
static struct {
    const char *name;
    double value;
} numbers[NUMBERS] = {
    [SEED] = {"seed", 1},
    [DUMPS] = {"dumps", 1000},
    [FROM] = {"from", 0},
    [UNTIL] = {"until", 0}, /* 0: all */
    [HOSTS] = {"hosts", 10000},
    [BUILDS] = {"builds", 20},
    [DAYS] = {"days", 60},
    [BATCH] = {"batch", 32},
    [PROGRAMS] = {"programs", 4},
    [STACKS] = {"stacks", 60},
    [CONTROL] = {"control", 0.3},
    [DUMP_NOISE] = {"dump_noise", 0.5},
    [STACK_NOISE] = {"stack_noise", 0.3},
    [HOST_NOISE] = {"host_noise", 0},
    [LEAKS] = {"leaks", 0.05},
    [CHANGES] = {"changes", 1},
    [BY_HOST] = {"by_host", 0},
};

static struct {
    const char *name, *value;
} words[] = {{"templates", NULL}, {"store", NULL}, {"spool", NULL}};
enum word { TEMPLATES, STORE, SPOOL, WORDS };

/* False: it says nothing that is known. */
static bool take(const char *argument) {
    const char *equals = strchr(argument, '=');
    const size_t length = equals != NULL ? (size_t)(equals - argument) : 0;
    for (int i = 0; equals != NULL && i < NUMBERS; i++) {
        char *end = NULL;
        if (strlen(numbers[i].name) == length && strncmp(numbers[i].name, argument, length) == 0) {
            numbers[i].value = strtod(equals + 1, &end);
            return end != equals + 1 && *end == '\0' && numbers[i].value >= 0;
        }
    }
    for (int i = 0; equals != NULL && i < WORDS; i++) {
        if (strlen(words[i].name) == length && strncmp(words[i].name, argument, length) == 0) {
            words[i].value = equals + 1;
            return true;
        }
    }
    return false;
}

static uint64_t whole(enum number which) {
    return (uint64_t)numbers[which].value;
}

static double seconds_of(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static int fill(const struct fleet *fleet, const struct fleet_plan *plan, uint64_t until) {
    struct ml_error_message error = {.text = ""};
    struct timespec begin;
    struct timespec end;
    struct rusage used;
    struct fed fed;
    if (words[STORE].value == NULL || words[SPOOL].value == NULL) {
        (void)fprintf(stderr, "fleet_mill: say where to: store=PATH spool=FOLDER\n");
        return 2;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    const enum ml_status status = feed_store(
        fleet,
        plan,
        whole(FROM),
        until,
        whole(BATCH),
        words[STORE].value,
        words[SPOOL].value,
        &fed,
        &error
    );
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    (void)getrusage(RUSAGE_SELF, &used);
    if (status != ML_OK) {
        (void)fprintf(stderr, "fleet_mill: %s: %s\n", words[STORE].value, error.text);
        return 1;
    }
    struct ml_json json = ml_json_over(stdout);
    ml_json_open(&json, '{');
    ml_json_number_member(&json, "dumps", fed.dumps);
    ml_json_number_member(&json, "rows", fed.rows);
    ml_json_double_member(
        &json,
        "seconds",
        (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9
    );
    ml_json_double_member(
        &json, "cpu_seconds", seconds_of(used.ru_utime) + seconds_of(used.ru_stime)
    );
    ml_json_close(&json, '}');
    (void)putchar('\n');
    return 0;
}

/* The stack's frames, the outermost first, as answers have them. */
static void put_path(
    struct ml_json *json, const char *name, const struct fleet_program *program, uint32_t stack
) {
    enum { DEPTH_MAX = 1024 };
    const struct memlog_fleet_frame *path[DEPTH_MAX];
    size_t depth = 0;
    for (; stack > 0 && depth < DEPTH_MAX; stack = program->stacks[stack - 1].parent) {
        path[depth++] = &program->frames[program->stacks[stack - 1].frame - 1];
    }
    ml_json_open_member(json, name, '[');
    for (; depth > 0; depth--) {
        const struct memlog_fleet_frame *frame = path[depth - 1];
        ml_json_string(
            json, frame->function.count_bytes > 0 ? frame->function.data : frame->module.data
        );
    }
    ml_json_close(json, ']');
}

static void put_builds(struct ml_json *json, const struct fleet_plan *plan, size_t program) {
    char id[FLEET_WORD_BYTES];
    ml_json_open_member(json, "builds", '[');
    for (uint64_t i = 0; i < plan->builds; i++) {
        fleet_build_id(program, i, id);
        ml_json_string(json, id);
    }
    ml_json_close(json, ']');
}

static void put_program(
    struct ml_json *json,
    const char *member,
    const struct fleet *fleet,
    const struct fleet_plan *plan,
    size_t number
) {
    static const char *const names[] = {"doubled", "grown", "leaked"};
    const struct fleet_program *program = &fleet->programs[number];
    ml_json_open_member(json, member, '{');
    ml_json_string_member(json, "program", program->name);
    put_builds(json, plan, number);
    for (enum fleet_change i = FLEET_DOUBLED; i <= FLEET_LEAKED; i++) {
        const size_t row = fleet_changed_row(program, i);
        put_path(json, names[i], program, program->rows[row].stack);
    }
    ml_json_close(json, '}');
}

static int truth(const struct fleet *fleet, const struct fleet_plan *plan) {
    char name[FLEET_WORD_BYTES];
    struct ml_json json = ml_json_over(stdout);
    ml_json_open(&json, '{');
    ml_json_number_member(&json, "programs", fleet->count);
    ml_json_number_member(&json, "guilty_build", fleet_guilty_build(plan));
    put_program(&json, "changed", fleet, plan, 0);
    put_program(&json, "leaking", fleet, plan, fleet_leaking_program(fleet));
    ml_json_open_member(&json, "leaking_hosts", '[');
    for (uint64_t i = 0; i < plan->hosts; i++) {
        if (fleet_host_leaks(plan, i)) {
            fleet_host_name(i, name);
            ml_json_string(&json, name);
        }
    }
    ml_json_close(&json, ']');
    ml_json_close(&json, '}');
    (void)putchar('\n');
    return 0;
}

static int run(const char *what, const struct fleet *fleet, const struct fleet_plan *plan) {
    const uint64_t until = whole(UNTIL) > 0 ? whole(UNTIL) : plan->dumps;
    if (strcmp(what, "fill") == 0) {
        return fill(fleet, plan, until);
    }
    if (strcmp(what, "truth") == 0) {
        return truth(fleet, plan);
    }
    return strcmp(what, "bodies") == 0 ? !feed_bodies(fleet, plan, whole(FROM), until, stdout) : 2;
}

int main(int count, char **arguments) {
    struct fleet fleet = {.count = 0};
    for (int i = 2; i < count; i++) {
        if (!take(arguments[i])) {
            (void)fprintf(stderr, "fleet_mill: what is %s?\n", arguments[i]);
            return 2;
        }
    }
    const struct fleet_plan plan = {
        .seed = whole(SEED),
        .dumps = whole(DUMPS),
        .hosts = whole(HOSTS),
        .builds = whole(BUILDS),
        .days = whole(DAYS),
        .control = numbers[CONTROL].value,
        .dump_noise = numbers[DUMP_NOISE].value,
        .stack_noise = numbers[STACK_NOISE].value,
        .host_noise = numbers[HOST_NOISE].value,
        .leaks_on = numbers[LEAKS].value,
        .changes = whole(CHANGES) > 0,
        .by_host = whole(BY_HOST) > 0,
    };
    if (count < 2 || plan.hosts == 0 || plan.builds == 0 || plan.dumps == 0 || whole(BATCH) == 0) {
        (void)fprintf(stderr, "usage: fleet_mill fill|bodies|truth [NAME=VALUE...]\n");
        return 2;
    }
    const char *folder = words[TEMPLATES].value;
    const bool is_read = folder != NULL
                             ? fleet_read(&fleet, folder)
                             : fleet_pretend(&fleet, plan.seed, whole(PROGRAMS), whole(STACKS));
    if (!is_read) {
        (void)fprintf(
            stderr, "fleet_mill: %s: %s\n", folder != NULL ? folder : "programs", strerror(errno)
        );
        return 1;
    }
    const int code = run(arguments[1], &fleet, &plan);
    fleet_fini(&fleet);
    return code;
}
