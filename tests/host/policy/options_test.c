#include "host/policy/options.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

static struct ml_options options;
static struct ml_error_message error;

static void setup(void) {
    ck_assert_int_eq(ml_options_init(&options), ML_OK);
    error = (struct ml_error_message){.text = ""};
}

static void teardown(void) {
    ml_options_fini(&options);
}

/* Parse the words of one line, parted by blanks. */
static enum ml_status parse(const char *words) {
    static char line[512];
    static char *arguments[32];
    size_t count = 0;
    ck_assert_uint_lt(strlen(words), sizeof(line));
    memcpy(line, words, strlen(words) + 1);
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
        arguments[count++] = word;
    }
    arguments[count] = NULL;
    return ml_options_parse(&options, arguments, &error);
}

START_TEST(defaults_are_those_of_the_interface) {
    ck_assert_int_eq(parse("prog"), ML_OK);
    ck_assert_int_eq(options.mode, ML_MODE_ALL);
    ck_assert_int_eq(options.stack_mode, ML_STACK_NATIVE);
    ck_assert_uint_eq(options.sampling_bytes, 1);
    ck_assert_int_eq(options.overrun, ML_OVERRUN_BLOCK);
    ck_assert_int_eq(options.sandbox, ML_SANDBOX_AUTO);
    ck_assert_int_eq(options.whole, ML_WHOLE_RUN);
    ck_assert_uint_eq(options.staging_slots, 1);
    ck_assert_uint_eq(options.keep_processes, 1000);
    ck_assert_ptr_null(options.output);
    ck_assert_str_eq(options.program[0], "prog");
}
END_TEST

/* Which of the two comes first makes no difference. */
START_TEST(a_sampling_rate_implies_sampling_and_sampling_alone_is_at_4096) {
    static const struct {
        const char *words;
        uint64_t bytes;
    } cases[] = {
        {"--memlog-sampling prog", 4096},
        {"--memlog-sampling-rate=512K prog", 512 << 10},
        {"--memlog-sampling --memlog-sampling-rate=2M prog", 2 << 20},
        {"--memlog-sampling-rate=100 --memlog-sampling prog", 100},
        {"--memlog-sampling --memlog-sampling-rate=1 prog", 1},
        {"--memlog-sampling-rate=4G prog", UINT64_C(4) << 30},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ml_options_fini(&options);
        ck_assert_int_eq(ml_options_init(&options), ML_OK);
        ck_assert_int_eq(parse(cases[i].words), ML_OK);
        ck_assert_uint_eq(options.sampling_bytes, cases[i].bytes);
    }
}
END_TEST

START_TEST(sampling_on_overrun_comes_with_room_for_what_it_does_not_wait_for) {
    ck_assert_int_eq(parse("--memlog-overrun=sample prog"), ML_OK);
    ck_assert_int_eq(options.overrun, ML_OVERRUN_SAMPLE);
    ck_assert_uint_eq(options.sampling_bytes, 1);
    ck_assert_uint_eq(options.staging_slots, 16);
    ml_options_fini(&options);
    ck_assert_int_eq(ml_options_init(&options), ML_OK);
    ck_assert_int_eq(parse("--memlog-overrun=sample --memlog-buffer-bytes=8K prog"), ML_OK);
    ck_assert_uint_eq(options.staging_slots, 2);
}
END_TEST

