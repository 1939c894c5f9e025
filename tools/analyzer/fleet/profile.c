#include "tools/analyzer/fleet/profile.h"

#include <string.h>

#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/upload/relocate.h"

void ml_fleet_places_fini(struct ml_fleet_places *places) {
    ml_index_fini(&places->index);
    free(places->places);
    free(places->frames);
    free(places->path);
    *places = (struct ml_fleet_places){.rows = places->rows};
}

static bool fail(struct ml_fleet_places *places) {
    places->rows->is_failed = true;
    return false;
}

static bool is_room(struct ml_fleet_places *places, size_t count) {
    places->rows->is_full = places->rows->is_full || count >= MEMLOG_FLEET_MAX_FRAMES;
    return !places->rows->is_full;
}

/* ---- places */

static uint64_t hash_of(uint64_t id) {
    return ml_hash(0, &id, sizeof id);
}

static const struct ml_fleet_place *place_of(const struct ml_fleet_places *places, uint64_t id) {
    const uint64_t hash = hash_of(id);
    size_t at = 0;
    uint32_t item = ml_index_first(&places->index, hash, &at);

    while (item != ML_INDEX_NONE && places->places[item].id != id) {
        item = ml_index_next(&places->index, hash, &at);
    }
    return item == ML_INDEX_NONE ? NULL : &places->places[item];
}

bool ml_fleet_place_add(struct ml_fleet_places *places, uint64_t id) {
    if (!is_room(places, places->count)) {
        return false;
    }
    if (!ML_GROW(places->places, places->capacity, places->count + 1) ||
        !ml_index_add(&places->index, hash_of(id), (uint32_t)places->count)) {
        return fail(places);
    }
    places->places[places->count++] =
        (struct ml_fleet_place){.id = id, .first = places->frames_count};
    return true;
}

bool ml_fleet_place_frame(struct ml_fleet_places *places, const struct ml_fleet_frame *frame) {
    if (!is_room(places, places->frames_count)) {
        return false;
    }
    if (!ML_GROW(places->frames, places->frames_capacity, places->frames_count + 1)) {
        return fail(places);
    }
    places->frames[places->frames_count++] = *frame;
    places->places[places->count - 1].count++;
    return true;
}

void ml_fleet_place_end(struct ml_fleet_places *places) {
    const struct ml_fleet_place *place = &places->places[places->count - 1];

    /* A place that stands for no stack has none. */
    for (size_t i = 0; i < place->count / 2; i++) {
        struct ml_fleet_frame *first = &places->frames[place->first + i];
        struct ml_fleet_frame *last = &places->frames[place->first + place->count - 1 - i];
        const struct ml_fleet_frame one = *first;
        *first = *last;
        *last = one;
    }
}

/* The ELF address of an address in a mapping. memlog's uploads say it by the mapping's number
 * (tools/analyzer/upload/relocate.h). Others: a program that lies below 4 GiB lies where it was
 * linked to; what is mapped elsewhere counts from its file's beginning. */
static uint64_t offset_of(const struct ml_fleet_mapping *mapping, uint64_t address) {
    const uint64_t fixed_end = (uint64_t)1 << 32;
    const uint64_t in_module = ((uint64_t)1 << ML_RELOCATE_BITS) - 1;

    if (mapping->id > 0 && mapping->start >> ML_RELOCATE_BITS == mapping->id) {
        return address & in_module;
    }
    return mapping->start < fixed_end ? address : address - mapping->start + mapping->offset;
}

struct ml_fleet_frame ml_fleet_frame_at(
    struct ml_fleet_rows *rows, const struct ml_fleet_mapping *mapping, uint64_t address
) {
    static const char nowhere[] = "[code in no file]";

    if (!mapping || (mapping->module == 0 && mapping->build_id == 0)) {
        return (struct ml_fleet_frame
        ){.function = ml_fleet_string(rows, nowhere, MEMLOG_FLEET_FRAME_FUNCTION_LIMIT)};
    }
    return (struct ml_fleet_frame
    ){.module = mapping->module,
      .build_id = mapping->build_id,
      .offset = offset_of(mapping, address)};
}

/* ---- stacks */

bool ml_fleet_path_add(void *context, uint64_t id) {
    struct ml_fleet_places *places = context;

    if (!ML_GROW(places->path, places->path_capacity, places->path_count + 1)) {
        return fail(places);
    }
    places->path[places->path_count++] = id;
    return true;
}

uint32_t ml_fleet_path_stack(struct ml_fleet_places *places, uint32_t thread) {
    struct ml_fleet_rows *rows = places->rows;
    uint32_t stack = ML_FLEET_NO_STACK;
    size_t depth = 0;

    if (thread != 0) {
        const struct ml_fleet_frame root = {.function = thread};
        stack = ml_fleet_stack(rows, stack, &root);
    }
    for (size_t i = places->path_count; i > 0 && depth < MEMLOG_FLEET_MAX_FRAMES_IN_STACK; i--) {
        const struct ml_fleet_place *place = place_of(places, places->path[i - 1]);
        for (size_t f = 0; place && f < place->count && depth < MEMLOG_FLEET_MAX_FRAMES_IN_STACK;
             f++, depth++) {
            stack = ml_fleet_stack(rows, stack, &places->frames[place->first + f]);
        }
    }
    places->path_count = 0;
    return stack;
}

