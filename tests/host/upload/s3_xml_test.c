#include "host/upload/s3_xml.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

START_TEST(an_element_is_taken_where_it_is_a_plain_word_that_fits) {
    char word[8];
    ck_assert(ml_s3_element("<a><UploadId>x/+=</UploadId></a>", "UploadId", word, sizeof(word)));
    ck_assert_str_eq(word, "x/+=");
    ck_assert(ml_s3_element("<Code>1234567</Code>", "Code", word, sizeof(word)));
    static const char *const wrong[] = {
        "",
        "<Code>",
        "</Code><Code>",
        "<Code></Code>",
        "<Code>12345678</Code>",
        "<Code>a b</Code>",
        "<Code>a\r\nb</Code>",
        "<Code>a&lt;</Code>",
        "<Code>a<b</Code>",
        "<Code>\xc3\xa4</Code>"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_msg(!ml_s3_element(wrong[i], "Code", word, sizeof(word)), "%s", wrong[i]);
    }
}
END_TEST

START_TEST(an_error_is_seen_with_attributes_too_and_nothing_else_is_one) {
    ck_assert(ml_s3_is_error("<Error><Code>InternalError</Code></Error>"));
    ck_assert(ml_s3_is_error("<?xml version=\"1.0\"?>\n<Error xmlns=\"x\"><Code>A</Code></Error>"));
    ck_assert(ml_s3_is_error("<Errors/><Error/>"));
    ck_assert(!ml_s3_is_error("<CompleteMultipartUploadResult/>"));
    ck_assert(!ml_s3_is_error("<Errors></Errors>"));
    ck_assert(!ml_s3_is_error("<Error"));
    ck_assert(!ml_s3_is_error(""));
}
END_TEST

START_TEST(a_word_becomes_part_of_a_query_whole_or_up_to_where_it_fits) {
    char query[16];
    ck_assert_uint_eq(ml_s3_encode("a/b+c~", query, sizeof(query)), 10);
    ck_assert_str_eq(query, "a%2Fb%2Bc~");
    ck_assert_uint_eq(ml_s3_encode("//////", query, sizeof(query)), 15);
    ck_assert_str_eq(query, "%2F%2F%2F%2F%2F");
}
END_TEST

START_TEST(parts_are_joined_in_their_order_and_as_many_as_there_may_be) {
    static struct ml_spool_item item;
    static char xml[ML_S3_JOIN_BYTES];
    ck_assert(ml_s3_etag("\"one\"", item.etags[0]));
    ck_assert(ml_s3_etag("\"two\"", item.etags[1]));
    ck_assert(!ml_s3_etag("", item.etags[2]));
    ck_assert(!ml_s3_etag("a</ETag>", item.etags[2]));
    item.parts = 2;
    ml_s3_join(&item, xml);
    ck_assert_str_eq(
        xml,
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"one\"</ETag></Part>"
        "<Part><PartNumber>2</PartNumber><ETag>\"two\"</ETag></Part></CompleteMultipartUpload>"
    );
    char longest[ML_SPOOL_ETAG_BYTES];
    memset(longest, 'e', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    for (item.parts = 0; item.parts < ML_SPOOL_PARTS_MAX; item.parts++) {
        ck_assert(ml_s3_etag(longest, item.etags[item.parts]));
    }
    ml_s3_join(&item, xml);
    ck_assert_ptr_nonnull(strstr(xml, "</Part></CompleteMultipartUpload>"));
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("s3_xml");
    tcase_add_test(cases, an_element_is_taken_where_it_is_a_plain_word_that_fits);
    tcase_add_test(cases, an_error_is_seen_with_attributes_too_and_nothing_else_is_one);
    tcase_add_test(cases, a_word_becomes_part_of_a_query_whole_or_up_to_where_it_fits);
    tcase_add_test(cases, parts_are_joined_in_their_order_and_as_many_as_there_may_be);
    return run_suite("host/s3_xml", cases);
}
