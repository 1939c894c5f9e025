#include "client/recording/loader.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/auxv.h>

#include "client/recording/record.h"
#include "client/state/process.h"
#include "client/symbols/loaded.h"

enum {
    PLACES_MAX = 16,
    /* The descriptor has some 2.3 KiB, and blocks that the loader takes one after the other lie
     * side by side. What is farther away is somewhere else. */
    NEAR_BYTES = 64 << 10,
    /* What it knows of an object begins with the public part and has some 1.1 KiB. */
    OBJECT_BYTES = 1024,
    OBJECTS_MAX = 4096
};

static struct { uintptr_t start, end; } places[PLACES_MAX];
static uint32_t places_count;

/* Two places that touch are one. What finds no room is not told. */
static void add(uintptr_t first, uintptr_t last) {
    const uintptr_t mask = ML_MAPPING_PAGE_BYTES - 1;
    const uintptr_t start = first & ~mask;
    const uintptr_t end = (last | mask) + 1;
    for (uint32_t i = 0; i < places_count; i++) {
        if (start <= places[i].end && places[i].start <= end) {
            places[i].start = start < places[i].start ? start : places[i].start;
            places[i].end = end > places[i].end ? end : places[i].end;
            return;
        }
    }
    if (places_count < PLACES_MAX) {
        places[places_count].start = start;
        places[places_count].end = end;
        places_count++;
    }
}

/* One block has the thread's variables and, behind them, its descriptor; the next one the vector of
 * modules' variables. The descriptor begins as the ABI says: with its own address and that of the
 * vector. */
static void add_thread(void) {
    enum { OWN_ADDRESS, VECTOR };
    const uintptr_t *descriptor = (const uintptr_t *)(uintptr_t)pthread_self();
    const uintptr_t own = (uintptr_t)descriptor;
    const uintptr_t variables[] = {(uintptr_t)&errno, (uintptr_t)ml_this_thread()};
    uintptr_t first = own;
    uintptr_t last = own;
    if (descriptor[OWN_ADDRESS] != own) {
        return;
    }
    for (uint32_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        if (variables[i] < first && own - variables[i] < NEAR_BYTES) {
            first = variables[i];
        }
    }
    if (descriptor[VECTOR] > own && descriptor[VECTOR] - own < NEAR_BYTES) {
        last = descriptor[VECTOR];
    }
    add(first, last);
}

/* Of the objects that the program starts with. That of the loader itself lies in its own data. */
static void add_objects(void) {
    const struct link_map *map = ml_loaded_first();
    const uintptr_t own_base = getauxval(AT_BASE);
    for (uint32_t i = 0; map != NULL && i < OBJECTS_MAX; i++, map = map->l_next) {
        if (map->l_addr != own_base) {
            add((uintptr_t)map, (uintptr_t)map + OBJECT_BYTES - 1);
        }
    }
}

void ml_loader_find(void) {
    if (ml_sys0(SYS_gettid) == ml_sys0(SYS_getpid)) {
        add_thread();
        add_objects();
    }
}

void ml_loader_record(struct ml_lane *lane) {
    static const char name[] = "loader";
    const uint32_t string =
        places_count > 0 ? ml_record_string(lane, (const uint8_t *)name, sizeof(name) - 1) : 0;
    for (uint32_t i = 0; i < places_count; i++) {
        struct ml_event event = {.kind = ML_EVENT_MAPPING};
        event.mapping = (struct ml_event_mapping
        ){.kind = ML_MAPPING_MAP,
          .address = places[i].start,
          .length_bytes = places[i].end - places[i].start,
          .flags = ML_MAPPING_EARLY};
        ml_lane_record(lane, &event);
        event.mapping.kind = ML_MAPPING_NAME;
        event.mapping.flags = 0;
        event.mapping.string_id = string;
        if (string != 0) {
            ml_lane_record(lane, &event);
        }
    }
}
