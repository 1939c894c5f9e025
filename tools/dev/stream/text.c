#include "tools/dev/stream/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a field is written. */
enum form {
    FORM_DECIMAL,
    FORM_HEX,
    FORM_SIGNED,
    FORM_WORD,  /* a word of `words`, at the index of its number */
    FORM_BYTES, /* hexadecimal; pointer at offset, u32 count at count_offset */
    FORM_TEXT   /* in quotes; likewise */
};

struct field {
    const char *name;
    enum form form;
    size_t offset, width;
    size_t count_offset;
    const char *const *words;
    uint64_t fallback; /* when it is left out; then it is not written either */
};

struct kind {
    enum ml_event_kind kind;
    const struct field *fields;
    size_t count;
};

#define AT(member) offsetof(struct ml_event, member), sizeof(((struct ml_event *)0)->member)
#define DECIMAL(name, member)                                                                      \
    { name, FORM_DECIMAL, AT(member), 0, NULL, 0 }
#define DEFAULT(name, member, value)                                                               \
    { name, FORM_DECIMAL, AT(member), 0, NULL, value }
#define HEX(name, member)                                                                          \
    { name, FORM_HEX, AT(member), 0, NULL, 0 }
#define WORD(name, member, words)                                                                  \
    { name, FORM_WORD, AT(member), 0, words, 0 }
#define BLOB(name, form, member, count)                                                            \
    { name, form, AT(member), offsetof(struct ml_event, count), NULL, 0 }

static const char *const clock_words[] = {"tsc", "monotonic", NULL};
static const char *const mode_words[] = {
    "native", "native-with-thread-names", "pseudo", "mixed", NULL};
static const char *const frame_words[] = {
    "address", "thread", "scope", "cut", "broken", "script", NULL};
static const char *const end_words[] = {"exit", "exec", NULL};
static const char *const loss_words[] = {"overrun", "no-lane", "no-node", "nested", NULL};
/* By the number of ML_BLOCK_*; a free has two of them. */
static const char *const free_words[] = {
    "none", "-", "skipped", "-", "unsure", "-", "skipped-unsure", NULL};
static const char *const mapping_words[] = {"map", "unmap", "moved", "name", "stack", NULL};

static const struct field start_fields[] = {
    DEFAULT("version", start.version, ML_STREAM_VERSION),
    WORD("clock", start.clock, clock_words),
    DECIMAL("pid", start.pid),
    DECIMAL("thread", start.thread_id),
    DECIMAL("ticks", start.ticks),
    DECIMAL("monotonic_ns", start.monotonic_ns),
    DEFAULT("sampling_bytes", start.sampling_bytes, 1),
    WORD("stack_mode", start.stack_mode, mode_words),
    DECIMAL("page_bytes", start.page_bytes),
    DECIMAL("fork_serial", start.fork_serial),
};
static const struct field thread_fields[] = {
    DECIMAL("id", thread.thread_id),
    BLOB("name", FORM_TEXT, thread.name, thread.name_bytes),
};
static const struct field module_fields[] = {
    DECIMAL("id", module.id),
    HEX("start", module.start),
    HEX("end", module.end),
    {"bias", FORM_SIGNED, AT(module.bias), 0, NULL, 0},
    BLOB("build_id", FORM_BYTES, module.build_id, module.build_id_bytes),
    BLOB("path", FORM_TEXT, module.path, module.path_bytes),
    HEX("code_address", module.code_address),
    HEX("code_offset", module.code_offset),
};
static const struct field string_fields[] = {
    DECIMAL("id", name.id),
    BLOB("text", FORM_TEXT, name.bytes, name.bytes_count),
};
static const struct field name_fields[] = {
    DECIMAL("id", name.id),
    DECIMAL("string", name.string_id),
};
static const struct field sampling_fields[] = {
    DECIMAL("time", time), DECIMAL("bytes", sampling_bytes)};
