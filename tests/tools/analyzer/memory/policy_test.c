#include "tools/analyzer/memory/policy.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "tests/suite.h"

enum {
    READ = MEMLOG_SERVICE_MEMORY_PERMISSION_READ,
    WRITE = MEMLOG_SERVICE_MEMORY_PERMISSION_WRITE,
    EXECUTE = MEMLOG_SERVICE_MEMORY_PERMISSION_EXECUTE
};

static struct ml_policy policy;
static struct ml_error_message error;
static struct ml_row_text *text;

/* One stack: v8::internal::Heap::SetUp of /opt/node, called by a function without a name. */
static struct ml_code_file files[] = {
    {.path = {.bytes = "/opt/node", .count_bytes = 9}},
    {.path = {.bytes = "/usr/lib/liblone.so.1", .count_bytes = 21}}};
static struct ml_symbol symbols[] = {
    {.function = "bool v8::internal::Heap<int>::SetUp(v8::Isolate*) const", .file = "src/heap.cc"}};
static struct ml_place places[] = {
    {.kind = ML_FRAME_ADDRESS, .file = 0, .first_symbol = 0, .symbols_count = 1},
    {.kind = ML_FRAME_ADDRESS, .file = 1, .offset = 0x40}};
static struct ml_stack_node nodes[] = {
    {.parent = ML_STACKS_NONE, .place = 1}, {.parent = 0, .place = 0}};
static const struct ml_stacks stacks = {
    .files = files, .places = places, .nodes = nodes, .nodes_count = 2, .symbols = symbols};

static void setup(void) {
    error = (struct ml_error_message){.text = ""};
    policy = (struct ml_policy){0};
    text = ml_row_text_new();
    ck_assert_ptr_nonnull(text);
}

static void teardown(void) {
    ml_policy_fini(&policy);
    free(text);
}

static void read_policy(const char *json) {
    ck_assert_msg(ml_policy_read(&policy, json, strlen(json), "my.json", &error), "%s", error.text);
}

static void refused(const char *json, const char *why) {
    error.text[0] = '\0';
    ck_assert_msg(!ml_policy_read(&policy, json, strlen(json), "my.json", &error), "%s", json);
    ck_assert_msg(strstr(error.text, why) != NULL, "%s: %s", json, error.text);
    ck_assert_msg(strncmp(error.text, "my.json: ", 9) == 0, "%s", error.text);
    ml_policy_fini(&policy);
}

static struct ml_row
row_of(enum ml_row_allocator allocator, enum ml_component kind, const char *path) {
    return (struct ml_row
    ){.allocator = allocator,
      .kind = kind,
      .permissions = READ | WRITE,
      .path = {.bytes = path, .count_bytes = strlen(path)},
      .name = {.bytes = ""},
      .file = {.bytes = ""},
      .node = ML_STACKS_NONE};
}

static const char *component(const struct ml_row *row) {
    const uint32_t number = ml_policy_component(&policy, &stacks, row, text);

    ck_assert_uint_ne(number, ML_STRING_NONE);
    return policy.components.strings[number].bytes;
}

#define OWN "{\"version\": \"POLICY_MEMLOG_1\", \"rules\": ["
#define LAST "{\"name\": \"rest\"}]}"

START_TEST(the_first_rule_that_matches_takes_the_row) {
    struct ml_row row = row_of(ML_ROW_UNHOOKED, ML_COMPONENT_FILES, "/usr/share/a");

    read_policy(OWN "{\"name\": \"words\", \"mappedpathname\": \"/usr/.*\"},"
                    "{\"name\": \"later\", \"mappedpathname\": \".*\"}," LAST);
    ck_assert_str_eq(component(&row), "words");
    row.path.bytes = "/opt/a";
    ck_assert_str_eq(component(&row), "later");
}
END_TEST

START_TEST(each_key_is_matched_with_its_own_text) {
    struct ml_row row = row_of(ML_ROW_MMAP, ML_COMPONENT_MAPPED, "");

    read_policy(OWN "{\"name\": \"named\", \"vmaname\": \"arena\"},"
                    "{\"name\": \"code\", \"mappedpermission\": \"r.x.\"},"
                    "{\"name\": \"shared\", \"sharedwith\": \"group|others\"},"
                    "{\"name\": \"files\", \"kind\": \"files\"},"
                    "{\"name\": \"v8\", \"stackfunction\": \".*v8::internal::Heap::SetUp .*\"},"
                    "{\"name\": \"typed\", \"typeinfo\": \"Box\"},"
                    "{\"name\": \"malloc\", \"allocator\": \"malloc|slack\"}," LAST);
    ck_assert_str_eq(component(&row), "rest");
    row.node = 1;
    ck_assert_str_eq(component(&row), "v8");
    row.kind = ML_COMPONENT_FILES;
    ck_assert_str_eq(component(&row), "files");
    row.sharing = ML_ROW_GROUP;
    ck_assert_str_eq(component(&row), "shared");
    row.permissions = READ | EXECUTE;
    ck_assert_str_eq(component(&row), "code");
    row.name = (struct ml_profile_text){.bytes = "arena]", .count_bytes = 5};
    ck_assert_str_eq(component(&row), "named");
    row = row_of(ML_ROW_SLACK, ML_COMPONENT_SLACK, "[heap]");
    ck_assert_str_eq(component(&row), "malloc");
    row = row_of(ML_ROW_MALLOC, ML_COMPONENT_HEAP, "");
    row.type = (struct ml_profile_text){.bytes = "Boxes", .count_bytes = 5};
    ck_assert_str_eq(component(&row), "malloc");
    row.type = (struct ml_profile_text){.bytes = "Box", .count_bytes = 3};
    ck_assert_str_eq(component(&row), "typed");
}
END_TEST

