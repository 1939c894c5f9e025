#include "tools/analyzer/memory/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/memory/policy_internal.h"

/* Length of a component's name with a module in it. Modules beyond so many components are "others":
 * a table has a column for each. */
enum { COMPONENT_BYTES = 512, COMPONENTS_MAX = 4096 };

void ml_policy_fini(struct ml_policy *policy) {
    for (size_t i = 0; i < policy->rules_count; i++) {
        for (size_t key = 0; key < ML_POLICY_KEYS; key++) {
            if (policy->rules[i].has[key]) {
                ml_pattern_fini(&policy->rules[i].patterns[key]);
            }
        }
        free(policy->rules[i].name);
    }
    free(policy->rules);
    ml_string_table_fini(&policy->components);
    *policy = (struct ml_policy){0};
}

/* Longer names of mappings are cut; the kernel takes no longer ones than 80 bytes. */
enum { NAME_BYTES = 256 };

struct scratch {
    char permissions[ML_ROW_PERMISSIONS_BYTES];
    char name[NAME_BYTES];
};

/* The texts of a row, by key. */
static void texts_of(
    const struct ml_row *row,
    const struct ml_row_text *text,
    struct scratch *scratch,
    const char *out_texts[ML_POLICY_KEYS]
) {
    out_texts[ML_POLICY_STACK_FUNCTION] = text->functions;
    out_texts[ML_POLICY_STACK_SOURCE_FILE] = text->files;
    out_texts[ML_POLICY_STACK_MODULE] = text->modules;
    out_texts[ML_POLICY_TYPE_INFO] =
        row->type.count_bytes > 0 ? row->type.bytes : "no typeinfo"; /* dmprof's word */
    out_texts[ML_POLICY_MAPPED_PATH] = row->path.bytes;
    out_texts[ML_POLICY_MAPPED_PERMISSION] =
        ml_row_permissions(row->permissions, scratch->permissions);
    snprintf(
        scratch->name, sizeof scratch->name, "%.*s", (int)row->name.count_bytes, row->name.bytes
    );
    out_texts[ML_POLICY_VMA_NAME] = scratch->name;
    out_texts[ML_POLICY_SHARED_WITH] = ml_row_sharing_name(row->sharing);
    out_texts[ML_POLICY_KIND] = ml_component_name(row->kind);
}

/* Cheap patterns come first: those of stacks are long. */
static bool rule_matches(
    const struct ml_policy_rule *rule,
    enum ml_row_allocator allocator,
    const char *const texts[ML_POLICY_KEYS]
) {
    bool matches = (rule->allocators & (1U << allocator)) != 0;

    for (size_t key = ML_POLICY_KEYS; matches && key > 0; key--) {
        matches =
            !rule->has[key - 1] || ml_pattern_matches(&rule->patterns[key - 1], texts[key - 1]);
    }
    return matches;
}

/* The number of a component whose name has the row's module in it. */
static uint32_t
component_of_module(struct ml_policy *policy, const char *name, const char *module) {
    const char *at = strstr(name, ML_POLICY_MODULE);
    const bool is_full = policy->components.count >= COMPONENTS_MAX;
    char component[COMPONENT_BYTES];

    snprintf(
        component,
        sizeof component,
        "%.*s%s%s",
        (int)(at - name),
        name,
        is_full     ? "others"
        : module[0] ? module
                    : "unknown",
        at + sizeof ML_POLICY_MODULE - 1
    );
    return ml_string_table_copy(&policy->components, component, strlen(component));
}

uint32_t ml_policy_component(
    struct ml_policy *policy,
    const struct ml_stacks *stacks,
    const struct ml_row *row,
    struct ml_row_text *text
) {
    const char *texts[ML_POLICY_KEYS];
    struct scratch scratch;

    ml_row_text_make(text, stacks, row->node);
    texts_of(row, text, &scratch, texts);
    for (size_t i = 0; i < policy->rules_count; i++) {
        const struct ml_policy_rule *rule = &policy->rules[i];
        if (!rule_matches(rule, row->allocator, texts)) {
            continue;
        }
        return strstr(rule->name, ML_POLICY_MODULE)
                   ? component_of_module(policy, rule->name, ml_row_module(stacks, row))
                   : ml_string_table_copy(&policy->components, rule->name, strlen(rule->name));
    }
    return ML_STRING_NONE; /* ml_policy_check() has seen to it that some rule matches */
}

bool ml_policy_needs_names(const struct ml_policy *policy) {
    bool needs = false;

    for (size_t i = 0; !needs && i < policy->rules_count; i++) {
        const struct ml_policy_rule *rule = &policy->rules[i];
        needs = rule->has[ML_POLICY_STACK_FUNCTION] || rule->has[ML_POLICY_STACK_SOURCE_FILE] ||
                strstr(rule->name, ML_POLICY_MODULE) != NULL;
    }
    return needs;
}

bool ml_policy_covers(
    const struct ml_policy *policy, enum ml_row_allocator allocator, enum ml_component kind
) {
    for (size_t i = 0; i < policy->rules_count; i++) {
        const struct ml_policy_rule *rule = &policy->rules[i];
        bool covers = (rule->allocators & (1U << allocator)) != 0;

        for (size_t key = 0; covers && key < ML_POLICY_KEYS; key++) {
            if (rule->has[key]) {
                covers = rule->patterns[key].is_any ||
                         (key == ML_POLICY_KIND &&
                          ml_pattern_matches(&rule->patterns[key], ml_component_name(kind)));
            }
        }
        if (covers) {
            return true;
        }
    }
    return false;
}

bool ml_policy_check(
    const struct ml_policy *policy, const char *file, struct ml_error_message *error
) {
    for (unsigned allocator = 0; allocator < ML_ROW_ALLOCATORS; allocator++) {
        for (unsigned kind = 0; kind < ML_COMPONENTS; kind++) {
            const bool is_heap = kind == ML_COMPONENT_HEAP;
            const bool is_slack = ml_component_is_slack(kind);
            const bool is_possible =
                is_heap == (allocator == ML_ROW_MALLOC) && is_slack == (allocator == ML_ROW_SLACK);
            if (is_possible && !ml_policy_covers(policy, allocator, kind)) {
                ml_error_set(
                    error,
                    "%s: no rule takes everything of allocator '%s' and kind '%s'; a last rule "
                    "without patterns does",
                    file,
                    ml_row_allocator_name(allocator),
                    ml_component_name(kind)
                );
                return false;
            }
        }
    }
    return true;
}
