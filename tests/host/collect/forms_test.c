#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "host/collect/forms/inbox.h"
#include "host/collect/forms/parts.h"
#include "host/collect/forms/sigv4.h"
#include "tests/suite.h"

/* ---- the example of S3's own documentation, "PUT Object" */

static const char secret[] = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
static const char authorization[] =
    "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
    "SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class, "
    "Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd";
enum { ITS_TIME_S = 1369353600 };

/* Headers one of which may be another one. */
struct headers {
    const char *changed, *value;
};

static const char *header(void *context, const char *name) {
    static const char *const list[][2] = {
        {"date", "Fri, 24 May 2013 00:00:00 GMT"},
        {"host", "examplebucket.s3.amazonaws.com"},
        {"x-amz-content-sha256",
         "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"},
        {"x-amz-date", "20130524T000000Z"},
        {"x-amz-storage-class", "  REDUCED_REDUNDANCY "},
    };
    const struct headers *headers = context;
    if (headers->changed && strcmp(name, headers->changed) == 0) {
        return headers->value;
    }
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        if (strcmp(list[i][0], name) == 0) {
            return list[i][1];
        }
    }
    return NULL;
}

static struct ml_sigv4_request request_of(struct headers *headers) {
    return (struct ml_sigv4_request
    ){.method = "PUT",
      .path = "/test$file.text",
      .query = "",
      .header = header,
      .context = headers};
}

START_TEST(the_signature_of_the_example_is_verified) {
    struct headers headers = {.changed = NULL};
    struct ml_sigv4_request request = request_of(&headers);
    struct ml_sigv4 what;

    ck_assert_ptr_null(ml_sigv4_read(authorization, &what));
    ck_assert_str_eq(what.key_id, "AKIAIOSFODNN7EXAMPLE");
    ck_assert_ptr_null(ml_sigv4_time(&what, &request, ITS_TIME_S));
    ck_assert(ml_sigv4_is_signed(&what, &request, secret));
    ck_assert(!ml_sigv4_is_signed(&what, &request, "another"));
    request.path = "/test$file.tex";
    ck_assert(!ml_sigv4_is_signed(&what, &request, secret));
    request = request_of(&headers);
    request.query = "uploads=";
    ck_assert(!ml_sigv4_is_signed(&what, &request, secret));
    request = request_of(&headers);
    what.signature[63] ^= 1;
    ck_assert(!ml_sigv4_is_signed(&what, &request, secret));
}
END_TEST

START_TEST(what_is_signed_cannot_be_another) {
    static const char *const names[] = {"date", "host", "x-amz-content-sha256", "x-amz-date"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct headers headers = {.changed = names[i], .value = "20130524T000001Z"};
        const struct ml_sigv4_request request = request_of(&headers);
        struct ml_sigv4 what;
        ck_assert_ptr_null(ml_sigv4_read(authorization, &what));
        ck_assert(!ml_sigv4_is_signed(&what, &request, secret));
    }
}
END_TEST

static const char *time_trouble(const char *stamp, int64_t now_s) {
    struct headers headers = {.changed = "x-amz-date", .value = stamp};
    const struct ml_sigv4_request request = request_of(&headers);
    struct ml_sigv4 what;
    ck_assert_ptr_null(ml_sigv4_read(authorization, &what));
    return ml_sigv4_time(&what, &request, now_s);
}

START_TEST(a_request_is_good_for_15_minutes) {
    static const char stamp[] = "20130524T000000Z";
    static const char *const wrong[] = {
        "", "20130525T000000Z", "20130524T000000", "20130524T000000Z ", "20130524T250000Z", NULL};
    ck_assert_ptr_null(time_trouble(stamp, ITS_TIME_S + ML_SIGV4_SKEW_S));
    ck_assert_ptr_null(time_trouble(stamp, ITS_TIME_S - ML_SIGV4_SKEW_S));
    ck_assert_ptr_nonnull(time_trouble(stamp, ITS_TIME_S + ML_SIGV4_SKEW_S + 1));
    ck_assert_ptr_nonnull(time_trouble(stamp, ITS_TIME_S - ML_SIGV4_SKEW_S - 1));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_ptr_nonnull(time_trouble(wrong[i], ITS_TIME_S));
    }
}
END_TEST

