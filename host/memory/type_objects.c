#include "host/memory/type_objects.h"

#include <unistd.h>

enum {
    PAGE_BYTES = 4096,
    WORD_BYTES = sizeof(uint64_t),
    PRESENT_BIT = 63, /* of pagemap's entry of a page */
    TYPES_MAX = 3     /* of a type, of a class of classes, and that one's */
};

static bool is_present(const struct ml_type_objects *objects, uint64_t address) {
    uint64_t entry = 0;
    const off_t at = (off_t)(address / PAGE_BYTES * sizeof(entry));
    return pread(objects->pages_fd, &entry, sizeof(entry), at) == (ssize_t)sizeof(entry) &&
           (entry >> PRESENT_BIT) != 0;
}

/* The address of the type of the object there; 0: it cannot be read. */
static uint64_t type_of(const struct ml_type_objects *objects, uint64_t object) {
    uint64_t type = 0;
    const uint64_t address = object + WORD_BYTES;
    if (address % WORD_BYTES != 0 || address > INT64_MAX || !is_present(objects, address) ||
        pread(objects->memory_fd, &type, sizeof(type), (off_t)address) != (ssize_t)sizeof(type)) {
        return 0;
    }
    return type;
}

static bool is_type(const struct ml_type_objects *objects, uint64_t address) {
    for (int i = 0; i < TYPES_MAX && address != 0; i++) {
        const uint64_t type = type_of(objects, address);
        if (type == address) {
            return true;
        }
        address = type;
    }
    return false;
}

bool ml_type_objects_has(struct ml_type_objects *objects, uint64_t address) {
    struct ml_type_object_answer *kept =
        &objects->kept[(address / WORD_BYTES) % ML_TYPE_OBJECTS_KEPT];
    if (kept->address != address) {
        *kept =
            (struct ml_type_object_answer){.address = address, .is_one = is_type(objects, address)};
    }
    return kept->is_one;
}
