#include "tests/mojom_like_idl/values.h"

#include <stdlib.h>

#include "mojom_like_idl/runtime/layout_internal.h"

/* xorshift64: any full-period generator will do. */
static uint64_t next(struct values *v) {
    v->state ^= v->state << 13;
    v->state ^= v->state >> 7;
    v->state ^= v->state << 17;
    return v->state;
}

/* Numbers of every length equally often: a uniform one is nearly always long. */
static uint64_t next_number(struct values *v) {
    const unsigned bits = (unsigned)(next(v) % 65);
    return bits == 0 ? 0 : next(v) >> (64 - bits);
}

static uint32_t next_count(struct values *v, const struct ml_layout *layout) {
    const uint32_t most = layout->limit < v->count_max ? layout->limit : v->count_max;
    return (uint32_t)(next(v) % ((uint64_t)most + 1));
}

static uint8_t *next_text(struct values *v, uint32_t count_bytes, unsigned lowest) {
    uint8_t *text = pool_take(v->pool, count_bytes);
    for (uint32_t i = 0; i < count_bytes; i++) {
        text[i] = (uint8_t)(lowest + next(v) % (256 - lowest));
    }
    return text;
}

static void random_number(struct values *v, const struct ml_layout *layout, void *to) {
    uint64_t number = next_number(v);
    if (layout->kind == ML_LAYOUT_INT && (next(v) & 1) != 0) {
        number = 0 - number;
    }
    memcpy(to, &number, layout->size_bytes);
}

static void random_float(struct values *v, const struct ml_layout *layout, void *to) {
    double wide = (double)(int64_t)next(v) / 3;
    const float narrow = (float)wide;
    const void *from = layout->size_bytes == sizeof(narrow) ? (const void *)&narrow : &wide;
    memcpy(to, from, layout->size_bytes);
}

static void random_array(struct values *v, const struct ml_layout *layout, void *to) {
    struct ml_slice slice = {.count = next_count(v, layout)};
    uint8_t *items = pool_take(v->pool, (size_t)slice.count * layout->entry_bytes);
    for (uint32_t i = 0; i < slice.count; i++) {
        values_random(v, layout->value, items + (size_t)i * layout->entry_bytes);
    }
    slice.items = items;
    memcpy(to, &slice, sizeof(slice));
}

/* Keys by ascending chance: one that does not rise is left out. */
static void random_map(struct values *v, const struct ml_layout *layout, void *to) {
    struct ml_slice slice = {0};
    const uint32_t count = next_count(v, layout);
    uint8_t *entries = pool_take(v->pool, (size_t)count * layout->entry_bytes);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *entry = entries + (size_t)slice.count * layout->entry_bytes;
        values_random(v, layout->key, entry);
        if (slice.count > 0 &&
            ml_layout_key_compare(layout->key, entry - layout->entry_bytes, entry) >= 0) {
            continue;
        }
        values_random(v, layout->value, entry + layout->value_offset);
        slice.count++;
    }
    slice.items = entries;
    memcpy(to, &slice, sizeof(slice));
}

static void random_struct(struct values *v, const struct ml_layout *layout, uint8_t *to) {
    for (uint32_t i = 0; i < layout->count; i++) {
        const struct ml_layout_field *field = &layout->fields[i];
        if (field->has_offset != ML_LAYOUT_NOT_NULLABLE) {
            const bool has = (next(v) & 1) != 0;
            memcpy(to + field->has_offset, &has, sizeof(has));
            if (!has) {
                continue;
            }
        }
        values_random(v, field->type, to + field->offset);
    }
}

