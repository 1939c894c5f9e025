#include "base/entry/families.h"

#include <string.h>

#include "base/entry/elf_functions.h"
#include "base/entry/reach.h"

_Static_assert(
    (int)ML_FAMILIES_TRAMPOLINE_AT + (int)ML_ENTRY_TRAMPOLINE_MAX <= (int)ML_FAMILIES_ROOM_BYTES,
    "it fits"
);

/* An executable has an allocator by libc's names only if it has all of these. One that defines a
 * few of them passes calls on, or uses them for itself. */
enum { BASICS = 4, BASIC_BYTES = 8 };
static const char basics[BASICS][BASIC_BYTES] = {"malloc", "free", "calloc", "realloc"};

static uint32_t basic_of(const char *name) {
    for (uint32_t i = 0; i < BASICS; i++) {
        if (strcmp(name, basics[i]) == 0) {
            return 1U << i;
        }
    }
    return 0;
}

static struct ml_allocator_family *family_at(struct ml_families *families, uint8_t number) {
    while (families->families[number].joined != number) {
        number = families->families[number].joined;
    }
    return &families->families[number];
}

struct ml_allocator_family *
ml_families_of(struct ml_families *families, const struct ml_families_function *function) {
    return family_at(families, function->family);
}

bool ml_families_takes(struct ml_families *families, const struct ml_families_function *function) {
    return ml_families_of(families, function)->is_wanted && function->refusal == ML_ENTRY_PLANNED;
}

static void join(struct ml_allocator_family *into, struct ml_allocator_family *other) {
    if (into != other) {
        into->acts |= other->acts;
        into->basic |= other->basic;
        into->is_prefixed = into->is_prefixed || other->is_prefixed;
        other->joined = into->joined;
    }
}

/* Two names of one address are one function. */
static const struct ml_families_function *
function_at(const struct ml_families *families, uint64_t address) {
    for (uint32_t i = 0; i < families->count; i++) {
        if (families->functions[i].address == address) {
            return &families->functions[i];
        }
    }
    return NULL;
}

static bool is_served(const struct ml_families *families, const char *name) {
    return families->is_served != NULL && families->is_served(name);
}

/* What a sanitizer's run-time always has. It wants to be the first to see each call, its own, too.
 */
enum { SANITIZERS = 5, SANITIZER_BYTES = 16 };
static const char sanitizers[SANITIZERS][SANITIZER_BYTES] = {
    "__asan_init", "__hwasan_init", "__lsan_init", "__msan_init", "__tsan_init"};

