#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

#include "service/snapshot/host_view.h"

static struct ml_string text(const char *words) {
    return (struct ml_string){.data = words, .count_bytes = (uint32_t)strlen(words)};
}

START_TEST(what_was_seen_outlives_its_message_until_nobody_needs_it) {
    struct memlog_service_thread_view threads[] = {
        {.tid = 11, .name = text("a-worker")}, {.tid = 12, .name = text("")}};
    struct memlog_service_memory_region regions[] = {
        {.name = text("[heap]"), .size_kb = 40, .private_dirty_kb = 7}};
    struct memlog_service_page_run pages[] = {{.address = 0x1000, .bytes = 0x2000}};
    const struct memlog_service_show_process_request message = {
        .view = {
            .id = 3,
            .boottime_ns = 5,
            .threads = {threads, 2},
            .regions = {regions, 1},
            .pages = {pages, 1}}};
    struct ml_host_view *view = ml_host_view_of(&message);
    ck_assert_ptr_nonnull(view);
    memset(threads, 0, sizeof(threads));
    memset(regions, 0, sizeof(regions));
    memset(pages, 0, sizeof(pages));
    const struct ml_host_view *other = ml_host_view_keep(view);
    ml_host_view_free(view);
    ck_assert_uint_eq(other->message->view.boottime_ns, 5);
    ck_assert_uint_eq(other->message->view.threads.count, 2);
    ck_assert_uint_eq(other->message->view.threads.items[0].tid, 11);
    ck_assert_uint_eq(other->message->view.threads.items[0].name.count_bytes, 8);
    ck_assert_mem_eq(other->message->view.threads.items[0].name.data, "a-worker", 8);
    ck_assert_uint_eq(other->message->view.threads.items[1].name.count_bytes, 0);
    ck_assert_uint_eq(other->message->view.regions.count, 1);
    ck_assert_mem_eq(other->message->view.regions.items[0].name.data, "[heap]", 6);
    ck_assert_uint_eq(other->message->view.regions.items[0].private_dirty_kb, 7);
    ck_assert_uint_eq(other->message->view.pages.count, 1);
    ck_assert_uint_eq(other->message->view.pages.items[0].bytes, 0x2000);
    ml_host_view_free(view);
    ml_host_view_free(NULL);
    ck_assert_ptr_null(ml_host_view_keep(NULL));
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, what_was_seen_outlives_its_message_until_nobody_needs_it);
    return run_suite("service/host_view", tests);
}
