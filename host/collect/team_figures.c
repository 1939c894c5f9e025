#include "host/collect/team_figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/collect/tokens.h"

struct ml_team_figures_row {
    char team[ML_TEAM_BYTES];
    struct ml_team_figures figures;
};

void ml_team_list_fini(struct ml_team_list *list) {
    free(list->rows);
    *list = (struct ml_team_list){.rows = NULL};
}

void ml_team_list_clear(struct ml_team_list *list) {
    for (uint64_t i = 0; i < list->count; i++) {
        list->rows[i].figures = (struct ml_team_figures){.bytes = 0};
    }
    list->all = (struct ml_team_figures){.bytes = 0};
}

const char *ml_team_list_at(
    const struct ml_team_list *list, uint64_t number, struct ml_team_figures *out_figures
) {
    if (number >= list->count) {
        return NULL;
    }
    *out_figures = list->rows[number].figures;
    return list->rows[number].team;
}

static struct ml_team_figures_row *find(const struct ml_team_list *list, const char *team) {
    for (uint64_t i = 0; i < list->count; i++) {
        if (strcmp(list->rows[i].team, team) == 0) {
            return &list->rows[i];
        }
    }
    return NULL;
}

static struct ml_team_figures_row *find_or_add(struct ml_team_list *list, const char *team) {
    struct ml_team_figures_row *row = find(list, team);
    struct ml_team_figures_row *grown = NULL;
    if (row != NULL) {
        return row;
    }
    grown = reallocarray(list->rows, list->count + 1, sizeof(*grown));
    if (grown == NULL) {
        return NULL;
    }
    list->rows = grown;
    row = &grown[list->count++];
    *row = (struct ml_team_figures_row){.team = ""};
    (void)snprintf(row->team, sizeof(row->team), "%s", team);
    return row;
}

static void
change(struct ml_team_figures *figures, unsigned state, uint64_t count, uint64_t bytes) {
    figures->counts[state] += count; /* modulo 2^64: taking away is adding the complement */
    figures->bytes += bytes;
}

void ml_team_list_add(
    struct ml_team_list *list, const char *team, unsigned state, uint64_t count, uint64_t bytes
) {
    struct ml_team_figures_row *row = find_or_add(list, team);
    if (state >= ML_TEAM_FIGURES_STATES) {
        return;
    }
    change(&list->all, state, count, bytes);
    if (row != NULL) {
        change(&row->figures, state, count, bytes);
    }
}

void ml_team_list_take(
    struct ml_team_list *list, const char *team, unsigned state, uint64_t count, uint64_t bytes
) {
    ml_team_list_add(list, team, state, -count, -bytes);
}

struct ml_team_figures ml_team_list_of(const struct ml_team_list *list, const char *team) {
    const struct ml_team_figures_row *row = find(list, team);
    return row != NULL ? row->figures : (struct ml_team_figures){.bytes = 0};
}