static bool is_sanitizers(const char *name) {
    for (uint32_t i = 0; i < SANITIZERS && name[0] == '_' && name[1] == '_'; i++) {
        if (strcmp(name, sanitizers[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_part(const char *name, const char *part) {
    const size_t part_bytes = strlen(part);
    for (const char *at = name; *at != 0; at++) {
        if (strncmp(at, part, part_bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the name says that memory comes or goes. `mi_new` and `tc_delete` may be a menu's and a
 * cache's, with other parameters: beside such names alone there is no allocator. */
static bool says_memory(const char *name) {
    return has_part(name, "alloc") || has_part(name, "free") || name[0] == '_'; /* an operator */
}

static bool add(void *context, const struct ml_elf_function *function) {
    struct ml_families *families = context;
    struct ml_allocator_function as;
    if (is_sanitizers(function->name)) {
        families->has_sanitizer = true;
        return false;
    }
    if (!ml_allocator_function_of(function->name, function->name_bytes, &families->given, &as) ||
        is_served(families, function->name)) {
        return true;
    }
    struct ml_allocator_family *family = family_at(families, as.family);
    if (says_memory(function->name + as.prefix_bytes)) {
        family->acts |= 1U << as.call.act;
    }
    family->basic |= basic_of(function->name);
    family->is_prefixed = family->is_prefixed || as.family != 0;
    const uint64_t address = families->base + function->address;
    const struct ml_families_function *same =
        function->is_indirect ? NULL : function_at(families, address);
    if (same != NULL) {
        join(family_at(families, same->family), family);
    } else if (families->count == ML_FAMILIES_FUNCTIONS_MAX) {
        families->has_too_many = true;
    } else {
        families->functions[families->count++] = (struct ml_families_function
        ){.name = function->name,
          .address = address,
          .size_bytes = function->size,
          .family = as.family,
          .call = as.call,
          .refusal = function->is_indirect ? ML_ENTRY_CHOSEN : ML_ENTRY_NOT_READABLE};
    }
    return true;
}

bool ml_families_has_basics(const struct ml_allocator_family *family) {
    return family->basic == (1U << BASICS) - 1;
}

/* Whether blocks are seen as they come and as they go. A library's malloc and free are hooked by
 * their names. */
static bool is_whole(const struct ml_families *families, const struct ml_allocator_family *family) {
    const uint32_t both = 1U << ML_ALLOCATOR_ALLOCATE | 1U << ML_ALLOCATOR_RELEASE;
    return (family->acts & both) == both &&
           (families->is_library || family->is_prefixed || ml_families_has_basics(family));
}

bool ml_families_find(struct ml_families *families) {
    bool any = false;
    for (uint32_t i = 0; i < ML_FAMILIES_MAX; i++) {
        families->families[i] = (struct ml_allocator_family){.joined = (uint8_t)i};
    }
    families->count = 0;
    families->has_too_many = false;
    families->has_sanitizer = false;
    (void)ml_elf_functions_each(families->file, families->file_bytes, add, families);
    const bool may_be = !families->has_too_many && !families->has_sanitizer;
    for (uint32_t i = 0; i < ML_FAMILIES_MAX && may_be; i++) {
        struct ml_allocator_family *family = &families->families[i];
        family->is_wanted = family->joined == i && is_whole(families, family);
        any = any || family->is_wanted;
    }
    return any;
}

/* ---- how */

static const struct ml_families_code *
code_at(const struct ml_families *families, uint64_t address) {
    for (uint32_t i = 0; i < families->code_count; i++) {
        if (address - families->code[i].address < families->code[i].count_bytes) {
            return &families->code[i];
        }
    }
    return NULL;
}

/* From the entry to the end of what is moved. */
static bool is_as_in_file(
    const struct ml_families_code *text, size_t inside, const struct ml_families_function *one
) {
    const size_t bytes = (size_t)(one->plan.at - one->address) + one->plan.moved_bytes;
    return text->loaded == NULL || memcmp(text->loaded + inside, text->bytes + inside, bytes) == 0;
}

static void
plan(const struct ml_families *families, struct ml_families_function *one, uint64_t room) {
    const struct ml_families_code *text = code_at(families, one->address);
    if (text == NULL) {
        return;
    }
    const size_t inside = (size_t)(one->address - text->address);
    const struct ml_entry_function function = {
        .code = text->bytes + inside,
        .code_bytes = text->count_bytes - inside,
        .address = one->address,
        .size = one->size_bytes,
        .text = text->bytes,
        .text_bytes = text->count_bytes,
        .text_address = text->address,
        .may_push_calls = families->may_push_calls,
    };
    one->refusal = ml_entry_plan(&function, room, room + ML_FAMILIES_TRAMPOLINE_AT, &one->plan);
    if (one->refusal == ML_ENTRY_PLANNED && !ml_entry_reaches_out(&function)) {
        one->keeps = families->may_keep;
        one->refusal = families->may_keep ? ML_ENTRY_PLANNED : ML_ENTRY_KNOWN;
    }
    if (one->refusal == ML_ENTRY_PLANNED && !is_as_in_file(text, inside, one)) {
        one->refusal = ML_ENTRY_CHANGED;
    }
}

/* A planned function within whose first bytes another one begins is too short: that one would be
 * written over. */
static bool check(void *context, const struct ml_elf_function *function) {
    struct ml_families *families = context;
    const uint64_t address = families->base + function->address;
    for (uint32_t i = 0; i < families->count; i++) {
        struct ml_families_function *one = &families->functions[i];
        if (one->refusal == ML_ENTRY_PLANNED && ml_entry_plan_covers(&one->plan, address)) {
            one->refusal = ML_ENTRY_SHORT;
        }
    }
    return true;
}

/* Without this function the family would be seen in part. One that its callers know is left alone
 * with all others: it is a small allocator's, whose functions know each other. So is one that
 * somebody else counts or stops at, which may be called most of all. */
static bool is_missed(const struct ml_families_function *one) {
    return one->refusal != ML_ENTRY_PLANNED &&
           (one->call.is_needed || one->refusal == ML_ENTRY_KNOWN ||
            one->refusal == ML_ENTRY_CHANGED);
}

/* A family that would be seen in part is left alone. */
static void judge(struct ml_families *families) {
    for (uint32_t i = 0; i < families->count; i++) {
        const struct ml_families_function *one = &families->functions[i];
        struct ml_allocator_family *family = ml_families_of(families, one);
        if (family->is_wanted && is_missed(one)) {
            family->is_wanted = false;
            family->refused = one;
        }
    }
}

uint32_t ml_families_plan(struct ml_families *families, uint64_t room) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < families->count; i++) {
        struct ml_families_function *one = &families->functions[i];
        if (ml_families_of(families, one)->is_wanted && one->refusal != ML_ENTRY_CHOSEN) {
            plan(families, one, room + (uint64_t)i * ML_FAMILIES_ROOM_BYTES);
        }
    }
    (void)ml_elf_functions_each(families->file, families->file_bytes, check, families);
    judge(families);
    for (uint32_t i = 0; i < families->count; i++) {
        count += ml_families_takes(families, &families->functions[i]);
    }
    return count;
}
