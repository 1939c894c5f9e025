/* What was left out, in text and JSON; tools/analyzer/suppressions/suppress.h. */
#include "base/printable.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/suppressions/suppress.h"

static void put_pattern(const struct ml_suppression *rule, FILE *out) {
    fputs("leak:", out);
    ml_printable_put_text(out, rule->pattern);
}

static void put_part(const struct ml_suppressed_part *part, FILE *out) {
    fprintf(
        out,
        "%s in %s block%s of %s stack%s",
        ml_units_size(part->bytes).text,
        ml_units_count(part->blocks).text,
        part->blocks == 1 ? "" : "s",
        ml_units_count(part->stacks).text,
        part->stacks == 1 ? "" : "s"
    );
}

void ml_suppressed_text(const struct ml_suppressed *suppressed, const char *where, FILE *out) {
    fputs(where ? "Suppressed in " : "Suppressed", out);
    ml_printable_put_text(out, where ? where : "");
    fputs(": ", out);
    put_part(&suppressed->all, out);
    fputs(", by ", out);
    ml_printable_put_text(out, suppressed->rules->file);
    putc('\n', out);
    for (size_t i = 0; i < suppressed->rules->count; i++) {
        if (suppressed->by[i].stacks > 0) {
            fputs("  ", out);
            put_part(&suppressed->by[i], out);
            fputs(", by ", out);
            put_pattern(&suppressed->rules->rules[i], out);
            putc('\n', out);
        }
    }
}

void ml_suppressed_unused(const struct ml_suppressed *const *suppressed, size_t count, FILE *out) {
    const struct ml_suppressions *rules = count > 0 ? suppressed[0]->rules : NULL;

    for (size_t rule = 0; rules && rule < rules->count; rule++) {
        uint64_t stacks = 0;
        for (size_t i = 0; i < count; i++) {
            stacks += suppressed[i]->by[rule].stacks;
        }
        if (stacks == 0) {
            fputs("Not used: ", out);
            put_pattern(&rules->rules[rule], out);
            fputs(" (", out);
            ml_printable_put_text(out, rules->file);
            fprintf(out, ":%u)\n", rules->rules[rule].line);
        }
    }
}

static void put_members(struct ml_json *json, const struct ml_suppressed_part *part) {
    ml_json_number_member(json, "stacks", part->stacks);
    ml_json_number_member(json, "blocks", part->blocks);
    ml_json_number_member(json, "bytes", part->bytes);
}

void ml_suppressed_json(const struct ml_suppressed *suppressed, struct ml_json *json) {
    if (!suppressed) {
        return;
    }
    ml_json_open_member(json, "suppressed", '{');
    ml_json_string_member(json, "file", suppressed->rules->file);
    put_members(json, &suppressed->all);
    ml_json_open_member(json, "patterns", '[');
    for (size_t i = 0; i < suppressed->rules->count; i++) {
        ml_json_open(json, '{');
        ml_json_string_member(json, "pattern", suppressed->rules->rules[i].pattern);
        ml_json_number_member(json, "line", suppressed->rules->rules[i].line);
        put_members(json, &suppressed->by[i]);
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
    ml_json_close(json, '}');
}