START_TEST(a_type_that_is_not_known_is_dmprofs_word) {
    struct ml_row row = row_of(ML_ROW_MALLOC, ML_COMPONENT_HEAP, "");

    read_policy(OWN "{\"name\": \"untyped\", \"typeinfo\": \"no typeinfo\"}," LAST);
    ck_assert_str_eq(component(&row), "untyped");
    row.type = (struct ml_profile_text){.bytes = "Box", .count_bytes = 3};
    ck_assert_str_eq(component(&row), "rest");
}
END_TEST

START_TEST(source_files_and_modules_of_a_stack_are_matched) {
    struct ml_row row = row_of(ML_ROW_MMAP, ML_COMPONENT_MAPPED, "");

    row.node = 1;
    read_policy(OWN "{\"name\": \"source\", \"stacksourcefile\": \"src/.*\"}," LAST);
    ck_assert_str_eq(component(&row), "source");
    ml_policy_fini(&policy);
    read_policy(OWN "{\"name\": \"lone\", \"stackmodule\": \"/opt/node .*liblone.*\"}," LAST);
    ck_assert_str_eq(component(&row), "lone");
    ml_policy_fini(&policy);
    read_policy(OWN "{\"name\": \"bare\", \"stackfunction\": \".* liblone.so.1.0x40\"}," LAST);
    ck_assert_str_eq(component(&row), "bare");
}
END_TEST

START_TEST(a_component_of_each_module_is_named_by_it) {
    struct ml_row row = row_of(ML_ROW_MMAP, ML_COMPONENT_MAPPED, "");

    read_policy(OWN "{\"name\": \"by {module}!\"}]}");
    ck_assert_uint_eq(policy.components.count, 0);
    row.node = 1;
    ck_assert_str_eq(component(&row), "by node!");
    row.node = ML_STACKS_NONE;
    row.file.bytes = "/lib/libz.so.1";
    ck_assert_str_eq(component(&row), "by libz.so.1!");
    row.file.bytes = "";
    ck_assert_str_eq(component(&row), "by unknown!");
}
END_TEST

START_TEST(errors_name_file_and_rule) {
    refused("", "line");
    refused("[]", "no policy");
    refused("{\"version\": \"POLICY_MEMLOG_9\", \"rules\": []}", "POLICY_MEMLOG_9");
    refused("{\"version\": \"POLICY_MEMLOG_1\"}", "lists");
    refused("{\"version\": \"POLICY_MEMLOG_1\", \"rules\": [], \"x\": 1}", "'x'");
    refused(OWN "{\"name\": \"\"}]}", "rule 1");
    refused(OWN LAST "{", "line 1");
    refused(OWN "{\"name\": \"a\", \"stackfunktion\": \"\"}]}", "did you mean 'stackfunction'");
    refused(OWN "{\"name\": \"a\", \"allocator\": \"mallocs\"}]}", "rule 1 ('a'): 'allocator'");
    refused(OWN "{\"name\": \"a\"}, {\"name\": \"b\", \"kind\": \"(\"}]}", "rule 2 ('b'): 'kind'");
    refused(OWN "{\"name\": \"a\", \"kind\": 3}]}", "no text");
    refused(
        OWN "{\"name\": \"a\", \"stacktrace\": \"a\", \"stackfunction\": \"b\"}]}", "there twice"
    );
    refused(
        "{\"version\": \"POLICY_MEMLOG_1\", \"components\": [\"b\"], \"rules\": [{\"name\": "
        "\"a\"}]}",
        "no rule makes the component 'b'"
    );
}
END_TEST

START_TEST(a_policy_that_leaves_memory_out_is_refused_with_its_kind) {
    refused(OWN "{\"name\": \"a\", \"allocator\": \"malloc\"}]}", "allocator 'slack'");
    refused(
        OWN "{\"name\": \"a\", \"allocator\": \"malloc|slack|mmap\"},"
            "{\"name\": \"b\", \"kind\": \"code|data|files|shared memory|memlog|mapped|other .*\"}"
            "]}",
        "allocator 'unhooked' and kind 'stacks'"
    );
    refused(OWN "{\"name\": \"a\", \"mappedpathname\": \"/.*\"}]}", "allocator 'malloc'");
}
END_TEST

