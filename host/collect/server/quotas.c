#include "host/collect/server/quotas.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MINUTE_S = 60 };

void ml_quotas_fini(struct ml_quotas *quotas) {
    free(quotas->list);
    quotas->list = NULL;
    quotas->count = 0;
}

/* NULL: no memory. */
static struct ml_quota *of(struct ml_quotas *quotas, const char *team, double now_s) {
    for (size_t i = 0; i < quotas->count; i++) {
        if (strcmp(quotas->list[i].team, team) == 0) {
            return &quotas->list[i];
        }
    }
    struct ml_quota *grown = reallocarray(quotas->list, quotas->count + 1, sizeof(*grown));
    if (grown == NULL) {
        return NULL;
    }
    quotas->list = grown;
    struct ml_quota *quota = &grown[quotas->count++];
    *quota = (struct ml_quota){.left = (double)quotas->a_minute, .as_of = now_s};
    (void)snprintf(quota->team, sizeof(quota->team), "%s", team);
    return quota;
}

unsigned ml_quotas_take(struct ml_quotas *quotas, const char *team, double now_s) {
    const double a_second = (double)quotas->a_minute / MINUTE_S;
    struct ml_quota *quota = quotas->a_minute > 0 ? of(quotas, team, now_s) : NULL;
    if (quotas->a_minute == 0) {
        return 0;
    }
    if (quota == NULL) {
        return 1;
    }
    /* A clock that was set back adds nothing. */
    quota->left += fmax(0, now_s - quota->as_of) * a_second;
    quota->left = fmin(quota->left, (double)quotas->a_minute);
    quota->as_of = now_s;
    if (quota->left >= 1) {
        quota->left -= 1;
        return 0;
    }
    return (unsigned)ceil((1 - quota->left) / a_second);
}
