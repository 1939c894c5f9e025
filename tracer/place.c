#include "tracer/place.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tracer/process/memory.h"

enum { PAGE_BYTES = 4096 };

/* Over what is there, or where nothing is. */
enum how { OVER, FREE };

/* True: it is mapped there. A free place is wished for by its address: not all seccomp filters know
 * MAP_FIXED_NOREPLACE. */
static bool
map(struct ml_borrowed *borrowed, uint64_t at, uint64_t bytes, int protection, enum how how) {
    long result = 0;
    const uint64_t arguments[6] = {
        at,
        bytes,
        (uint64_t)protection,
        (uint64_t)(MAP_PRIVATE | MAP_ANONYMOUS | (how == OVER ? MAP_FIXED : 0)),
        (uint64_t)-1,
        0};
    if (!ml_borrow_call(borrowed, SYS_mmap, arguments, &result)) {
        return false;
    }
    borrowed->is_beaten = how == FREE && result > 0 && (uint64_t)result != at;
    if (borrowed->is_beaten) {
        const uint64_t wrong[6] = {(uint64_t)result, bytes, 0, 0, 0, 0};
        long ignored = 0;
        (void)ml_borrow_call(borrowed, SYS_munmap, wrong, &ignored);
    }
    return (uint64_t)result == at;
}

/* ---- the client */

static bool write_client(const struct ml_borrowed *borrowed, const struct ml_client_image *image) {
    for (uint64_t at = 0; at < image->kept_bytes; at += PAGE_BYTES) {
        const uint64_t left = image->kept_bytes - at;
        const size_t bytes = left < PAGE_BYTES ? (size_t)left : PAGE_BYTES;
        bool is_empty = true;
        for (size_t i = 0; i < bytes && is_empty; i++) {
            is_empty = image->bytes[at + i] == 0;
        }
        if (!is_empty &&
            !ml_memory_write(borrowed->memory_fd, image->address + at, image->bytes + at, bytes)) {
            return false;
        }
    }
    return true;
}

bool ml_place_client(
    struct ml_borrowed *borrowed,
    const struct ml_client_image *image,
    struct ml_error_message *error
) {
    bool whole = map(borrowed, image->address, image->count_bytes, PROT_READ, FREE);
    for (uint32_t i = 0; whole && i < image->segments_count; i++) {
        const struct ml_client_segment *one = &image->segments[i];
        whole =
            one->protection == PROT_READ ||
            map(borrowed, image->address + one->start, one->end - one->start, one->protection, OVER
            );
    }
    if (!whole || !write_client(borrowed, image)) {
        ml_error_set(error, "its limits or its kernel leave memlog no memory in it (ulimit -v)");
        return false;
    }
    return true;
}

/* ---- functions of objects that have gone */

enum is_there { HERE, CHANGED, GONE };

static enum is_there
look_at(const struct ml_borrowed *borrowed, const struct ml_attach_function *one) {
    uint8_t now[ML_ATTACH_ENTRY_BYTES];
    if (!ml_memory_read(borrowed->memory_fd, one->entry, now, sizeof(now))) {
        return GONE;
    }
    return memcmp(now, one->old, sizeof(now)) == 0 || memcmp(now, one->jump, sizeof(now)) == 0
               ? HERE
               : CHANGED;
}

static bool is_on_page(const struct ml_attach_function *one, uint64_t page) {
    return one->stub < page + PAGE_BYTES && one->stub + ML_FAMILIES_ROOM_BYTES > page;
}

/* The first of the gone functions on a page notes it, if all on it have gone. */
static void note_page(
    const struct ml_attach_block *block,
    const enum is_there *there,
    uint32_t index,
    uint64_t page,
    struct ml_place_pages *pages
) {
    for (uint32_t i = 0; i < block->functions_count; i++) {
        if (is_on_page(&block->functions[i], page) && (i < index || there[i] != GONE)) {
            return;
        }
    }
    pages->addresses[pages->count++] = page;
}

/* A program may load and unload libraries with allocators for as long as it runs. No thread is in
 * what belongs to one that has gone, as it would go on in there. Where its place has other code
 * now, whoever changed it may still lead to what is ours. */