/* In the form of dmprof's own, which compute what no rule of theirs takes. */
START_TEST(policies_of_dmprof_are_read) {
    struct ml_row row = row_of(ML_ROW_UNHOOKED, ML_COMPONENT_CODE, "/usr/lib/libx.so");

    read_policy(
        "// comment\n"
        "{\"components\": [\"second\", \"mustbezero\", \"nonprofiled-anonymous\", "
        "\"nonprofiled-file-exec\", \"nonprofiled-other\", \"mmap-v8\", \"mmap-catch-all\", "
        "\"tc-used-all\", \"tc-unused\", \"total\"],\n"
        "\"rules\": [{\"name\": \"second\", \"stacktrace\": \"optional\", \"allocator\": "
        "\"optional\"},\n"
        "{\"name\": \"mmap-v8\", \"stacktrace\": \".*v8::.*\", \"allocator\": \"mmap\"},\n"
        "{\"name\": \"mmap-catch-all\", \"stacktrace\": \".*\", \"allocator\": \"mmap\"},\n"
        "{\"name\": \"tc-used-all\", \"stackfunction\": \".*\", \"allocator\": \"malloc\", "
        "\"sharedwith\": []}],\n"
        "\"version\": \"POLICY_DEEP_3\"}"
    );
    /* The computed ones without memory are no components. */
    ck_assert_uint_eq(policy.components.count, 7);
    ck_assert_str_eq(policy.components.strings[0].bytes, "nonprofiled-anonymous");
    ck_assert_str_eq(policy.components.strings[6].bytes, "tc-unused");
    row.permissions = READ | EXECUTE;
    ck_assert_str_eq(component(&row), "nonprofiled-file-exec");
    row.path.bytes = "";
    ck_assert_str_eq(component(&row), "nonprofiled-anonymous");
    row.path.bytes = "[stack]";
    ck_assert_str_eq(component(&row), "nonprofiled-other");
    row = row_of(ML_ROW_SLACK, ML_COMPONENT_SLACK, "[heap]");
    ck_assert_str_eq(component(&row), "tc-unused");
    row = row_of(ML_ROW_MMAP, ML_COMPONENT_MAPPED, "");
    ck_assert_str_eq(component(&row), "mmap-catch-all");
    row.node = 1;
    ck_assert_str_eq(component(&row), "mmap-v8");
}
END_TEST

START_TEST(the_policies_that_memlog_brings_are_good) {
    const char *const names[] = {"l0", "l1", "l2"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *json = ml_policy_built_in(names[i]);
        ck_assert_ptr_nonnull(json);
        ck_assert_msg(
            ml_policy_read(&policy, json, strlen(json), names[i], &error), "%s", error.text
        );
        ck_assert_int_eq(ml_policy_needs_names(&policy), i > 0);
        ml_policy_fini(&policy);
    }
    ck_assert_ptr_null(ml_policy_built_in("l9"));
}
END_TEST

START_TEST(names_are_bare_as_dmprof_has_them) {
    static const struct {
        const char *full, *bare;
    } names[] = {
        {"main", "main"},
        {"void shop::Box<int, std::less<int> >::put(int) const", "shop::Box::put"},
        {"operator new(unsigned long)", "operator new"},
        {"(anonymous namespace)::run(int)", "(anonymous namespace)::run"},
        {"Box::operator()(int)", "Box::operator()"},
        {"std::ostream& std::operator<< <char>(std::ostream&, char)", "std::operator<<"},
        {"bool operator< <int>(A<int> const&, A<int> const&)", "operator<"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char bare[256];
        ml_row_text_bare(names[i].full, bare, sizeof bare);
        ck_assert_str_eq(bare, names[i].bare);
    }
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("policy");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, the_first_rule_that_matches_takes_the_row);
    tcase_add_test(cases, each_key_is_matched_with_its_own_text);
    tcase_add_test(cases, a_type_that_is_not_known_is_dmprofs_word);
    tcase_add_test(cases, source_files_and_modules_of_a_stack_are_matched);
    tcase_add_test(cases, a_component_of_each_module_is_named_by_it);
    tcase_add_test(cases, errors_name_file_and_rule);
    tcase_add_test(cases, a_policy_that_leaves_memory_out_is_refused_with_its_kind);
    tcase_add_test(cases, policies_of_dmprof_are_read);
    tcase_add_test(cases, the_policies_that_memlog_brings_are_good);
    tcase_add_test(cases, names_are_bare_as_dmprof_has_them);
    return run_suite("policy", cases);
}
