/* The policies that memlog brings: the JSON files beside this one. Room: tools. */
#include <string.h>

#include "tools/analyzer/memory/policy.h"

/* Made from the files by tools/gn/embed.gni. */
extern const char ml_policy_l0[];
extern const char ml_policy_l1[];
extern const char ml_policy_l2[];

const char *ml_policy_built_in(const char *name) {
    const struct {
        const char *name, *text;
    } policies[] = {{"l0", ml_policy_l0}, {"l1", ml_policy_l1}, {"l2", ml_policy_l2}};

    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        if (strcmp(policies[i].name, name) == 0) {
            return policies[i].text;
        }
    }
    return NULL;
}