START_TEST(reads_every_option_of_the_main_job) {
    ck_assert_int_eq(
        parse("--memlog=minimal --memlog-stack-mode=native-with-thread-names "
              "--memlog-sampling-rate=1 --memlog-keep-small-allocations --memlog-overrun=block "
              "--memlog-buffer-bytes=16K --keep-processes=7 --service-memory=64M "
              "--client-memory=8M "
              "--memlog-role=gpu=^x --only=a "
              "--never=b --unwind-check=100 --allocator=pool=pool_ --allocator=a=b_ "
              "--end-with-root --output=dir --dump-interval=0.5 --dump-signal=USR2 --no-page "
              "--sandbox=strict --whole=off --whole-interval=7 -q -- prog -q"),
        ML_OK
    );
    ck_assert_int_eq(options.mode, ML_MODE_MINIMAL);
    ck_assert_int_eq(options.stack_mode, ML_STACK_NATIVE_WITH_THREAD_NAMES);
    ck_assert(options.keep_small_allocations);
    ck_assert_uint_eq(options.staging_slots, 4);
    ck_assert_uint_eq(options.keep_processes, 7);
    ck_assert_uint_eq(options.service_memory_bytes, 64 << 20);
    ck_assert_uint_eq(options.client_memory_bytes, 8 << 20);
    ck_assert_uint_eq(ml_patterns_count(options.roles), 1);
    ck_assert_int_eq(ml_patterns_match(options.roles, "xy"), MEMLOG_SERVICE_ROLE_GPU);
    ck_assert_uint_eq(ml_patterns_count(options.only), 1);
    ck_assert_uint_eq(ml_patterns_count(options.never), 1);
    ck_assert_uint_eq(options.unwind_check, 100);
    ck_assert_str_eq(options.allocators, "pool=pool_,a=b_");
    ck_assert(!options.leaves_executables);
    ck_assert(options.end_with_root);
    ck_assert_str_eq(options.output, "dir");
    ck_assert_uint_eq(options.dump_interval_ms, 500);
    ck_assert_int_eq(options.dump_signal, SIGUSR2);
    ck_assert_int_eq(options.sandbox, ML_SANDBOX_STRICT);
    ck_assert_int_eq(options.whole, ML_WHOLE_OFF);
    ck_assert_uint_eq(options.whole_interval_ms, 7);
    ck_assert(options.quiet);
    ck_assert_str_eq(options.program[0], "prog");
    ck_assert_str_eq(options.program[1], "-q");
}
END_TEST

START_TEST(dumps_may_be_taken_every_part_of_a_second) {
    const char *const words[] = {"0.1", "90", "90s", "1.5m", "250ms", "365d"};
    const uint64_t ms[] = {100, 90000, 90000, 90000, 250, UINT64_C(365) * 24 * 3600 * 1000};
    char line[64];

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        (void)snprintf(line, sizeof(line), "--dump-interval=%s prog", words[i]);
        ck_assert_int_eq(parse(line), ML_OK);
        ck_assert_uint_eq(options.dump_interval_ms, ms[i]);
    }
}
END_TEST

START_TEST(executables_may_be_left_as_they_are) {
    ck_assert_int_eq(parse("--allocator=off prog"), ML_OK);
    ck_assert(options.leaves_executables);
    ck_assert_str_eq(options.allocators, "");
}
END_TEST

START_TEST(values_may_follow_as_the_next_argument) {
    ck_assert_int_eq(parse("-o dir --memlog gpu prog --memlog=none"), ML_OK);
    ck_assert_str_eq(options.output, "dir");
    ck_assert_int_eq(options.mode, ML_MODE_GPU);
    ck_assert_str_eq(options.program[1], "--memlog=none");
}
END_TEST

