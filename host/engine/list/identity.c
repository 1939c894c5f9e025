#include "host/engine/list/identity.h"

#include <stdio.h>
#include <string.h>

#include "host/process/clock.h"

/* The name of an unknown program. */
static const char no_name[] = "?";

bool ml_list_has_name(const struct ml_unrecorded *one) {
    return one->executable != NULL || strcmp(one->name, no_name) != 0;
}

void ml_list_copy_identity(
    struct ml_unrecorded *one, const char *name, const char *path, char *const *argv
) {
    struct ml_command_line line;
    (void)snprintf(one->name, sizeof(one->name), "%s", name);
    ml_unrecorded_executable(one, path);
    if (argv != NULL && ml_command_line_from_argv(&line, argv) == ML_OK) {
        ml_command_line_fini(&one->line);
        one->line = line;
    }
}

/* What /proc says of a program, one file after the other. */
struct identity {
    char name[ML_PROCESS_NAME_BYTES]; /* no_name: unknown */
    char executable[PATH_MAX];        /* "": unknown */
    struct ml_command_line line;
    bool has_line;
    bool is_name_alone; /* it has ended, or an exec has cut it off: whose the name is is likely */
};

static void forget_line(struct identity *identity) {
    if (identity->has_line) {
        ml_command_line_fini(&identity->line);
        identity->has_line = false;
    }
}

/* Whether the process still runs the image that `facts` are of. One that ends loses it, and keeps
 * its name; whoever is gone may have been another before. */
static bool is_still(pid_t pid, const struct ml_process_facts *facts, const char *name) {
    const struct ml_process_facts after = ml_process_facts(pid);
    if (after.has_ended || after.is_ending) {
        char name_after[ML_PROCESS_NAME_BYTES];
        ml_process_name(pid, name_after);
        return strcmp(name_after, name) == 0;
    }
    return ml_image_mark_is_known(&facts->image) == ml_image_mark_is_known(&after.image) &&
           !ml_image_mark_differs(&facts->image, &after.image);
}

/* Read what is of that image. False: nothing is. */
static bool
read_identity(struct identity *out_identity, pid_t pid, const struct ml_process_facts *facts) {
    out_identity->executable[0] = '\0';
    out_identity->line = (struct ml_command_line){.count = 0};
    out_identity->has_line = false;
    out_identity->is_name_alone = facts->has_ended || facts->is_ending;
    ml_process_name(pid, out_identity->name); /* at once behind `facts` */
    if (facts->has_ended) {
        return true;
    }
    out_identity->has_line = ml_process_command_line(pid, &out_identity->line) == ML_OK;
    ml_process_executable(pid, out_identity->executable, sizeof(out_identity->executable));
    if (!is_still(pid, facts, out_identity->name)) {
        out_identity->is_name_alone = true;
        forget_line(out_identity);
        out_identity->executable[0] = '\0';
    }
    /* In the middle of an exec the name is the next program's, and the rest is not there yet. */
    return facts->is_ending || out_identity->has_line || ml_image_mark_is_known(&facts->image);
}

static void note(
    struct ml_engine *engine,
    struct ml_unrecorded *one,
    const struct identity *identity,
    uint64_t read_ns
) {
    one->identified_ns = read_ns;
    if (strcmp(identity->name, no_name) != 0) {
        (void)snprintf(one->name, sizeof(one->name), "%s", identity->name);
    }
    if (identity->has_line) {
        ml_command_line_fini(&one->line);
        one->line = identity->line;
    }
    if (identity->executable[0] != '\0') {
        ml_unrecorded_executable(one, identity->executable);
    }
    one->role = ml_role_of(
        engine->options->roles, &one->line, one->pid == engine->root && !ml_unrecorded_is_fork(one)
    );
}

/* It is gone, or its pid belongs to another process. */
static bool is_other(const struct ml_unrecorded *one, const struct ml_process_facts *facts) {
    return facts->state == 0 || facts->start_ticks != one->start_ticks;
}

bool ml_list_identify(
    struct ml_engine *engine, struct ml_unrecorded *one, const struct ml_process_facts *facts
) {
    const uint64_t now = ml_clock_timestamp(engine->clock).monotonic_ns;
    struct identity identity;
    if (is_other(one, facts)) {
        one->identified_ns = now;
        return true;
    }
    if (!read_identity(&identity, one->pid, facts)) {
        return false;
    }
    /* Beside what is known of a program it may be another's, which has come since. */
    if (identity.is_name_alone && ml_list_has_name(one)) {
        forget_line(&identity);
    } else {
        note(engine, one, &identity, now);
    }
    return true;
}

void ml_list_identify_newest(
    struct ml_engine *engine, struct ml_unrecorded *one, const struct ml_process_facts *facts
) {
    enum { TRIES = 16 }; /* some hundred microseconds, as an exec takes */
    struct ml_process_facts newest = *facts;
    for (unsigned i = 0; i < TRIES; i++) {
        one->image = newest.image;
        const bool is_whole = ml_list_identify(engine, one, &newest);
        const bool has_image = !newest.has_ended && !newest.is_ending;
        /* One that nobody may look into has no mark at any time. */
        if (is_whole && (ml_image_mark_is_known(&newest.image) || !has_image)) {
            return;
        }
        newest = ml_process_facts(one->pid);
    }
}

/* Without random addresses two programs may have one mark: what is read of them differs. */
bool ml_list_is_identified(const struct ml_unrecorded *one) {
    const struct ml_process_facts facts = ml_process_facts(one->pid);
    struct identity identity;
    if (facts.has_ended || facts.start_ticks != one->start_ticks ||
        !ml_image_mark_is_known(&facts.image) || !ml_image_mark_is_known(&one->image) ||
        ml_image_mark_differs(&facts.image, &one->image) ||
        !read_identity(&identity, one->pid, &facts)) {
        return false;
    }
    const bool is_same = strcmp(identity.name, one->name) == 0 && one->executable != NULL &&
                         strcmp(identity.executable, one->executable) == 0 &&
                         ml_command_line_equal(&identity.line, &one->line);
    forget_line(&identity);
    return is_same;
}

void ml_list_forget_identity(struct ml_unrecorded *one) {
    ml_command_line_fini(&one->line);
    ml_list_copy_identity(one, no_name, "", NULL);
    one->role = MEMLOG_SERVICE_ROLE_OTHER;
}
