/* What a program maps is in its stream: each call, and what came of it. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/client/capture.h"
#include "tests/client/recording/mapping_places.h"
#include "tests/suite.h"

static struct capture capture;

static void run(void) {
    static char target[] = "./mapping_target";
    static char below[] = "out/mapping_target";
    char *const arguments[] = {access(target, X_OK) == 0 ? target : below, NULL};
    const struct capture_options options = {0};
    capture_run(&capture, &options, arguments);
    ck_assert_int_eq(capture.exit_status, 0);
    ck_assert_uint_eq(capture.processes_count, 2);
}

/* The next mapping that the target made itself. */
static const struct ml_event_mapping *
next_of(const struct captured_process *process, size_t *position) {
    while (*position < process->events_count) {
        const struct ml_event *event = &process->events[(*position)++].event;
        if (event->kind == ML_EVENT_MAPPING && event->mapping.address >= PLACE_FIRST &&
            event->mapping.address < PLACE_END) {
            return &event->mapping;
        }
    }
    return NULL;
}

static void is_next(
    const struct captured_process *process,
    size_t *position,
    enum ml_mapping_kind kind,
    uint64_t address,
    uint64_t pages
) {
    const struct ml_event_mapping *mapping = next_of(process, position);
    ck_assert_ptr_nonnull(mapping);
    ck_assert_uint_eq(mapping->kind, kind);
    ck_assert_uint_eq(mapping->address, address);
    ck_assert_uint_eq(mapping->length_bytes, pages * PAGE);
    ck_assert_uint_eq(mapping->flags, 0);
    const bool has_stack = kind == ML_MAPPING_MAP || kind == ML_MAPPING_MOVED;
    ck_assert_int_eq(mapping->node != 0, has_stack);
}

/* The text of the string that an event before has defined. */
static void is_string(const struct captured_process *process, uint32_t id, const char *text) {
    for (size_t i = 0; i < process->events_count; i++) {
        const struct ml_event *event = &process->events[i].event;
        if (event->kind == ML_EVENT_STRING && event->name.id == id) {
            ck_assert_uint_eq(event->name.bytes_count, strlen(text));
            ck_assert_mem_eq(event->name.bytes, text, strlen(text));
            return;
        }
    }
    ck_abort_msg("string %u is not defined", id);
}

START_TEST(each_call_and_what_came_of_it_is_recorded) {
    size_t at = 0;
    run();
    const struct captured_process *process = &capture.processes[0];
    is_next(process, &at, ML_MAPPING_MAP, PLACE_FIRST, 10);
    is_next(process, &at, ML_MAPPING_UNMAP, PLACE_FIRST + UINT64_C(3) * PAGE, 2);
    is_next(process, &at, ML_MAPPING_UNMAP, PLACE_FIRST, PLACE_BEYOND / PAGE); /* refused, so ... */
    is_next(process, &at, ML_MAPPING_MOVED, PLACE_FIRST, PLACE_BEYOND / PAGE); /* ... it stays */
    is_next(process, &at, ML_MAPPING_UNMAP, PLACE_FIRST, 1);
    is_next(process, &at, ML_MAPPING_MOVED, PLACE_MOVED, 2);
    is_next(process, &at, ML_MAPPING_UNMAP, PLACE_FIRST, 1);
    is_next(process, &at, ML_MAPPING_MOVED, PLACE_FIRST, 1);
    const struct ml_event_mapping *named = next_of(process, &at);
    ck_assert_uint_eq(named->kind, ML_MAPPING_NAME);
    is_string(process, named->string_id, "a name");
    const struct ml_event_mapping *again = next_of(process, &at);
    ck_assert_uint_eq(again->kind, ML_MAPPING_NAME);
    ck_assert_uint_eq(again->string_id, named->string_id);
    const struct ml_event_mapping *nameless = next_of(process, &at);
    ck_assert_uint_eq(nameless->kind, ML_MAPPING_NAME);
    ck_assert_uint_eq(nameless->string_id, 0);
    is_next(process, &at, ML_MAPPING_MAP, PLACE_SHARED, 0);
    is_next(process, &at, ML_MAPPING_UNMAP, PLACE_SHARED, 0);
    is_next(process, &at, ML_MAPPING_MAP, PLACE_HANDLER, 1);
    ck_assert_ptr_null(next_of(process, &at));
    ck_assert_uint_eq(process->lost_events, 0);
    capture_free(&capture);
}
END_TEST

