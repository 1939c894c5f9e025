#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

#include "tools/dev/stream/pack.h"

static const char *const lines[] = {
    "START pid=7",
    "START clock=monotonic pid=4294967295 thread=7 ticks=18446744073709551615",
    "START pid=1 monotonic_ns=1 sampling_bytes=4096 stack_mode=mixed page_bytes=4096 fork_serial=3",
    "THREAD id=9 name=\"a\\x00\\\"\\\\\\xff\"",
    ("MODULE id=1 start=0x1000 end=0x2000 bias=-5 build_id=00ab path=\"/lib/x y\" "
     "code_address=0x1000 code_offset=0x800"),
    "STRING id=1 text=\"\\x0a\"",
    "TYPE id=65535 string=1",
    "HEAP id=255 string=1",
    "NODE id=1 frame=thread string=1",
    "NODE id=2 parent=1 module=1 address=0x401000",
    "NODE id=3 parent=2 frame=cut",
    "NODE id=4 parent=3 frame=scope string=1",
    "NODE id=5 parent=4 frame=broken",
    "ALLOC time=5 address=0x1008 size=24 node=1",
    "ALLOC time=5 address=0x1010 size=24 node=1 heap=1 type=2 weight_bytes=240 weight_blocks=10",
    "ALLOC time=5 address=0x1020 size=24 weight_bytes=24",
    "FREE time=5 address=0x1020 marks=skipped",
    "RESIZE time=5 address=0x1020 heap=1 marks=skipped-unsure",
    "FREE time=6 address=0x1008",
    "RESIZE time=7 address=0x1010 heap=1",
    "CANCEL time=8",
    "SAMPLING time=9 bytes=1",
    "FORK time=9 serial=1",
    "REAPED time=9 pid=44",
    "MAPPING time=10 address=0x7000 length=4096 flags=3 node=2",
    "MAPPING time=10 kind=unmap address=0x7000 length=4096",
    "MAPPING time=10 kind=moved address=0x9000 length=8192 node=2",
    "MAPPING time=10 kind=name address=0x9000 length=4096 string=1",
    "MAPPING time=10 kind=stack address=0x10000 length=4096 node=2",
    "UNLOAD time=11 module=1",
    "LOSS time=11 reason=nested count=12",
    "END time=12 kind=exec",
};
enum { LINES = sizeof(lines) / sizeof(*lines) };

START_TEST(a_line_that_was_read_is_written_the_same) {
    static struct ml_stream_scratch scratch;
    char written[ML_STREAM_LINE_MAX_BYTES];
    struct ml_event event;
    const enum ml_status status = ml_stream_text_parse(lines[_i], &scratch, &event);
    ck_assert_msg(status == ML_OK, "%s: %s", lines[_i], scratch.error);
    ml_stream_text_format(&event, written);
    ck_assert_str_eq(written, lines[_i]);
}
END_TEST

static struct ml_stream_packer *pack(const char *const *text, size_t count) {
    struct ml_stream_packer *packer = ml_stream_packer_new();
    ck_assert_ptr_nonnull(packer);
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(
            ml_stream_packer_line(packer, text[i]) == ML_OK,
            "%s: %s",
            text[i],
            packer->scratch.error
        );
    }
    ck_assert_int_eq(ml_stream_packer_flush(packer), ML_OK);
    return packer;
}

START_TEST(a_stream_unpacked_and_packed_again_has_the_same_bytes) {
    static const char *const odd[] = {
        "frame lane=3 chunk=9 start=100 thread=77",
        "bytes 00ff 11",
        "frame lane=3 chunk=9",
        "bytes 01",
        "frame lane=3",
        "CANCEL time=1",
        "frame lane=3 chunk=10",
        "CANCEL time=2",
        "frame",
        "FREE time=1 address=0x10",
        "raw 001122",
    };
    struct ml_stream_packer *first = pack(lines, LINES);
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        ck_assert_int_eq(ml_stream_packer_line(first, odd[i]), ML_OK);
    }
    ck_assert_int_eq(ml_stream_packer_flush(first), ML_OK);
    char *text = NULL;
    size_t text_size = 0;
    FILE *out = open_memstream(&text, &text_size);
    ck_assert_int_eq(ml_stream_unpack(first->out, first->out_count, out), ML_OK);
    fclose(out);
    struct ml_stream_packer *second = ml_stream_packer_new();
    ck_assert_ptr_nonnull(second);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        ck_assert_msg(
            ml_stream_packer_line(second, line) == ML_OK, "%s: %s", line, second->scratch.error
        );
    }
    ck_assert_int_eq(ml_stream_packer_flush(second), ML_OK);
    ck_assert_uint_eq(first->out_count, second->out_count);
    ck_assert_mem_eq(first->out, second->out, first->out_count);
    ml_stream_packer_free(first);
    ml_stream_packer_free(second);
    free(text);
}
END_TEST

START_TEST(a_wrong_line_says_what_is_wrong_with_it) {
    static const struct {
        const char *line, *error;
    } wrong[] = {
        {"ALOC time=1", "no kind of record: 'ALOC'"},
        {"ALLOC time=1 adress=0x10", "no field of this kind: 'adress'"},
        {"ALLOC time=x", "not a value of its field: 'time=x'"},
        {"ALLOC time=-1", "not a value of its field: 'time=-1'"},
        {"FREE time=1 address=0x10 heap=65536", "not a value of its field: 'heap=65536'"},
        {"END time=1 kind=never", "not a value of its field: 'kind=never'"},
        {"STRING id=1 text=\"open", "not a value of its field: 'text=\"open'"},
        {"MODULE id=1 build_id=0", "not a value of its field: 'build_id=0'"},
        {"FREE time=1", "a value is out of range, or its time is before the last one's"},
        {"frame lane=9999", "there are not so many lanes"},
        {"bytes 0", "bytes are pairs of hexadecimal digits"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct ml_stream_packer *packer = ml_stream_packer_new();
        ck_assert_ptr_nonnull(packer);
        ck_assert_int_eq(
            ml_status_family(ml_stream_packer_line(packer, wrong[i].line)), ML_FAMILY_PEER
        );
        ck_assert_str_eq(packer->scratch.error, wrong[i].error);
        ml_stream_packer_free(packer);
    }
}
END_TEST

START_TEST(a_full_chunk_is_refused_not_cut) {
    struct ml_stream_packer *packer = ml_stream_packer_new();
    ck_assert_ptr_nonnull(packer);
    enum ml_status status = ML_OK;
    for (int i = 0; i < ML_CHUNK_MAX_BYTES && status == ML_OK; i++) {
        status = ml_stream_packer_line(packer, "CANCEL time=1");
    }
    ck_assert_int_eq(status, ML_PEER_LIMIT);
    ml_stream_packer_free(packer);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("stream");
    tcase_add_loop_test(tcase, a_line_that_was_read_is_written_the_same, 0, LINES);
    tcase_add_test(tcase, a_stream_unpacked_and_packed_again_has_the_same_bytes);
    tcase_add_test(tcase, a_wrong_line_says_what_is_wrong_with_it);
    tcase_add_test(tcase, a_full_chunk_is_refused_not_cut);
    return run_suite("tools/dev/stream", tcase);
}
