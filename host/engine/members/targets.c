#include "host/engine/members/targets.h"

#include <stdio.h>
#include <unistd.h>

enum ml_status ml_targets_open(struct ml_engine *engine, struct ml_error_message *error) {
    enum ml_status status = ml_never_list_load(
        &engine->targets->never[0], ML_NEVER_LIST_FOLDER, ML_NEVER_LIST_FILE, 0, error
    );
    if (status == ML_OK && engine->options->never_list != NULL) {
        status = ml_never_list_load_file(
            &engine->targets->never[1], engine->options->never_list, geteuid(), error
        );
    }
    return status;
}

void ml_targets_close(struct ml_engine *engine) {
    for (unsigned i = 0; i < ML_NEVER_LISTS; i++) {
        ml_never_list_fini(&engine->targets->never[i]);
    }
    ml_name_rules_fini(&engine->targets->names);
}

bool ml_targets_forbid_program(
    const struct ml_engine *engine,
    const char *command_line,
    const char *executable,
    char *out_why,
    size_t why_bytes
) {
    for (unsigned i = 0; i < ML_NEVER_LISTS; i++) {
        const struct ml_never_list *list = &engine->targets->never[i];
        const int line = ml_never_list_match(list, command_line, executable);
        if (line > 0) {
            (void
            )snprintf(out_why, why_bytes, "never recorded: line %d of %.200s", line, list->path);
            return true;
        }
    }
    return false;
}

bool ml_targets_forbid(const struct ml_engine *engine, struct ml_member *member) {
    return ml_targets_forbid_program(
        engine, member->line.joined, member->executable, member->note, sizeof(member->note)
    );
}

/* Whether a rule of `memlog start --name` wants it. Then it gets the rule's settings. */
static bool wants_name(const struct ml_engine *engine, struct ml_member *member) {
    const struct ml_name_rule *rule =
        ml_name_rules_find(&engine->targets->names, member->name, member->line.joined);
    if (rule != NULL) {
        member->sampling_bytes = rule->sampling_bytes;
        member->stack_mode = rule->stack_mode;
    }
    return rule != NULL;
}

/* Note for people why it is not recorded. `left_out`: the reason is in `why`. */
static void note_refusal(
    struct ml_member *member, enum ml_mode mode, bool left_out, const char why[ML_MODE_WHY_BYTES]
) {
    member->left_out = left_out;
    if (left_out) {
        (void)snprintf(member->note, sizeof(member->note), "%s", why);
    } else if (member->note[0] == '\0') {
        (void)snprintf(
            member->note, sizeof(member->note), "not taken by --memlog=%s", ml_mode_name(mode)
        );
    }
}

/* Whether it is to be recorded, by what is known of it now. */
bool ml_targets_want(struct ml_engine *engine, struct ml_member *member) {
    const struct ml_options *options = engine->options;
    char why[ML_MODE_WHY_BYTES] = "";
    /* Counting looks at all members: do it only where the mode asks. */
    const bool is_alone = ml_mode_take(options->mode, member->role) == ML_TAKE_THIRD_ALONE;
    member->left_out = ml_targets_forbid(engine, member);
    if (member->left_out || !ml_attachment_may_record(member->attachment)) {
        return false;
    }
    const enum ml_request request = ml_request_settled(member->request);
    if (request != ML_REQUEST_NONE) {
        return request == ML_REQUEST_START && engine->service_state != ML_ENGINE_ALONE;
    }
    const bool left_out = ml_mode_leaves_out(options->only, options->never, &member->line, why);
    bool wanted =
        !left_out && ml_mode_takes(
                         options->mode,
                         member->role,
                         member->draw,
                         is_alone ? ml_members_recording(&engine->members, member->role) : 0
                     );
    wanted = wanted || wants_name(engine, member);
    if (!wanted) {
        note_refusal(member, options->mode, left_out, why);
    }
    return wanted && engine->service_state != ML_ENGINE_ALONE;
}

/* A zygote's child may end before the host can make it record. */
bool ml_targets_want_forked(const struct ml_engine *engine) {
    const struct ml_options *options = engine->options;
    bool possible = engine->targets->names.count > 0;
    for (int role = MEMLOG_SERVICE_ROLE_BROWSER; role < ML_ROLE_COUNT && !possible; role++) {
        const bool may_be =
            role != MEMLOG_SERVICE_ROLE_BROWSER || ml_patterns_count(options->roles) > 0;
        possible =
            may_be && ml_mode_take(options->mode, (enum memlog_service_role)role) != ML_TAKE_NEVER;
    }
    return possible;
}

/* A process forked from now on records until it is judged, so that nothing of a wanted one is
 * missed. */
static void tell_forks(struct ml_engine *engine) {
    for (uint32_t i = 0; i < engine->members.count; i++) {
        struct ml_member *member = engine->members.items[i];
        if (member->state == ML_MEMBER_RUNNING && member->endpoint.control_fd >= 0 &&
            ml_attachment_may_record(member->attachment)) {
            ml_endpoint_fork_enabled(&member->endpoint, ml_targets_want_forked(engine));
        }
    }
}

enum ml_status ml_targets_add_name(
    struct ml_engine *engine, const struct ml_name_rule *rule, struct ml_error_message *error
) {
    const enum ml_status status = ml_name_rules_add(&engine->targets->names, rule, error);
    tell_forks(engine);
    return status;
}

void ml_targets_remove_name(struct ml_engine *engine, const char *regex) {
    ml_name_rules_remove(&engine->targets->names, regex);
    tell_forks(engine);
}