static const struct field fork_fields[] = {DECIMAL("time", time), DECIMAL("serial", fork_serial)};
static const struct field reaped_fields[] = {DECIMAL("time", time), DECIMAL("pid", reaped_pid)};
static const struct field end_fields[] = {DECIMAL("time", time), WORD("kind", end_kind, end_words)};
static const struct field mapping_fields[] = {
    DECIMAL("time", time),
    WORD("kind", mapping.kind, mapping_words),
    HEX("address", mapping.address),
    DECIMAL("length", mapping.length_bytes),
    DECIMAL("flags", mapping.flags),
    DECIMAL("node", mapping.node),
    DECIMAL("string", mapping.string_id),
};
static const struct field unload_fields[] = {
    DECIMAL("time", time), DECIMAL("module", unload_module)};
static const struct field loss_fields[] = {
    DECIMAL("time", time), WORD("reason", loss.reason, loss_words), DECIMAL("count", loss.count)};
/* Without weights the block was not sampled and stands for itself: filled in behind the table. */
static const struct field alloc_fields[] = {
    DECIMAL("time", time),
    HEX("address", block.address),
    DECIMAL("size", block.size_bytes),
    DECIMAL("node", block.node),
    DECIMAL("heap", block.heap),
    DECIMAL("type", block.type),
    DEFAULT("weight_bytes", block.weight_bytes, UINT64_MAX),
    DEFAULT("weight_blocks", block.weight_blocks, 1),
};
static const struct field free_fields[] = {
    DECIMAL("time", time),
    HEX("address", block.address),
    DECIMAL("heap", block.heap),
    WORD("marks", block.marks, free_words),
};
static const struct field cancel_fields[] = {DECIMAL("time", time)};
static const struct field node_fields[] = {
    DECIMAL("id", node.id),
    DECIMAL("parent", node.parent),
    WORD("frame", node.frame, frame_words),
    DECIMAL("module", node.module),
    HEX("address", node.address),
    DECIMAL("string", node.string_id),
};

#define KIND(kind, fields)                                                                         \
    { kind, fields, sizeof(fields) / sizeof(*(fields)) }
static const struct kind kinds[] = {
    KIND(ML_EVENT_START, start_fields),
    KIND(ML_EVENT_THREAD, thread_fields),
    KIND(ML_EVENT_MODULE, module_fields),
    KIND(ML_EVENT_STRING, string_fields),
    KIND(ML_EVENT_TYPE, name_fields),
    KIND(ML_EVENT_HEAP, name_fields),
    KIND(ML_EVENT_SAMPLING, sampling_fields),
    KIND(ML_EVENT_FORK, fork_fields),
    KIND(ML_EVENT_REAPED, reaped_fields),
    KIND(ML_EVENT_END, end_fields),
    KIND(ML_EVENT_MAPPING, mapping_fields),
    KIND(ML_EVENT_UNLOAD, unload_fields),
    KIND(ML_EVENT_LOSS, loss_fields),
    KIND(ML_EVENT_ALLOC, alloc_fields),
    KIND(ML_EVENT_FREE, free_fields),
    KIND(ML_EVENT_RESIZE, free_fields),
    KIND(ML_EVENT_CANCEL, cancel_fields),
    KIND(ML_EVENT_NODE, node_fields),
};

/* ---- fields of a struct ml_event */

static uint64_t get(const struct ml_event *event, const struct field *field) {
    const char *at = (const char *)event + field->offset;
    uint64_t value = 0;
    memcpy(&value, at, field->width); /* little-endian: ipc/wire/reader.c insists */
    return value;
}

/* False if it does not fit. */
static int set(struct ml_event *event, const struct field *field, uint64_t value) {
    if (field->width < sizeof(value) && value >> (8 * field->width) != 0) {
        return 0;
    }
    memcpy((char *)event + field->offset, &value, field->width);
    return 1;
}

/* ---- parsing */

static int parse_number(const char *text, size_t length, enum form form, uint64_t *out_value) {
    char copy[32];
    if (length == 0 || length >= sizeof(copy)) {
        return 0;
    }
    memcpy(copy, text, length);
    copy[length] = 0;
    char *end = NULL;
    errno = 0;
    if (form == FORM_SIGNED) {
        *out_value = (uint64_t)strtoll(copy, &end, 0);
    } else {
        if (copy[0] == '-' || copy[0] == '+') {
            return 0;
        }
        *out_value = strtoull(copy, &end, 0);
    }
    return errno == 0 && *end == 0;
}

static int is_word(const char *word, const char *text, size_t length) {
    return strlen(word) == length && strncmp(word, text, length) == 0;
}