START_TEST(a_peak_step_is_a_share_or_a_size) {
    static const struct {
        const char *words;
        uint32_t percent;
        uint64_t bytes;
    } cases[] = {
        {"--dump-at-peak prog", 25, 0},
        {"--dump-at-peak=5% prog", 5, 0},
        {"--dump-at-peak=50M prog", 0, 50 << 20},
        {"--dump-at-peak=1 prog", 0, 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ml_options_fini(&options);
        ck_assert_int_eq(ml_options_init(&options), ML_OK);
        ck_assert(!options.peak_step.is_set);
        ck_assert_int_eq(parse(cases[i].words), ML_OK);
        ck_assert(options.peak_step.is_set);
        ck_assert_uint_eq(options.peak_step.percent, cases[i].percent);
        ck_assert_uint_eq(options.peak_step.bytes, cases[i].bytes);
    }
}
END_TEST

START_TEST(buffer_sizes_are_rounded_up_to_slots) {
    ck_assert_int_eq(parse("--memlog-buffer-bytes=1 prog"), ML_OK);
    ck_assert_uint_eq(options.staging_slots, 1);
    ck_assert_int_eq(parse("--memlog-buffer-bytes=4097 prog"), ML_OK);
    ck_assert_uint_eq(options.staging_slots, 2);
    ck_assert_int_eq(parse("--memlog-buffer-bytes=1M prog"), ML_OK);
    ck_assert_uint_eq(options.staging_slots, 256);
}
END_TEST

/* What is wrong, and what the error message must name. */
static const struct {
    const char *words;
    const char *says;
} wrong[] = {
    {"--memlgo=all prog", "'--memlgo'; did you mean '--memlog'?"},
    {"--memlog=al prog", "did you mean 'all'?"},
    {"--memlog=all-renderer prog", "did you mean 'all-renderers'?"},
    {"--memlog=xyzzyxyzzy prog", "--memlog=xyzzyxyzzy: none, manual, minimal, "},
    {"--memlog", "--memlog needs a value"},
    {"--memlog -- prog", "--memlog needs a value"},
    {"--end-with-root=1 prog", "--end-with-root takes no value"},
    {"--memlog-stack-mode=natve prog", "did you mean 'native'?"},
    {"--memlog-sampling=4096 prog", "--memlog-sampling takes no value"},
    {"--memlog-sampling-rate=0 prog", "--memlog-sampling-rate=0: a size in bytes from 1 to 4G"},
    {"--memlog-sampling-rate=5G prog", "--memlog-sampling-rate=5G: a size in bytes from 1 to 4G"},
    {"--memlog-sampling-rate=often prog", "--memlog-sampling-rate=often: a size in bytes"},
    {"--memlog-sampling-rate= prog", "--memlog-sampling-rate=: a size in bytes from 1 to 4G"},
    {"--memlog-sampling-rate=4096x prog", "--memlog-sampling-rate=4096x: a size in bytes"},
    {"--memlog-sampling-rate=-5 prog", "--memlog-sampling-rate=-5: a size in bytes from 1 to 4G"},
    {"--memlog-overrun=blok prog", "did you mean 'block'?"},
    {"--service-memory=1000 prog", "--service-memory=1000"},
    {"--service-memory=much prog", "--service-memory=much"},
    {"--client-memory=1000 prog", "--client-memory=1000"},
    {"--client-memory=much prog", "--client-memory=much"},
    {"--keep-processes=65537 prog", "--keep-processes=65537"},
    {"--keep-processes=many prog", "--keep-processes=many"},
    {"--memlog-buffer-bytes=0 prog", "--memlog-buffer-bytes=0"},
    {"--memlog-buffer-bytes=2M prog", "--memlog-buffer-bytes=2M"},
    {"--memlog-role=gpu prog", "ROLE=REGEX is wanted"},
    {"--memlog-role=gpu=( prog", "no regular expression"},
    {"--memlog-role=gpo=x prog", "did you mean 'gpu'?"},
    {"--only=[ prog", "--only=[: '[' is no regular expression"},
    {"--never=[ prog", "--never=[: '[' is no regular expression"},
    {"--unwind-check=0 prog", "--unwind-check=0: a whole number"},
    {"--allocator=pool prog", "NAME=PREFIX is wanted, such as pool=pool_"},
    {"--allocator=pool= prog", "--allocator=pool=: "},
    {"--allocator=a=x_ --allocator=a=y_ prog", "--allocator=a=y_: "},
    {"--allocator=pool=! prog", "--allocator=pool=!: "},
    {"--types=vtables prog", "did you mean 'vtable'?"},
    {"--types=vtable --whole=off prog", "no --whole=off with it"},
    {"--sandbox=stict prog", "did you mean 'strict'?"},
    {"--sandbox=xxxxxxxxx prog", "--sandbox=xxxxxxxxx"},
    {"--dump-signal=USR3 prog", "--dump-signal=USR3"},
    {"--dump-signal=KILL prog", "cannot take"},
    {"--dump-interval=never prog", "--dump-interval=never"},
    {"--dump-interval=0 prog", "--dump-interval=0: a time of 0.1 seconds"},
    {"--dump-interval=0.09 prog", "--dump-interval=0.09: a time of 0.1 seconds"},
    {"--dump-interval=366d prog", "--dump-interval=366d: a time of 0.1 seconds"},
    {"--upload-prune=0 prog", "--upload-prune=0: a whole number"},
    {"--budget= prog", "--budget"},
    {"--budget=b.json --memlog=none prog", "--budget judges the final dump"},
    {"--budget-base=x prog", "--budget-base goes with --budget"},
    {"--upload-prune=9 --memlog-keep-small-allocations prog", "--upload-prune and --memlog-keep"},
    {"--output= prog", "--output"},
    {"--page=here prog", "--page=here: PORT, ADDRESS:PORT or unix:PATH"},
    {"--page=0.0.0.0:80 prog", "--page-remote says that this is wanted"},
    {"--no-page=1 prog", "--no-page takes no value"},
    {"--upload=localhost prog", "--upload: an address is wanted"},
    {"--upload-max-bytes=0 prog", "--upload-max-bytes=0"},
    {"--upload-names=sone prog", "did you mean 'none'"},
    {"--threshold=gpu prog", "--threshold=gpu: ROLE=SIZE is wanted"},
    {"--threshold=gpx=1M prog", "did you mean 'gpu'?"},
    {"--trigger-interval=0 prog", "--trigger-interval=0: a time in whole seconds"},
    {"--triggers=/nowhere/f prog", "/nowhere/f"},
    {"--dump-at-peak=0 prog", "--dump-at-peak=0: by how much"},
    {"--dump-at-peak=0% prog", "--dump-at-peak=0%: by how much"},
    {"--dump-at-peak=% prog", "--dump-at-peak=%: by how much"},
    {"--dump-at-peak=1001% prog", "--dump-at-peak=1001%: by how much"},
    {"--dump-at-peak=99999999999% prog", "--dump-at-peak=99999999999%: by how much"},
    {"--dump-at-peak= prog", "--dump-at-peak=: by how much"},
    {"--dump-at-peak=high prog", "--dump-at-peak=high: by how much"},
    {"-x prog", "unknown option '-x'"},
    {"--frobnicate prog", "unknown option '--frobnicate'"},
    {"", "no program given"},
    {"--", "no program given"},
    {"-q --", "no program given"},
};

START_TEST(what_is_wrong_is_refused_and_named) {
    ck_assert_int_ne(parse(wrong[_i].words), ML_OK);
    ck_assert_msg(
        strstr(error.text, wrong[_i].says) != NULL, "%s: %s", wrong[_i].words, error.text
    );
}
END_TEST

START_TEST(types_are_read_where_they_are_asked_for_alone) {
    ck_assert_int_eq(parse("prog"), ML_OK);
    ck_assert_int_eq(options.types, ML_TYPES_NONE);
    ck_assert_int_eq(parse("--types=vtable --whole=stop prog"), ML_OK);
    ck_assert_int_eq(options.types, ML_TYPES_VTABLE);
}
END_TEST

START_TEST(help_stops_the_reading) {
    ck_assert_int_eq(parse("--help --nonsense"), ML_OK);
    ck_assert(options.help);
}
END_TEST

START_TEST(signals_are_known_by_name_and_number) {
    ck_assert_int_eq(ml_signal_parse("USR1"), SIGUSR1);
    ck_assert_int_eq(ml_signal_parse("sigusr1"), SIGUSR1);
    ck_assert_int_eq(ml_signal_parse("12"), 12);
    ck_assert_int_eq(ml_signal_parse("0"), 0);
    ck_assert_int_eq(ml_signal_parse(""), 0);
    ck_assert_int_eq(ml_signal_parse("SIG"), 0);
}
END_TEST

START_TEST(unknown_environment_keys_are_refused_and_named) {
    char *fine[] = {(char[]){"PATH=/bin"}, (char[]){"MEMLOG_SOCKET=x"}, (char[]){"MEMLOG=1"}, NULL};
    ck_assert_int_eq(ml_options_check_environment(fine, &error), ML_OK);
    char *strange[] = {(char[]){"MEMLOG_SOCKETS=x"}, NULL};
    ck_assert_int_eq(ml_options_check_environment(strange, &error), ML_ENV_MISSING);
    ck_assert_ptr_nonnull(strstr(error.text, "'MEMLOG_SOCKETS'; did you mean MEMLOG_SOCKET"));
    /* Those of whoever reads dumps are no reason to refuse a run. */
    char *of_the_analyzer[] = {
        (char[]){"MEMLOG_BINARY_PATH=/x"}, (char[]){"MEMLOG_SYMBOL_CACHE=off"}, NULL};
    ck_assert_int_eq(ml_options_check_environment(of_the_analyzer, &error), ML_OK);
    error.text[0] = '\0'; /* the first one stays */
    char *wild[] = {(char[]){"MEMLOG_SOMETHING_ELSE_ALTOGETHER=1"}, NULL};
    ck_assert_int_eq(ml_options_check_environment(wild, &error), ML_ENV_MISSING);
    ck_assert_ptr_nonnull(strstr(error.text, "MEMLOG_BINARY_PATH"));
}
END_TEST

/* The same as parse(), behind `memlog attach`. */
static enum ml_status parse_attach(char *const *words) {
    teardown();
    setup();
    return ml_options_parse_attach(&options, words, &error);
}

START_TEST(attach_takes_processes_a_name_and_a_duration) {
    char *both[] = {"--duration=0.5", "4711", "--name=^python", "4712", "--whole=off", NULL};
    char *minutes[] = {"--duration", "1.5m", "1", NULL};
    char *by_name[] = {"--name=x", "--min-private=4M", NULL};
    ck_assert_int_eq(parse_attach(both), ML_OK);
    ck_assert_uint_eq(options.duration_ms, 500);
    ck_assert_uint_eq(options.pids.count, 2);
    ck_assert_uint_eq(options.pids.items[1], 4712);
    ck_assert_str_eq(options.name, "^python");
    ck_assert_int_eq(options.whole, ML_WHOLE_OFF);
    ck_assert_int_eq(options.mode, ML_MODE_ALL);
    ck_assert_int_eq(parse_attach(minutes), ML_OK);
    ck_assert_uint_eq(options.duration_ms, 90000);
    ck_assert_int_eq(parse_attach(by_name), ML_OK);
    ck_assert_uint_eq(options.duration_ms, 0);
    ck_assert_uint_eq(options.min_private_bytes, 4 << 20);
}
END_TEST

START_TEST(attach_refuses_what_chooses_among_a_programs_processes) {
    static const struct {
        char *words[3];
        const char *says;
    } cases[] = {
        {{"--only=x", "1"}, "--only is an option of 'memlog run'"},
        {{"--never", "1"}, "--never is an option of 'memlog run'"},
        {{"--memlog=all", "1"}, "--memlog is an option of 'memlog run'"},
        {{"1", "--budget=x"}, "--budget is an option of 'memlog run'"},
        {{"1", "--end-with-root"}, "--end-with-root is an option of 'memlog run'"},
        {{"--duration=0", "1"}, "--duration=0: a length of time"},
        {{"--duration=x", "1"}, "--duration=x: a length of time"},
        {{"--min-private=0", "1"}, "--min-private=0: a size"},
        {{"--name=(", NULL}, "--name=(: '(' is no regular expression"},
        {{"prog", NULL}, "prog"},
        {{NULL}, "which process?"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_int_ne(parse_attach(cases[i].words), ML_OK);
        ck_assert_msg(strstr(error.text, cases[i].says) != NULL, "%s", error.text);
    }
    ck_assert_int_eq(parse("--duration=1 prog"), ML_PEER_FORM);
    ck_assert_int_eq(parse("--min-private=1 prog"), ML_PEER_FORM);
    ck_assert_int_eq(parse("--never-list=x --memlog-role=gpu=y prog"), ML_OK);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("options");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, defaults_are_those_of_the_interface);
    tcase_add_test(tcase, a_sampling_rate_implies_sampling_and_sampling_alone_is_at_4096);
    tcase_add_test(tcase, sampling_on_overrun_comes_with_room_for_what_it_does_not_wait_for);
    tcase_add_test(tcase, reads_every_option_of_the_main_job);
    tcase_add_test(tcase, dumps_may_be_taken_every_part_of_a_second);
    tcase_add_test(tcase, executables_may_be_left_as_they_are);
    tcase_add_test(tcase, values_may_follow_as_the_next_argument);
    tcase_add_test(tcase, a_peak_step_is_a_share_or_a_size);
    tcase_add_test(tcase, buffer_sizes_are_rounded_up_to_slots);
    tcase_add_loop_test(
        tcase, what_is_wrong_is_refused_and_named, 0, (int)(sizeof(wrong) / sizeof(wrong[0]))
    );
    tcase_add_test(tcase, types_are_read_where_they_are_asked_for_alone);
    tcase_add_test(tcase, help_stops_the_reading);
    tcase_add_test(tcase, signals_are_known_by_name_and_number);
    tcase_add_test(tcase, unknown_environment_keys_are_refused_and_named);
    tcase_add_test(tcase, attach_takes_processes_a_name_and_a_duration);
    tcase_add_test(tcase, attach_refuses_what_chooses_among_a_programs_processes);
    return run_suite("host/options", tcase);
}