static void forget_gone(
    const struct ml_borrowed *borrowed,
    struct ml_attach_block *block,
    struct ml_place_pages *out_pages
) {
    enum is_there there[ML_ATTACH_FUNCTIONS_MAX];
    uint32_t kept = 0;
    out_pages->count = 0;
    for (uint32_t i = 0; i < block->functions_count; i++) {
        there[i] = look_at(borrowed, &block->functions[i]);
    }
    for (uint32_t i = 0; i < block->functions_count; i++) {
        const uint64_t stub = block->functions[i].stub;
        const uint64_t first = stub & ~(uint64_t)(PAGE_BYTES - 1);
        const uint64_t last = (stub + ML_FAMILIES_ROOM_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
        if (there[i] == GONE) {
            note_page(block, there, i, first, out_pages);
        }
        if (there[i] == GONE && last != first) {
            note_page(block, there, i, last, out_pages);
        }
    }
    for (uint32_t i = 0; i < block->functions_count; i++) {
        if (there[i] == HERE) {
            block->functions[kept++] = block->functions[i];
        }
    }
    block->functions_count = kept;
}

bool ml_place_give_back(struct ml_borrowed *borrowed, const struct ml_place_pages *pages) {
    bool done = true;
    for (uint32_t i = 0; i < pages->count && done; i++) {
        const uint64_t arguments[6] = {pages->addresses[i], PAGE_BYTES, 0, 0, 0, 0};
        long ignored = 0;
        done = ml_borrow_call(borrowed, SYS_munmap, arguments, &ignored);
    }
    return done;
}

/* ---- its functions */

static struct ml_attach_function *
known(struct ml_attach_block *block, const struct ml_attach_function *planned) {
    for (uint32_t i = 0; i < block->functions_count; i++) {
        struct ml_attach_function *one = &block->functions[i];
        if (one->entry == planned->entry && one->hook == planned->hook &&
            memcmp(one->old, planned->old, ML_ATTACH_ENTRY_BYTES) == 0) {
            return one;
        }
    }
    return NULL;
}

/* The part of an object's room that its new functions use. */
static uint64_t
room_bytes(const struct ml_plan *plan, struct ml_attach_block *block, uint32_t object) {
    uint64_t end = plan->objects[object].room;
    for (uint32_t i = 0; i < plan->answer->functions_count; i++) {
        const struct ml_plan_function *one = &plan->answer->functions[i];
        const uint64_t behind = one->function.stub + ML_FAMILIES_ROOM_BYTES;
        if (one->object == object && known(block, &one->function) == NULL && behind > end) {
            end = behind;
        }
    }
    const uint64_t bytes = end - plan->objects[object].room;
    return (bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
}

static bool make_rooms(
    struct ml_borrowed *borrowed, const struct ml_plan *plan, struct ml_attach_block *block
) {
    for (uint32_t i = 0; i < plan->objects_count; i++) {
        const struct ml_plan_object *object = &plan->objects[i];
        const uint64_t bytes = object->room != 0 ? room_bytes(plan, block, i) : 0;
        if (bytes > 0 && !map(borrowed, object->room, bytes, PROT_READ | PROT_EXEC, FREE)) {
            return false;
        }
    }
    return true;
}

bool ml_place_functions(
    struct ml_borrowed *borrowed,
    const struct ml_plan *plan,
    struct ml_attach_block *block,
    struct ml_place_pages *out_gone,
    struct ml_error_message *error
) {
    forget_gone(borrowed, block, out_gone);
    for (uint32_t i = 0; i < block->functions_count; i++) {
        block->functions[i].is_on = 0;
    }
    if (!make_rooms(borrowed, plan, block)) {
        ml_error_set(error, "no memory is free within reach of its code");
        return false;
    }
    for (uint32_t i = 0; i < plan->answer->functions_count; i++) {
        const struct ml_plan_function *planned = &plan->answer->functions[i];
        struct ml_attach_function *one = known(block, &planned->function);
        if (one != NULL) {
            one->is_on = 1;
            continue;
        }
        if (block->functions_count == ML_ATTACH_FUNCTIONS_MAX || !ml_memory_write(
                                                                     borrowed->memory_fd,
                                                                     planned->function.next,
                                                                     planned->trampoline,
                                                                     planned->trampoline_bytes
                                                                 )) {
            ml_error_set(error, "memlog has no room for more of its functions");
            return false;
        }
        block->functions[block->functions_count++] = planned->function;
    }
    return true;
}

bool ml_place_stubs(int memory_fd, const struct ml_attach_block *block) {
    for (uint32_t i = 0; i < block->functions_count; i++) {
        const struct ml_attach_function *one = &block->functions[i];
        if (one->is_on != 0 &&
            !ml_memory_write(memory_fd, one->stub, block->stubs[i], ML_ATTACH_STUB_BYTES)) {
            return false;
        }
    }
    return true;
}