/* ---- texts */

uint32_t ml_fleet_text(struct ml_fleet_rows *rows, struct ml_fleet_piece text, size_t most_bytes) {
    char plain[MEMLOG_FLEET_MAX_NAME_BYTES + 2]; /* one more than is kept: it shows the cut */
    const size_t room = sizeof plain - 1;
    const size_t count = text.count_bytes < room ? text.count_bytes : room;

    if (count > 0) {
        memcpy(plain, text.bytes, count);
    }
    plain[count] = '\0';
    return ml_fleet_string(rows, plain, most_bytes);
}

uint32_t ml_fleet_file(struct ml_fleet_rows *rows, struct ml_fleet_piece path) {
    const uint8_t *slash = path.count_bytes > 0 ? memrchr(path.bytes, '/', path.count_bytes) : NULL;

    if (slash) {
        path.count_bytes -= (size_t)(slash + 1 - path.bytes);
        path.bytes = slash + 1;
    }
    return ml_fleet_text(rows, path, MEMLOG_FLEET_FRAME_MODULE_LIMIT);
}

bool ml_fleet_is_text(struct ml_fleet_piece text, const char *word) {
    return text.count_bytes == strlen(word) &&
           (text.count_bytes == 0 || memcmp(text.bytes, word, text.count_bytes) == 0);
}

/* ---- the head */

static void
tell(struct ml_fleet_rows *rows, struct ml_string *to, struct ml_fleet_piece text, size_t most) {
    if (to->count_bytes == 0) {
        *to = ml_fleet_string_of(rows, ml_fleet_text(rows, text, most));
    }
}

static void tell_number(uint32_t *to, uint64_t number, uint32_t most) {
    if (*to == 0) {
        *to = number < most ? (uint32_t)number : most;
    }
}

/* What it costs may be 0. */
static void tell_cost(struct memlog_fleet_begin_request *head, uint64_t ppm) {
    if ((head->told & MEMLOG_FLEET_TOLD_COST) == 0) {
        head->told |= MEMLOG_FLEET_TOLD_COST;
        tell_number(&head->cost_ppm, ppm, ML_FLEET_PPM_MAX);
    }
}

static void
told_number(struct memlog_fleet_begin_request *head, enum ml_sender_word word, uint64_t number) {
    if (word == ML_SENDER_WEIGHT) {
        tell_number(&head->weight, number, UINT32_MAX);
    } else if (word == ML_SENDER_PROMISED) {
        tell_number(&head->promised_ppm, number, ML_FLEET_PPM_MAX);
    } else if (word == ML_SENDER_COST) {
        tell_cost(head, number);
    }
}

void ml_fleet_told(
    struct ml_fleet_rows *rows,
    enum ml_sender_word word,
    struct ml_fleet_piece text,
    const uint64_t *number
) {
    struct memlog_fleet_begin_request *head = &rows->head;

    switch (word) {
    case ML_SENDER_HOST:
        tell(rows, &head->host, text, MEMLOG_FLEET_BEGIN_REQUEST_HOST_LIMIT);
        break;
    case ML_SENDER_VERSION:
        tell(rows, &head->program_version, text, MEMLOG_FLEET_BEGIN_REQUEST_PROGRAM_VERSION_LIMIT);
        break;
    case ML_SENDER_REASON:
        tell(rows, &head->reason, text, MEMLOG_FLEET_BEGIN_REQUEST_REASON_LIMIT);
        break;
    case ML_SENDER_TRIGGER:
        tell(rows, &head->trigger, text, MEMLOG_FLEET_BEGIN_REQUEST_TRIGGER_LIMIT);
        break;
    default:
        if (number) {
            told_number(head, word, *number);
        }
    }
}

/* ---- figures */

uint64_t *ml_fleet_figure(
    struct memlog_fleet_figures *figures, struct ml_fleet_piece name, uint32_t *out_told
) {
    const struct {
        const char *name;
        uint64_t *figure;
        uint32_t told;
    } known[] = {
        {"inuse_space", &figures->live_bytes, MEMLOG_FLEET_TOLD_LIVE},
        {"inuse_objects", &figures->live_blocks, 0},
        {"alloc_space", &figures->total_bytes, MEMLOG_FLEET_TOLD_TOTAL},
        {"alloc_objects", &figures->total_blocks, 0},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (ml_fleet_is_text(name, known[i].name)) {
            *out_told |= known[i].told;
            return known[i].figure;
        }
    }
    return NULL;
}
