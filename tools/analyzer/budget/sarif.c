/* Verdicts as SARIF 2.1.0. Room: tools. */
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "tools/analyzer/budget/output.h"

#define SCHEMA "https://json.schemastore.org/sarif-2.1.0.json"

/* A rule of SARIF is a limit of a rule of the budget. */
enum { ID_BYTES = 320 };

static const char *id_of(const struct ml_budget_result *result, char out_id[ID_BYTES]) {
    snprintf(
        out_id,
        ID_BYTES,
        "%.250s/%s%s",
        result->rule->name,
        ml_budget_figure_name(result->limit->figure),
        result->limit->is_growth ? "_growth" : ""
    );
    return out_id;
}

static void put_message(struct ml_json *json, const char *name, const char *text) {
    ml_json_open_member(json, name, '{');
    ml_json_string_member(json, "text", text);
    ml_json_close(json, '}');
}

/* A path as a URI reference (RFC 3986). NULL: no memory. Owner: the caller. */
static char *uri_of(const char *path) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/+";
    static const char hex[] = "0123456789ABCDEF";
    char *uri = malloc(3 * strlen(path) + sizeof "file://");
    char *end = uri;

    if (!uri) {
        return NULL;
    }
    if (path[0] == '/') {
        end = stpcpy(end, "file://");
    }
    for (const char *at = path; *at; at++) {
        if (strchr(plain, *at)) {
            *end++ = *at;
        } else {
            *end++ = '%';
            *end++ = hex[(unsigned char)*at >> 4];
            *end++ = hex[(unsigned char)*at & 15];
        }
    }
    *end = '\0';
    return uri;
}

static void
put_location(struct ml_json *json, const char *path, uint32_t line, const char *function) {
    char *uri = uri_of(path);

    ml_json_open(json, '{');
    ml_json_open_member(json, "physicalLocation", '{');
    ml_json_open_member(json, "artifactLocation", '{');
    ml_json_string_member(json, "uri", uri ? uri : "");
    ml_json_close(json, '}');
    if (line > 0) {
        ml_json_open_member(json, "region", '{');
        ml_json_number_member(json, "startLine", line);
        ml_json_close(json, '}');
    }
    ml_json_close(json, '}');
    if (function) {
        ml_json_open_member(json, "logicalLocations", '[');
        ml_json_open(json, '{');
        ml_json_string_member(json, "fullyQualifiedName", function);
        ml_json_string_member(json, "kind", "function");
        ml_json_close(json, '}');
        ml_json_close(json, ']');
    }
    ml_json_close(json, '}');
    free(uri);
}

static void
put_result(struct ml_json *json, const struct ml_budget_verdicts *verdicts, size_t index) {
    const struct ml_budget_result *result = &verdicts->results[index];
    const struct ml_budget_value *shown = result->now.shown;
    char id[ID_BYTES];
    char text[ML_BUDGET_SENTENCE_BYTES];

    ml_json_line(json);
    ml_json_open(json, '{');
    ml_json_string_member(json, "ruleId", id_of(result, id));
    ml_json_number_member(json, "ruleIndex", index);
    ml_json_string_member(json, "kind", "fail");
    ml_json_string_member(
        json, "level", result->verdict == ML_VERDICT_BROKEN ? "error" : "warning"
    );
    put_message(json, "message", ml_budget_sentence(result, text));
    ml_json_open_member(json, "locations", '[');
    if (shown && shown->source) {
        put_location(json, shown->source, shown->source_line, shown->function);
    } else {
        put_location(json, verdicts->file, result->rule->line, NULL);
    }
    ml_json_close(json, ']');
    ml_json_close(json, '}');
}

static void put_rules(struct ml_json *json, const struct ml_budget_verdicts *verdicts) {
    ml_json_open_member(json, "rules", '[');
    for (size_t i = 0; i < verdicts->count; i++) {
        const struct ml_budget_result *result = &verdicts->results[i];
        char limit[ML_BUDGET_TEXT_BYTES];
        char text[ML_BUDGET_SENTENCE_BYTES];
        char id[ID_BYTES];
        snprintf(
            text,
            sizeof text,
            "%.300s: %s%s is at most %s",
            result->rule->name,
            ml_budget_figure_name(result->limit->figure),
            result->limit->is_growth ? "_growth" : "",
            ml_budget_limit_text(result->limit, limit)
        );
        ml_json_line(json);
        ml_json_open(json, '{');
        ml_json_string_member(json, "id", id_of(result, id));
        put_message(json, "shortDescription", text);
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
}

void ml_budget_sarif(const struct ml_budget_verdicts *verdicts, FILE *out) {
    struct ml_json json = ml_json_over(out);

    ml_json_open(&json, '{');
    ml_json_string_member(&json, "$schema", SCHEMA);
    ml_json_string_member(&json, "version", "2.1.0");
    ml_json_open_member(&json, "runs", '[');
    ml_json_open(&json, '{');
    ml_json_open_member(&json, "tool", '{');
    ml_json_open_member(&json, "driver", '{');
    ml_json_string_member(&json, "name", "memlog");
    put_rules(&json, verdicts);
    ml_json_close(&json, '}');
    ml_json_close(&json, '}');
    ml_json_open_member(&json, "results", '[');
    for (size_t i = 0; i < verdicts->count; i++) {
        if (verdicts->results[i].verdict != ML_VERDICT_HELD) {
            put_result(&json, verdicts, i);
        }
    }
    ml_json_close(&json, ']');
    ml_json_close(&json, '}');
    ml_json_close(&json, ']');
    ml_json_close(&json, '}');
    fputs("\n", out);
}
