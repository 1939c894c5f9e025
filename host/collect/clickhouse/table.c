#include "host/collect/clickhouse/table.h"

#include <stdlib.h>
#include <string.h>

void ml_click_table_init(struct ml_click_table *table, char *take_text) {
    *table = (struct ml_click_table){.text = take_text, .at = take_text};
}

void ml_click_table_fini(struct ml_click_table *table) {
    free(table->text);
    *table = (struct ml_click_table){.text = NULL};
}

static char meant(char escaped) {
    static const char signs[][2] = {
        {'b', '\b'}, {'f', '\f'}, {'r', '\r'}, {'n', '\n'}, {'t', '\t'}, {'0', '\0'}};
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        if (signs[i][0] == escaped) {
            return signs[i][1];
        }
    }
    return escaped;
}

/* Unescape a column in its place; where it ended. */
static char *read_column(char *at) {
    char *to = at;
    while (*at != '\t' && *at != '\n' && *at != '\0') {
        if (*at == '\\' && at[1] != '\0') {
            at++;
            *to++ = meant(*at++);
        } else {
            *to++ = *at++;
        }
    }
    char *end = at;
    if (to < end) {
        *to = '\0';
    }
    return end;
}

bool ml_click_table_next(struct ml_click_table *table) {
    table->columns_count = 0;
    if (table->at == NULL || *table->at == '\0') {
        return false;
    }
    while (true) {
        char *end = read_column(table->at);
        const char sign = *end;
        if (table->columns_count < ML_CLICK_TABLE_COLUMNS_MAX) {
            table->columns[table->columns_count++] = table->at;
        }
        *end = '\0';
        table->at = sign != '\0' ? end + 1 : end;
        if (sign != '\t') {
            return true;
        }
    }
}

const char *ml_click_table_text(const struct ml_click_table *table, int column) {
    return column >= 0 && (size_t)column < table->columns_count ? table->columns[column] : "";
}

int64_t ml_click_table_id(const struct ml_click_table *table, int column) {
    return strtoll(ml_click_table_text(table, column), NULL, 10);
}

double ml_click_table_real(const struct ml_click_table *table, int column) {
    return strtod(ml_click_table_text(table, column), NULL);
}

bool ml_click_table_element(const char **at, int64_t *out_id) {
    char *end = NULL;
    const int64_t id = strtoll(*at, &end, 10);
    if (end == *at) {
        return false;
    }
    *out_id = id;
    *at = *end != '\0' ? end + 1 : end;
    return true;
}
