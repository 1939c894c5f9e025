#include "tools/analyzer/whole/mapped.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Below, a name is not worth the look at all rows. */
#define WORTH_A_NAME_BYTES (UINT64_C(1) << 20)

void ml_mapped_names_init(struct ml_mapped_names *names, const struct ml_stacks *stacks) {
    const char *policy = ml_policy_built_in("l1");
    struct ml_error_message error;

    *names = (struct ml_mapped_names){.stacks = stacks};
    if (ml_policy_read(&names->policy, policy, strlen(policy), "l1", &error)) {
        names->text = ml_row_text_new();
    }
}

void ml_mapped_names_fini(struct ml_mapped_names *names) {
    ml_policy_fini(&names->policy);
    free(names->text);
}

static void
add_named(struct ml_whole *whole, const struct ml_profile_text *name, uint64_t private_bytes) {
    for (size_t i = 0; i < ML_WHOLE_MAPPED_MAX; i++) {
        struct ml_whole_mapped *mapped = &whole->mapped[i];
        if (mapped->private_bytes == 0) {
            snprintf(
                mapped->name, sizeof mapped->name, "%.*s", (int)name->count_bytes, name->bytes
            );
        }
        if (strncmp(mapped->name, name->bytes, sizeof mapped->name - 1) == 0) {
            mapped->private_bytes += private_bytes;
            return;
        }
    }
}

static void
add_row(struct ml_mapped_names *names, struct ml_whole *whole, const struct ml_row *row) {
    const uint32_t component = ml_policy_component(&names->policy, names->stacks, row, names->text);

    if (component != ML_STRING_NONE) {
        const struct ml_profile_text *name = &names->policy.components.strings[component];
        const char *mapped = ml_component_name(ML_COMPONENT_MAPPED);
        if (strcmp(name->bytes, mapped) != 0) {
            add_named(whole, name, row->figures.private);
        }
    }
}

void ml_mapped_names_add(
    struct ml_mapped_names *names, struct ml_whole *whole, const struct ml_profile_process *process
) {
    const struct ml_sharing nobody = {0};
    struct ml_components components;
    struct ml_rows rows = {0};

    ml_components_of(process, &components);
    if (names->text == NULL || components.of[ML_COMPONENT_MAPPED].private < WORTH_A_NAME_BYTES) {
        return;
    }
    if (ml_rows_add(&rows, names->stacks, &nobody, process)) {
        for (size_t i = 0; i < rows.count; i++) {
            const struct ml_row *row = &rows.items[i];
            if (row->kind == ML_COMPONENT_MAPPED && row->figures.private > 0) {
                add_row(names, whole, row);
            }
        }
    }
    ml_rows_fini(&rows);
}