START_TEST(a_header_that_was_cut_is_none) {
    for (size_t count = 0; count < sizeof authorization - 1; count++) {
        char *cut = strndup(authorization, count);
        struct ml_sigv4 what;
        ck_assert_ptr_nonnull(ml_sigv4_read(cut, &what));
        free(cut);
    }
}
END_TEST

/* ---- parts */

START_TEST(parts_are_listed_however_their_etags_are_quoted) {
    const char *list = "<C><Part><PartNumber>1</PartNumber><ETag>\"a-1\"</ETag></Part>\n"
                       "<Part><ETag>&quot;b-1&quot;</ETag><PartNumber>10000</PartNumber></Part>"
                       "<Part><PartNumber>10001</PartNumber><ETag>c</ETag></Part></C>";
    char etag[8];
    unsigned number = 0;
    ck_assert(ml_parts_next(&list, &number, etag, sizeof etag));
    ck_assert_uint_eq(number, 1);
    ck_assert_str_eq(etag, "a-1");
    ck_assert(!ml_parts_next(&list, &number, etag, sizeof etag)); /* it does not fit, quoted */
    {
        char room[32];
        ck_assert(ml_parts_next(&list, &number, room, sizeof room));
        ck_assert_str_eq(room, "b-1");
        ck_assert_uint_eq(number, 10000);
        ck_assert(!ml_parts_next(&list, &number, room, sizeof room));
    }
}
END_TEST

START_TEST(an_upload_is_its_teams_and_its_keys) {
    char folder[] = "/tmp/memlog-parts-XXXXXX";
    struct ml_parts parts;
    char id[ML_PARTS_ID_BYTES];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert(ml_parts_open(&parts, folder));
    ck_assert(ml_parts_begin(&parts, "red", "/b/k", id));
    ck_assert(ml_parts_is(&parts, id, "red", "/b/k"));
    ck_assert(!ml_parts_is(&parts, id, "blue", "/b/k"));
    ck_assert(!ml_parts_is(&parts, id, "red", "/b/other"));
    ck_assert(!ml_parts_is(&parts, "../../../../../../../etc/passwd0", "red", "/b/k"));
    ck_assert_uint_eq(ml_parts_bytes(&parts, id, 0), 0);
    ml_parts_remove(&parts, id);
    ck_assert(!ml_parts_is(&parts, id, "red", "/b/k"));
    for (unsigned i = 0; i < ML_PARTS_UPLOADS_MAX; i++) {
        ck_assert(ml_parts_begin(&parts, "red", "/b/k", id));
    }
    ck_assert(!ml_parts_begin(&parts, "red", "/b/k", id));
    ck_assert(ml_parts_begin(&parts, "re", "/b/k", id)); /* others have their own */
    char command[64];
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(a_guid_is_of_memlogs_names_alone) {
    char guid[ML_INBOX_GUID_BYTES];
    ck_assert(ml_inbox_guid("memlog-0a.trace.json.gz", guid));
    ck_assert_str_eq(guid, "0a");
    ck_assert(ml_inbox_guid("/bucket/x/memlog-0b.trace.json.gz", guid));
    ck_assert_str_eq(guid, "0b");
    ck_assert(!ml_inbox_guid("memlog-.trace.json.gz", guid));
    ck_assert(!ml_inbox_guid("memlog-0a.trace.json.gz.part", guid));
    ck_assert(!ml_inbox_guid("memlog-0a/.trace.json.gz", guid));
    ck_assert(!ml_inbox_guid("other-0a.trace.json.gz", guid));
    ck_assert_str_eq(guid, "");
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("forms");
    tcase_add_test(tests, the_signature_of_the_example_is_verified);
    tcase_add_test(tests, what_is_signed_cannot_be_another);
    tcase_add_test(tests, a_request_is_good_for_15_minutes);
    tcase_add_test(tests, a_header_that_was_cut_is_none);
    tcase_add_test(tests, parts_are_listed_however_their_etags_are_quoted);
    tcase_add_test(tests, an_upload_is_its_teams_and_its_keys);
    tcase_add_test(tests, a_guid_is_of_memlogs_names_alone);
    return run_suite("forms", tests);
}