static int
parse_word(const char *text, size_t length, const char *const *words, uint64_t *out_value) {
    for (uint64_t i = 0; words[i] != NULL; i++) {
        if (is_word(words[i], text, length)) {
            *out_value = i;
            return 1;
        }
    }
    return 0;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int add_byte(struct ml_stream_scratch *scratch, int byte) {
    if (byte < 0 || scratch->used_bytes == sizeof(scratch->bytes)) {
        return 0;
    }
    scratch->bytes[scratch->used_bytes++] = (uint8_t)byte;
    return 1;
}

static int hex_pair(const char *text) {
    const int high = hex_digit(text[0]);
    const int low = high < 0 ? -1 : hex_digit(text[1]);
    return low < 0 ? -1 : high * 16 + low;
}

int ml_stream_text_bytes(const char *text, size_t length, struct ml_stream_scratch *scratch) {
    for (size_t i = 0; i < length; i += text[i] == ' ' ? 1 : 2) {
        if (text[i] != ' ' && (i + 1 == length || !add_byte(scratch, hex_pair(text + i)))) {
            return 0;
        }
    }
    return 1;
}

/* Text behind its opening quote; *out_end is behind the closing one. */
static int parse_text(const char *text, struct ml_stream_scratch *scratch, const char **out_end) {
    while (*text != '"') {
        int byte = (unsigned char)*text;
        if (*text == 0) {
            return 0;
        }
        if (*text == '\\') {
            text++;
            if (*text == 'x') {
                byte = hex_pair(text + 1);
                text += byte < 0 ? 0 : 2;
            } else {
                byte = *text == '"' || *text == '\\' ? *text : -1;
            }
        }
        if (!add_byte(scratch, byte)) {
            return 0;
        }
        text++;
    }
    *out_end = text + 1;
    return 1;
}

/* The value at `text`; *out_end is behind it. */
static int parse_value(
    const char *text,
    const struct field *field,
    struct ml_stream_scratch *scratch,
    struct ml_event *event,
    const char **out_end
) {
    const size_t length = strcspn(text, " ");
    uint64_t value = 0;
    *out_end = text + length;
    if (field->form == FORM_WORD) {
        return parse_word(text, length, field->words, &value) && set(event, field, value);
    }
    if (field->form != FORM_BYTES && field->form != FORM_TEXT) {
        return parse_number(text, length, field->form, &value) && set(event, field, value);
    }
    const uint8_t *bytes = scratch->bytes + scratch->used_bytes;
    if (field->form == FORM_TEXT ? *text != '"' || !parse_text(text + 1, scratch, out_end)
                                 : !ml_stream_text_bytes(text, length, scratch)) {
        return 0;
    }
    const uint32_t count = (uint32_t)(scratch->bytes + scratch->used_bytes - bytes);
    memcpy((char *)event + field->offset, &bytes, sizeof(bytes));
    memcpy((char *)event + field->count_offset, &count, sizeof(count));
    return 1;
}

static const struct field *find_field(const struct kind *kind, const char *name, size_t length) {
    for (size_t i = 0; i < kind->count; i++) {
        if (is_word(kind->fields[i].name, name, length)) {
            return &kind->fields[i];
        }
    }
    return NULL;
}

static enum ml_status
wrong(struct ml_stream_scratch *scratch, const char *what, const char *text, size_t length) {
    snprintf(scratch->error, sizeof(scratch->error), "%s: '%.*s'", what, (int)length, text);
    return ML_PEER_FORM;
}

static enum ml_status parse_fields(
    const char *text,
    const struct kind *kind,
    struct ml_stream_scratch *scratch,
    struct ml_event *event
) {
    while (*text != 0) {
        text += strspn(text, " ");
        const size_t length = strcspn(text, "= ");
        if (length == 0) {
            break;
        }
        const struct field *field = find_field(kind, text, length);
        if (field == NULL || text[length] != '=') {
            return wrong(scratch, "no field of this kind", text, length);
        }
        const char *end = NULL;
        if (!parse_value(text + length + 1, field, scratch, event, &end) ||
            (*end != 0 && *end != ' ')) {
            return wrong(scratch, "not a value of its field", text, strcspn(text, " "));
        }
        text = end;
    }
    return ML_OK;
}

enum ml_status ml_stream_text_parse(
    const char *line, struct ml_stream_scratch *scratch, struct ml_event *out_event
) {
    const size_t length = strcspn(line, " ");
    const struct kind *kind = NULL;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (is_word(ml_event_kind_name(kinds[i].kind), line, length)) {
            kind = &kinds[i];
        }
    }
    scratch->used_bytes = 0;
    if (kind == NULL) {
        return wrong(scratch, "no kind of record", line, length);
    }
    struct ml_event event;
    memset(&event, 0, sizeof(event));
    event.kind = kind->kind;
    for (size_t i = 0; i < kind->count; i++) {
        if (kind->fields[i].fallback != 0) {
            (void)set(&event, &kind->fields[i], kind->fields[i].fallback);
        }
    }
    const enum ml_status status = parse_fields(line + length, kind, scratch, &event);
    if (status != ML_OK) {
        return status;
    }
    if (event.kind == ML_EVENT_ALLOC && event.block.weight_bytes == UINT64_MAX) {
        event.block.weight_bytes = event.block.size_bytes;
    } else if (event.kind == ML_EVENT_ALLOC) {
        event.block.marks = ML_BLOCK_SAMPLED;
    }
    *out_event = event;
    return ML_OK;
}