void values_random(struct values *v, const struct ml_layout *layout, void *to) {
    const struct ml_layout_field *member = NULL;
    struct ml_string text = {0};
    switch (layout->kind) {
    case ML_LAYOUT_BOOL:
        memcpy(to, &(bool){(next(v) & 1) != 0}, sizeof(bool));
        break;
    case ML_LAYOUT_INT:
    case ML_LAYOUT_UINT:
        random_number(v, layout, to);
        break;
    case ML_LAYOUT_FLOAT:
        random_float(v, layout, to);
        break;
    case ML_LAYOUT_ENUM:
        memcpy(to, &layout->values[next(v) % layout->count], layout->size_bytes);
        break;
    case ML_LAYOUT_STRING:
    case ML_LAYOUT_BYTES: /* ml_bytes has the same shape */
        text.count_bytes = next_count(v, layout);
        text.data = (const char *)next_text(v, text.count_bytes, layout->kind == ML_LAYOUT_STRING);
        memcpy(to, &text, sizeof(text));
        break;
    case ML_LAYOUT_ARRAY:
        random_array(v, layout, to);
        break;
    case ML_LAYOUT_MAP:
        random_map(v, layout, to);
        break;
    case ML_LAYOUT_STRUCT:
        random_struct(v, layout, to);
        break;
    case ML_LAYOUT_UNION:
        member = &layout->fields[next(v) % layout->count];
        memcpy(to, &member->min_version, sizeof(member->min_version));
        values_random(v, member->type, (uint8_t *)to + member->offset);
        break;
    case ML_LAYOUT_HANDLE:
        memcpy(to, &(int){100 + (int)(next(v) % 100)}, sizeof(int));
        break;
    }
}

static bool slices_equal(const struct ml_layout *layout, const void *a, const void *b) {
    struct ml_slice left = {0};
    struct ml_slice right = {0};
    memcpy(&left, a, sizeof(left));
    memcpy(&right, b, sizeof(right));
    bool equal = left.count == right.count;
    for (uint32_t i = 0; i < left.count && equal; i++) {
        const uint8_t *from = (const uint8_t *)left.items + (size_t)i * layout->entry_bytes;
        const uint8_t *with = (const uint8_t *)right.items + (size_t)i * layout->entry_bytes;
        if (layout->kind == ML_LAYOUT_MAP) {
            equal = values_equal(layout->key, from, with);
        }
        equal =
            equal &&
            values_equal(layout->value, from + layout->value_offset, with + layout->value_offset);
    }
    return equal;
}

static bool structs_equal(const struct ml_layout *layout, const uint8_t *a, const uint8_t *b) {
    bool equal = true;
    for (uint32_t i = 0; i < layout->count && equal; i++) {
        const struct ml_layout_field *field = &layout->fields[i];
        if (field->has_offset != ML_LAYOUT_NOT_NULLABLE) {
            equal = a[field->has_offset] == b[field->has_offset];
            if (!equal || a[field->has_offset] == 0) {
                continue;
            }
        }
        equal = values_equal(field->type, a + field->offset, b + field->offset);
    }
    return equal;
}

bool values_equal(const struct ml_layout *layout, const void *a, const void *b) {
    struct ml_string left = {0};
    struct ml_string right = {0};
    uint32_t tag = 0;
    const struct ml_layout_field *member = NULL;
    switch (layout->kind) {
    case ML_LAYOUT_STRING:
    case ML_LAYOUT_BYTES:
        memcpy(&left, a, sizeof(left));
        memcpy(&right, b, sizeof(right));
        return left.count_bytes == right.count_bytes &&
               (left.count_bytes == 0 || memcmp(left.data, right.data, left.count_bytes) == 0);
    case ML_LAYOUT_ARRAY:
    case ML_LAYOUT_MAP:
        return slices_equal(layout, a, b);
    case ML_LAYOUT_STRUCT:
        return structs_equal(layout, a, b);
    case ML_LAYOUT_UNION:
        memcpy(&tag, a, sizeof(tag));
        member = ml_layout_member(layout, tag);
        return memcmp(a, b, sizeof(tag)) == 0 && member != NULL &&
               values_equal(
                   member->type,
                   (const uint8_t *)a + member->offset,
                   (const uint8_t *)b + member->offset
               );
    default:
        return memcmp(a, b, layout->size_bytes) == 0;
    }
}
