#include "host/inquiry/inquiry.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "host/inquiry/functions.h"
#include "host/sockets/socket_directory.h"
#include "ipc/channel/channel.h"
#include "tests/suite.h"

enum { ANSWER_MS = 10000 };

/* The host's side, in the same thread: it answers when it is told to. */
struct fake_host {
    struct ml_socket_directory directory;
    struct ml_channel *channel;
    uint32_t requests, snapshots;
    const char *trouble; /* of a snapshot; what is written is no dump in any case */
};

static char runtime[] = "/tmp/inquiry-test.XXXXXX";
static struct fake_host host;
static struct ml_inquiry inquiry;
static uint32_t answers;

static void
on_ps(void *context, const struct ml_call *call, const struct memlog_host_ps_request *request) {
    struct fake_host *fake = context;
    const struct memlog_host_ps_reply reply = {.program = ml_string_of("program")};
    (void)request;
    fake->requests++;
    ck_assert_int_eq(memlog_host_ps_answer(call, &reply), ML_OK);
}

static void on_snapshot(
    void *context, const struct ml_call *call, const struct memlog_host_snapshot_request *request
) {
    const struct memlog_host_snapshot_reply reply = {.trouble = ml_string_of(host.trouble)};
    (void)context;
    host.snapshots++;
    ck_assert_int_eq(write(request->file, "x", 1), 1);
    (void)close(request->file);
    ck_assert_int_eq(memlog_host_snapshot_answer(call, &reply), ML_OK);
}

static void on_answer(void *context, const struct memlog_host_ps_reply *reply) {
    ck_assert_ptr_eq(context, &answers);
    ck_assert_uint_eq(reply->program.count_bytes, 7);
    answers++;
}

static void take_connection(void) {
    static const struct memlog_host_host_handlers handlers = {.ps = on_ps, .snapshot = on_snapshot};
    const struct ml_channel_options options = {.server = memlog_host_host_server(&handlers, &host)};
    const int fd = accept(host.directory.command_fd, NULL, NULL);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ml_channel_new(fd, &options, &host.channel), ML_OK);
}

static void drop_connection(void) {
    ml_channel_free(host.channel);
    host.channel = NULL;
}

/* One question and its answer. */
static void be_answered(void) {
    const uint32_t before = answers;
    ml_inquiry_ask(&inquiry);
    ck_assert_int_eq(ml_channel_receive(host.channel, ANSWER_MS), ML_OK);
    ck_assert_int_eq(ml_inquiry_turn(&inquiry), ML_INQUIRY_ANSWERED);
    ck_assert_uint_eq(answers, before + 1);
}

static void setup(void) {
    struct ml_error_message error = {.text = ""};
    answers = 0;
    host = (struct fake_host){.trouble = "no service\033"};
    (void)snprintf(runtime, sizeof(runtime), "%s", "/tmp/inquiry-test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(runtime));
    ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", runtime, 1), 0);
    ck_assert_int_eq(ml_socket_directory_open(&host.directory, &error), ML_OK);
    ck_assert_int_eq(
        ml_inquiry_init(&inquiry, host.directory.command_path, on_answer, &answers, &error), ML_OK
    );
    take_connection();
}

static void teardown(void) {
    char command[64];
    ml_inquiry_fini(&inquiry);
    drop_connection();
    ml_socket_directory_close(&host.directory);
    (void)snprintf(command, sizeof(command), "rm -rf %s", runtime);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(an_answer_that_is_late_is_waited_for_and_asked_for_once) {
    be_answered();
    ml_inquiry_ask(&inquiry);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ml_inquiry_turn(&inquiry), ML_INQUIRY_WAITS);
        ml_inquiry_ask(&inquiry);
    }
    ck_assert_int_eq(ml_channel_receive(host.channel, ANSWER_MS), ML_OK);
    ck_assert_uint_eq(host.requests, 2);
    ck_assert_int_eq(ml_inquiry_turn(&inquiry), ML_INQUIRY_ANSWERED);
    ck_assert_uint_eq(answers, 2);
}
END_TEST

START_TEST(a_host_that_refuses_one_question_is_asked_again) {
    be_answered();
    ml_inquiry_ask(&inquiry);
    drop_connection();
    ck_assert_int_eq(ml_inquiry_turn(&inquiry), ML_INQUIRY_FAILED);
    take_connection();
    be_answered();
}
END_TEST