START_TEST(a_childs_first_mapping_begins_its_stream) {
    size_t at = 0;
    run();
    const struct captured_process *child = &capture.processes[1];
    is_next(child, &at, ML_MAPPING_MAP, PLACE_CHILD, 3);
    is_next(child, &at, ML_MAPPING_UNMAP, PLACE_CHILD, 1);
    ck_assert_ptr_null(next_of(child, &at));
    capture_free(&capture);
}
END_TEST

static const struct ml_event_mapping *
next_of_kind(const struct captured_process *process, size_t *position, uint32_t kind) {
    while (*position < process->events_count) {
        const struct ml_event *event = &process->events[(*position)++].event;
        if (event->kind == ML_EVENT_MAPPING && event->mapping.kind == kind) {
            return &event->mapping;
        }
    }
    return NULL;
}

static const struct ml_event_node *node_of(const struct captured_process *process, uint32_t id) {
    for (size_t i = 0; i < process->events_count; i++) {
        const struct ml_event *event = &process->events[i].event;
        if (event->kind == ML_EVENT_NODE && event->node.id == id) {
            return &event->node;
        }
    }
    ck_abort_msg("node %u is not defined", id);
    return NULL;
}

/* The loader's pages come first, by a name and without a stack. Returns the name's string. */
static uint32_t loaders_name(const struct captured_process *process) {
    size_t at = 0;
    size_t named = 0;
    const struct ml_event_mapping *map = next_of_kind(process, &at, ML_MAPPING_MAP);
    const struct ml_event_mapping *name = next_of_kind(process, &named, ML_MAPPING_NAME);
    ck_assert_ptr_nonnull(map);
    ck_assert_ptr_nonnull(name);
    ck_assert_uint_eq(map->flags, ML_MAPPING_EARLY);
    ck_assert_uint_eq(map->node, 0);
    ck_assert_uint_eq(name->address, map->address);
    ck_assert_uint_eq(name->length_bytes, map->length_bytes);
    is_string(process, name->string_id, "loader");
    return name->string_id;
}

START_TEST(a_threads_stack_has_its_start_routine) {
    size_t at = 0;
    size_t named = 0;
    run();
    const struct captured_process *process = &capture.processes[0];
    const uint32_t loader = loaders_name(process);
    for (int i = 0; i < 2; i++) {
        const struct ml_event_mapping *stack = next_of_kind(process, &at, ML_MAPPING_STACK);
        ck_assert_ptr_nonnull(stack);
        ck_assert(i == 1 || stack->length_bytes == STACK_BYTES);
        /* What the thread itself says: a page of its stack, and its function. */
        const struct ml_event_mapping *name = next_of_kind(process, &named, ML_MAPPING_NAME);
        while (name != NULL && (name->address < PLACE_END || name->string_id == loader)) {
            name = next_of_kind(process, &named, ML_MAPPING_NAME);
        }
        ck_assert_ptr_nonnull(name);
        ck_assert_uint_ge(name->address, stack->address);
        ck_assert_uint_lt(name->address, stack->address + stack->length_bytes);
        const struct ml_event_node *routine = node_of(process, stack->node);
        char text[32];
        (void)snprintf(text, sizeof(text), "%#lx", (unsigned long)routine->address);
        is_string(process, name->string_id, text);
        ck_assert_uint_ne(routine->module, 0);
        /* Its creator is a function of the program too, and no frame of memlog's is between. */
        ck_assert_uint_eq(node_of(process, routine->parent)->module, routine->module);
    }
    capture_free(&capture);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("mapping");
    tcase_add_test(tcase, each_call_and_what_came_of_it_is_recorded);
    tcase_add_test(tcase, a_threads_stack_has_its_start_routine);
    tcase_add_test(tcase, a_childs_first_mapping_begins_its_stream);
    return run_suite("mapping", tcase);
}
