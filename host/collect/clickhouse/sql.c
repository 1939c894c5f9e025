#include "host/collect/clickhouse/sql.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void ml_click_sql_fini(struct ml_click_sql *sql) {
    free(sql->text);
    *sql = (struct ml_click_sql){.text = NULL};
}

static void put(struct ml_click_sql *sql, const char *text, size_t count) {
    if (sql->count + count + 1 > sql->capacity) {
        const size_t wanted = 2 * (sql->count + count) + 256;
        char *grown = realloc(sql->text, wanted);
        if (grown == NULL) {
            sql->is_failed = true;
            return;
        }
        sql->text = grown;
        sql->capacity = wanted;
    }
    memcpy(sql->text + sql->count, text, count);
    sql->count += count;
    sql->text[sql->count] = '\0';
}

void ml_click_sql_put(struct ml_click_sql *sql, const char *text) {
    put(sql, text, strlen(text));
}

void ml_click_sql_printf(struct ml_click_sql *sql, const char *format, ...) {
    char text[512];
    va_list values;
    va_start(values, format);
    const int count = vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    if (count < 0 || (size_t)count >= sizeof(text)) {
        sql->is_failed = true;
        return;
    }
    put(sql, text, (size_t)count);
}

void ml_click_sql_text(struct ml_click_sql *sql, const char *text) {
    put(sql, "'", 1);
    for (const char *at = text; at != NULL && *at != '\0'; at++) {
        const unsigned char byte = (unsigned char)*at;
        const bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                              (byte >= '0' && byte <= '9') || byte == '_' || byte == '-';
        if (is_plain) {
            put(sql, at, 1);
        } else {
            ml_click_sql_printf(sql, "\\x%02X", byte);
        }
    }
    put(sql, "'", 1);
}

void ml_click_sql_day(struct ml_click_sql *sql, int64_t day) {
    enum { DAY_S = 86400, DAY_LAST = 65535 /* of a Date */ };
    const int64_t kept = day < 0 ? 0 : day < DAY_LAST ? day : DAY_LAST;
    const time_t seconds = (time_t)kept * DAY_S;
    struct tm parts;
    (void)gmtime_r(&seconds, &parts);
    ml_click_sql_printf(
        sql, "'%04d-%02d-%02d'", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday
    );
}

void ml_click_sql_ids(struct ml_click_sql *sql, const int64_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++) {
        ml_click_sql_printf(sql, "%s%" PRId64, i > 0 ? ", " : "", ids[i]);
    }
    if (count == 0) {
        put(sql, "0", 1);
    }
}

void ml_click_sql_fill(
    struct ml_click_sql *sql, const char *form, ml_click_sql_value *value, const void *context
) {
    enum { NAME_BYTES = 32 };
    const char *at = form;
    while (*at != '\0') {
        const size_t plain = strcspn(at, ":");
        char name[NAME_BYTES];
        size_t count = 0;
        put(sql, at, plain);
        at += plain;
        if (*at == '\0') {
            return;
        }
        at++;
        while ((islower((unsigned char)*at) || *at == '_') && count < sizeof(name) - 1) {
            name[count++] = *at++;
        }
        name[count] = '\0';
        if (count == 0) {
            put(sql, ":", 1);
        } else if (!value(context, name, sql)) {
            sql->is_failed = true;
        }
    }
}