START_TEST(a_snapshot_is_written_to_the_callers_file_and_its_trouble_is_told) {
    const int fd = memfd_create("inquiry-test", MFD_CLOEXEC);
    struct stat facts;
    ml_inquiry_snapshot(&inquiry, fd);
    ml_inquiry_ask(&inquiry); /* one thing at a time */
    ck_assert_int_eq(ml_channel_receive(host.channel, ANSWER_MS), ML_OK);
    ck_assert_int_eq(ml_inquiry_turn(&inquiry), ML_INQUIRY_ANSWERED);
    ck_assert_str_eq(inquiry.trouble, "no service?");
    ck_assert_int_eq(fstat(fd, &facts), 0);
    ck_assert_int_eq(facts.st_size, 1);
    ck_assert_uint_eq(answers, 0);
    (void)close(fd);
    be_answered();
}
END_TEST

#ifdef HAS_ANALYZER
/* Another connection in place of the first one. */
static void open_functions(struct ml_functions *functions) {
    struct ml_error_message error = {.text = ""};
    drop_connection();
    ck_assert_int_eq(
        ml_functions_open(functions, host.directory.command_path, NULL, &error), ML_OK
    );
    take_connection();
}

START_TEST(a_look_at_functions_without_a_snapshot_fails_in_words_and_is_made_again) {
    struct ml_functions functions;
    open_functions(&functions);
    ck_assert_int_eq(ml_functions_turn(&functions), ML_INQUIRY_WAITS);
    for (int i = 0; i < 2; i++) {
        ml_functions_ask(&functions, 0);
        ck_assert_int_eq(ml_functions_turn(&functions), ML_INQUIRY_WAITS);
        ck_assert_int_eq(ml_channel_receive(host.channel, ANSWER_MS), ML_OK);
        ck_assert_int_eq(ml_functions_turn(&functions), ML_INQUIRY_FAILED);
        ck_assert_str_eq(functions.trouble, "no service?");
        ck_assert_int_eq(ml_functions_turn(&functions), ML_INQUIRY_WAITS);
    }
    ml_functions_close(&functions);
}
END_TEST

START_TEST(a_look_at_functions_that_is_asked_for_anew_is_made_anew) {
    struct ml_functions functions;
    open_functions(&functions);
    host.trouble = "";
    ml_functions_ask(&functions, 7);
    ml_functions_ask(&functions, 8);
    ck_assert_int_eq(ml_channel_receive(host.channel, ANSWER_MS), ML_OK);
    /* The analyzer refuses the first, which nobody hears of. */
    while (functions.pid == 7) {
        ck_assert_int_eq(ml_functions_turn(&functions), ML_INQUIRY_WAITS);
        (void)usleep(1000);
    }
    ck_assert_uint_eq(functions.pid, 8);
    ck_assert_int_eq(ml_channel_receive(host.channel, ANSWER_MS), ML_OK);
    ck_assert_uint_eq(host.snapshots, 2);
    enum ml_inquiry_state state = ML_INQUIRY_WAITS;
    while (state == ML_INQUIRY_WAITS) {
        state = ml_functions_turn(&functions);
        (void)usleep(1000);
    }
    ck_assert_int_eq(state, ML_INQUIRY_FAILED);
    ck_assert_str_ne(functions.trouble, "");
    ml_functions_close(&functions);
}
END_TEST
#endif

START_TEST(a_host_whose_socket_is_gone_is_gone) {
    be_answered();
    drop_connection();
    ml_socket_directory_close(&host.directory);
    ck_assert_int_eq(ml_inquiry_turn(&inquiry), ML_INQUIRY_GONE);
    ml_inquiry_ask(&inquiry);
    ck_assert_int_eq(ml_inquiry_turn(&inquiry), ML_INQUIRY_GONE);
}
END_TEST

START_TEST(a_host_that_never_answers_and_closes_is_given_up) {
    ml_inquiry_ask(&inquiry);
    drop_connection();
    ck_assert_int_eq(ml_inquiry_turn(&inquiry), ML_INQUIRY_GONE);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("inquiry");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, an_answer_that_is_late_is_waited_for_and_asked_for_once);
    tcase_add_test(tcase, a_host_that_refuses_one_question_is_asked_again);
    tcase_add_test(tcase, a_snapshot_is_written_to_the_callers_file_and_its_trouble_is_told);
#ifdef HAS_ANALYZER
    tcase_add_test(tcase, a_look_at_functions_without_a_snapshot_fails_in_words_and_is_made_again);
    tcase_add_test(tcase, a_look_at_functions_that_is_asked_for_anew_is_made_anew);
#endif
    tcase_add_test(tcase, a_host_whose_socket_is_gone_is_gone);
    tcase_add_test(tcase, a_host_that_never_answers_and_closes_is_given_up);
    return run_suite("host/inquiry", tcase);
}