int ml_stream_text_number(const char *line, const char *name, uint64_t *out_value) {
    const size_t name_length = strlen(name);
    for (const char *at = line; *at != 0; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (strncmp(at, name, name_length) == 0 && at[name_length] == '=') {
            const char *value = at + name_length + 1;
            return parse_number(value, strcspn(value, " "), FORM_DECIMAL, out_value);
        }
    }
    return 0;
}

/* ---- formatting */

static char *format_text(char *at, const uint8_t *bytes, uint32_t count) {
    *at++ = '"';
    for (uint32_t i = 0; i < count; i++) {
        if (bytes[i] == '"' || bytes[i] == '\\') {
            *at++ = '\\';
            *at++ = (char)bytes[i];
        } else if (bytes[i] < ' ' || bytes[i] > '~') {
            at += sprintf(at, "\\x%02x", bytes[i]);
        } else {
            *at++ = (char)bytes[i];
        }
    }
    *at++ = '"';
    return at;
}

static char *format_field(char *at, const struct ml_event *event, const struct field *field) {
    const uint64_t value = get(event, field);
    at += sprintf(at, " %s=", field->name);
    switch (field->form) {
    case FORM_DECIMAL:
        return at + sprintf(at, "%llu", (unsigned long long)value);
    case FORM_HEX:
        return at + sprintf(at, "0x%llx", (unsigned long long)value);
    case FORM_SIGNED:
        return at + sprintf(at, "%lld", (long long)value);
    case FORM_WORD:
        return at + sprintf(at, "%s", field->words[value]);
    default:
        break;
    }
    const uint8_t *bytes = NULL;
    uint32_t count = 0;
    memcpy(&bytes, (const char *)event + field->offset, sizeof(bytes));
    memcpy(&count, (const char *)event + field->count_offset, sizeof(count));
    if (field->form == FORM_TEXT) {
        return format_text(at, bytes, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        at += sprintf(at, "%02x", bytes[i]);
    }
    return at;
}

/* Whether the field says nothing that its being left out would not. */
static int is_default(const struct ml_event *event, const struct field *field) {
    if (event->kind == ML_EVENT_ALLOC && field->fallback == UINT64_MAX) {
        return event->block.marks == 0;
    }
    if (field->form == FORM_TEXT || field->form == FORM_BYTES) {
        uint32_t count = 0;
        memcpy(&count, (const char *)event + field->count_offset, sizeof(count));
        return count == 0;
    }
    return get(event, field) == field->fallback;
}

void ml_stream_text_format(const struct ml_event *event, char *line) {
    char *at = line + sprintf(line, "%s", ml_event_kind_name(event->kind));
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        for (size_t f = 0; kinds[i].kind == event->kind && f < kinds[i].count; f++) {
            if (!is_default(event, &kinds[i].fields[f])) {
                at = format_field(at, event, &kinds[i].fields[f]);
            }
        }
    }
    *at = 0;
}
