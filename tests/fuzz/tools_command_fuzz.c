/* The analyzer's command line over dump files of anybody's: what `memlog report`, `diff`, `convert`
 * and so on do with them, whole, but for the sandbox around it.
 *
 * Input: a byte that chooses the command with its form (255: one after another), two that choose
 * options, then packets as in tools_trace_fuzz.c: a byte kind, two bytes length, body. Checksums
 * and frames are made true, so that mutants reach what stands behind them. Kind 0 is a packet of
 * somebody else's (the body as it is), kind 255 no packet, but bytes of the file. Under libFuzzer
 * mutants keep to packets' ends: LLVMFuzzerCustomMutator(). */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <pb_encode.h>

#include "ipc/trace/crc32.h"
#include "ipc/trace/trace.pb.h"
#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/sandbox/confine.h"

enum { ALL_LINES = 255, KIND_OTHER = 0, KIND_RAW = 255 };
enum { HEAD_BYTES = 3, FRAME_BYTES = 3, WORDS_MAX = 16, PATH_BYTES = 40 };

/* The sandbox would be up for all inputs that come. */
void ml_confine(const char *output_path, const char *second_path) {
    (void)second_path;
    (void)output_path;
}

void ml_confine_closed(void) {
}

/* ---- the file */

struct body {
    const uint8_t *bytes;
    size_t count;
};

static bool put_body(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct body *body = *arg;

    return pb_encode_tag_for_field(stream, field) &&
           pb_encode_string(stream, body->bytes, body->count);
}

static bool put_memlog(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    return pb_encode_tag_for_field(stream, field) &&
           pb_encode_submessage(stream, ml_trace_Memlog_fields, *arg);
}

/* Trace.packet: field 1, length-delimited. */
static void write_packet(int fd, const uint8_t *bytes, size_t count) {
    uint8_t head[16] = {0x0a};
    pb_ostream_t stream = pb_ostream_from_buffer(head + 1, sizeof(head) - 1);

    REQUIRE(pb_encode_varint(&stream, count));
    REQUIRE(write(fd, head, 1 + stream.bytes_written) == (ssize_t)(1 + stream.bytes_written));
    REQUIRE(write(fd, bytes, count) == (ssize_t)count);
}

static void write_ours(int fd, uint8_t kind, const uint8_t *bytes, size_t count) {
    static uint8_t packet[80 * 1024];
    struct body body = {.bytes = bytes, .count = count};
    ml_trace_Memlog memlog = {
        .crc32 = ml_crc32(ml_crc32(0, &kind, 1), bytes, count),
        .kind = kind,
        .body = {.funcs.encode = put_body, .arg = &body},
    };
    ml_trace_TracePacket message = ml_trace_TracePacket_init_zero;
    pb_ostream_t stream = pb_ostream_from_buffer(packet, sizeof(packet));

    message.memlog = (pb_callback_t){.funcs.encode = put_memlog, .arg = &memlog};
    REQUIRE(pb_encode(&stream, ml_trace_TracePacket_fields, &message));
    write_packet(fd, packet, stream.bytes_written);
}

static void write_end(int fd, uint32_t packets_count) {
    ml_trace_MemlogEnd end = {.packets_count = packets_count};
    uint8_t bytes[16];
    pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof(bytes));

    REQUIRE(pb_encode(&stream, ml_trace_MemlogEnd_fields, &end));
    write_ours(fd, ml_trace_MemlogKind_MEMLOG_END, bytes, stream.bytes_written);
}

/* Up to `packets_max` packets, and an end that counts them. Returns the file. */
static int make_dump(const uint8_t *data, size_t count_bytes, size_t packets_max, bool has_end) {
    const int fd = memfd_create("dump", MFD_CLOEXEC);
    uint32_t packets_count = 1; /* the end itself */
    size_t at = 0;

    REQUIRE(fd >= 0);
    for (size_t i = 0; i < packets_max && count_bytes - at >= FRAME_BYTES; i++) {
        const size_t left = count_bytes - at - FRAME_BYTES;
        size_t length = data[at + 1] | (size_t)data[at + 2] << 8;
        length = length < left ? length : left;
        if (data[at] == KIND_RAW) {
            REQUIRE(write(fd, data + at + FRAME_BYTES, length) == (ssize_t)length);
        } else if (data[at] == KIND_OTHER) {
            write_packet(fd, data + at + FRAME_BYTES, length);
        } else {
            write_ours(fd, data[at], data + at + FRAME_BYTES, length);
            packets_count = data[at] == ml_trace_MemlogKind_MEMLOG_RUN ? 2 : packets_count + 1;
        }
        at += FRAME_BYTES + length;
    }
    if (has_end) {
        write_end(fd, packets_count);
    }
    return fd;
}

/* ---- the command line */

/* What an option's bits choose from; NULL ends them, and the first is none. */
static const char *const metrics[] = {
    "", "--metric=live", "--metric=peak", "--metric=total", "--metric=waste", NULL};
static const char *const limits[] = {"", "--limit=1", "--limit=3", "--limit=4000000000", NULL};
static const char *const pids[] = {"", "--pid=4000", "--pid=1", NULL};
static const char *const prunes[] = {"", "--prune=1", "--prune=16K", "--prune=1T", NULL};
static const char *const dumps[] = {"", "--dump=1", "--dump=2", NULL};
static const char *const focuses[] = {"", "--focus=a", "--ignore=[a-m]", "--hide=o", NULL};
static const char *const orders[] = {
    "", "--sort=total", "--sort=temporary", "--sort=cumulative", "--plumbing", NULL};
static const char *const groupings[] = {
    "", "--by=type", "--by=heap,type", "--by=backtrace,heap", "--by=scope", NULL};
static const char *const roles[] = {"", "--role=browser", "--role=other", NULL};
static const char *const spans[] = {
    "", "--from=+1", "--to=-1", "--from=00:00", "--from=@1", "--points=3", "--no-stacks", NULL};
static const char *const names[] = {"", "--upload-names=none", "--upload-names=all", NULL};
static const char *const sizes[] = {
    "", "--upload-max-bytes=4096", "--memlog-keep-small-allocations", "--upload-prune=9", NULL};

static const char *const policies[] = {"", "--policy=l0", "--policy=l1", "--policy=l2", NULL};
static const char *const figures[] = {
    "", "--figure=pss", "--figure=rss", "--figure=private", "--figure=swap", NULL};
static const char *const moments[] = {"", "--at=peak", "--at=dump", NULL};
static const char *const allocators[] = {"", "--allocator=pool=pool_", NULL};
static const char *const depths[] = {"", "--depth=1", "--depth=4000000000", NULL};

enum file { FILE_FIRST, FILE_BOTH, FILE_BEFORE }; /* DUMP; BEFORE DUMP; --before=BEFORE DUMP */

/* Every sub-command with each form that it has. */
static const struct line {
    const struct ml_command *command;
    const char *words[3];
    const char *const *options[5];
    enum file file;
} lines[] = {
    {&ml_command_report, {NULL}, {limits, pids, focuses, orders, dumps}, FILE_FIRST},
    {&ml_command_report, {"--json"}, {limits, pids, focuses, metrics, dumps}, FILE_FIRST},
    {&ml_command_report, {"--csv"}, {limits, pids, focuses, orders, metrics}, FILE_FIRST},
    {&ml_command_report, {"--summary"}, {limits, pids, dumps}, FILE_FIRST},
    {&ml_command_report, {"--by=function"}, {limits, pids, focuses, orders, metrics}, FILE_FIRST},
    {&ml_command_report, {"--by=module", "--csv"}, {limits, pids, orders, metrics}, FILE_FIRST},
    {&ml_command_report, {"--by=thread", "--json"}, {limits, pids, orders, metrics}, FILE_FIRST},
    {&ml_command_report, {"--by=size"}, {limits, pids, orders, metrics}, FILE_FIRST},
    {&ml_command_report, {"--by=process"}, {limits, pids, orders, metrics}, FILE_FIRST},
    {&ml_command_report, {"--by=type"}, {limits, pids, focuses, orders, metrics}, FILE_FIRST},
    {&ml_command_diff, {NULL}, {metrics, limits, pids, focuses}, FILE_BOTH},
    {&ml_command_diff, {"--json"}, {metrics, limits, pids}, FILE_BOTH},
    {&ml_command_diff, {"--leaks"}, {metrics, limits, pids}, FILE_BOTH},
    {&ml_command_diff, {"--leaks"}, {metrics, limits}, FILE_FIRST},
    {&ml_command_diff, {"--html", "-o", "/dev/null"}, {metrics, pids, groupings}, FILE_BOTH},
    {&ml_command_diff, {"--pprof", "-o", "/dev/null"}, {metrics, pids}, FILE_BOTH},
    {&ml_command_flamegraph,
     {"-o", "/dev/null"},
     {metrics, pids, prunes, focuses, groupings},
     FILE_FIRST},
    {&ml_command_convert, {"--to=perfetto", "-o", "/dev/null"}, {NULL}, FILE_FIRST},
    {&ml_command_convert, {"--to=pprof", "-o", "/dev/null"}, {metrics, pids, prunes}, FILE_FIRST},
    {&ml_command_convert, {"--to=pprof", "-o", "/dev/null"}, {metrics, pids}, FILE_BEFORE},
    {&ml_command_convert, {"--to=heap"}, {pids, prunes, dumps}, FILE_FIRST},
    {&ml_command_convert, {"--to=chrome", "-o", "/dev/null"}, {pids, prunes, dumps}, FILE_FIRST},
    {&ml_command_convert,
     {"--to=collapsed"},
     {metrics, pids, prunes, dumps, groupings},
     FILE_FIRST},
    {&ml_command_convert, {"--to=sqlite", "-o", "/dev/null"}, {pids, prunes, dumps}, FILE_FIRST},
    {&ml_command_convert, {"--to=json"}, {pids, prunes, dumps}, FILE_FIRST},
    {&ml_command_convert, {"--to=html"}, {metrics, pids, prunes, dumps}, FILE_FIRST},
    {&ml_command_symbolize, {"--symbols-only", "-o", "/dev/null"}, {NULL}, FILE_FIRST},
    {&ml_command_symbolize, {"-o", "/dev/null"}, {NULL}, FILE_FIRST},
    {&ml_command_suspects, {NULL}, {limits, pids, dumps}, FILE_FIRST},
    {&ml_command_suspects, {"--json"}, {limits, pids, dumps}, FILE_FIRST},
    {&ml_command_timeline, {NULL}, {limits, pids, spans, dumps}, FILE_FIRST},
    {&ml_command_timeline, {"--json"}, {limits, pids, spans, dumps}, FILE_FIRST},
    {&ml_command_timeline, {"--csv"}, {limits, pids, spans, dumps}, FILE_FIRST},
    {&ml_command_timeline, {"--html"}, {limits, pids, spans, dumps}, FILE_FIRST},
    {&ml_command_page_data, {NULL}, {pids, roles, metrics}, FILE_FIRST},
    {&ml_command_page_data, {"--processes"}, {pids, roles}, FILE_FIRST},
    {&ml_command_page_data, {NULL}, {pids, roles, metrics, groupings}, FILE_BEFORE},
    {&ml_command_upload, {"--dry-run"}, {names, sizes}, FILE_FIRST},
    {&ml_command_upload, {"--dry-run", "--form=trace"}, {names, sizes}, FILE_FIRST},
    {&ml_command_upload, {"--dry-run", "--form=pprof"}, {names, sizes}, FILE_FIRST},
    {&ml_command_upload, {"--dry-run", "--form=pyroscope"}, {names, sizes}, FILE_FIRST},
    {&ml_command_upload, {"--dry-run", "--form=pyroscope-ingest"}, {names, sizes}, FILE_FIRST},
    {&ml_command_upload, {"--dry-run", "--form=otlp"}, {names, sizes}, FILE_FIRST},
    {&ml_command_components, {NULL}, {policies, limits, pids}, FILE_FIRST},
    {&ml_command_components, {NULL}, {policies, figures, limits}, FILE_BOTH},
    {&ml_command_components, {"--json"}, {policies, figures, pids, moments}, FILE_FIRST},
    {&ml_command_components, {"--csv"}, {policies, figures, pids, moments}, FILE_BOTH},
    {&ml_command_components, {"--html", "-o", "/dev/null"}, {policies, figures}, FILE_BOTH},
    {&ml_command_expand, {"heap"}, {depths, pids}, FILE_FIRST},
    {&ml_command_expand, {"mapped"}, {depths, pids, moments}, FILE_FIRST},
    {&ml_command_list, {NULL}, {policies, pids}, FILE_FIRST},
    {&ml_command_list, {"--csv"}, {policies, pids, moments}, FILE_FIRST},
    {&ml_command_entries, {NULL}, {allocators}, FILE_FIRST},
    {&ml_command_entries, {"--json"}, {allocators}, FILE_FIRST},
    {&ml_command_entries, {"--sentence"}, {allocators}, FILE_FIRST},
};
enum { LINES = sizeof(lines) / sizeof(lines[0]) };

/* The words of a line, each option by three of the bits. */
static void
words_of(const struct line *line, unsigned bits, char *first, char *before, char **out_words) {
    static char joined[PATH_BYTES + sizeof("--before=")];
    int count = 0;

    for (size_t i = 0; i < 3 && line->words[i] != NULL; i++) {
        out_words[count++] = (char *)(uintptr_t)line->words[i];
    }
    for (size_t i = 0; i < 5 && line->options[i] != NULL; i++) {
        unsigned choices = 0;
        while (line->options[i][choices] != NULL) {
            choices++;
        }
        const char *word = line->options[i][(bits >> 3 * i & 7) % choices];
        if (word[0] != '\0') {
            out_words[count++] = (char *)(uintptr_t)word;
        }
    }
    if (line->file == FILE_BEFORE) {
        (void)snprintf(joined, sizeof(joined), "--before=%s", before);
        out_words[count++] = joined;
    } else if (line->file == FILE_BOTH) {
        out_words[count++] = before;
    }
    out_words[count++] = first;
    out_words[count] = NULL;
    REQUIRE(count < WORDS_MAX);
}

static void start(void) {
    /* Nothing of this machine shall tell. */
    REQUIRE(setenv("MEMLOG_SYMBOL_CACHE", "off", 1) == 0 && unsetenv("DEBUGINFOD_URLS") == 0);
    REQUIRE(unsetenv("MEMLOG_PROGUARD_MAP") == 0 && unsetenv("PERFETTO_PROGUARD_MAP") == 0);
    REQUIRE(unsetenv("MEMLOG_BINARY_PATH") == 0 && setenv("COLUMNS", "100", 1) == 0);
}

/* Carry one line out, its words said to nobody. */
static void carry_out(const struct line *line, unsigned bits, char *first, char *before) {
    static FILE *nowhere;
    FILE *const own_stdout = stdout;
    FILE *const own_stderr = stderr;
    char *words[WORDS_MAX];

    if (nowhere == NULL) {
        start();
        nowhere = fopen("/dev/null", "w");
        REQUIRE(nowhere != NULL);
    }
    words_of(line, bits, first, before, words);
    stdout = nowhere;
    stderr = nowhere;
    const int exit_code = line->command->run(line->command, words);
    stdout = own_stdout;
    stderr = own_stderr;
    REQUIRE(exit_code >= ML_EXIT_OK && exit_code <= ML_EXIT_LACKING);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    char first[PATH_BYTES];
    char before[PATH_BYTES];
    if (count_bytes < HEAD_BYTES) {
        return 0;
    }
    const unsigned bits = (unsigned)data[1] | (unsigned)data[2] << 8;
    const uint8_t *packets = data + HEAD_BYTES;
    const size_t packets_bytes = count_bytes - HEAD_BYTES;
    const int fd = make_dump(packets, packets_bytes, SIZE_MAX, (bits & 0x8000) == 0);
    const int before_fd =
        make_dump(packets, packets_bytes, bits % 8 == 0 ? SIZE_MAX : bits % 8, true);

    (void)snprintf(first, sizeof(first), "/proc/self/fd/%d", fd);
    (void)snprintf(before, sizeof(before), "/proc/self/fd/%d", before_fd);
    for (size_t i = 0; i < LINES; i++) {
        if (data[0] == ALL_LINES || data[0] % LINES == i) {
            carry_out(&lines[i], bits, first, before);
        }
    }
    (void)close(fd);
    (void)close(before_fd);
    return 0;
}

/* ---- mutants */

/* libFuzzer's; not there in a replay. */
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t count_bytes, size_t max_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t count_bytes, size_t max_bytes, unsigned seed);

/* Where the packet of that number begins, and how long it is with its frame. */
static size_t find_packet(const uint8_t *data, size_t count, unsigned number, size_t *out_bytes) {
    size_t starts[256];
    size_t packets = 0;

    for (size_t at = HEAD_BYTES; count - at >= FRAME_BYTES && packets < 256;) {
        const size_t left = count - at - FRAME_BYTES;
        size_t length = data[at + 1] | (size_t)data[at + 2] << 8;
        length = length < left ? length : left;
        starts[packets++] = at;
        at += FRAME_BYTES + length;
    }
    if (packets == 0) {
        return 0;
    }
    const size_t chosen = number % packets;
    *out_bytes = (chosen + 1 < packets ? starts[chosen + 1] : count) - starts[chosen];
    return starts[chosen];
}

/* Change a body and tell its new length, choose other words, say a packet twice or not at all. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t count_bytes, size_t max_bytes, unsigned seed) {
    size_t packet_bytes = 0;
    const size_t at =
        count_bytes > HEAD_BYTES ? find_packet(data, count_bytes, seed >> 8, &packet_bytes) : 0;

    if (at == 0 || seed % 16 == 0) {
        return LLVMFuzzerMutate(data, count_bytes, max_bytes);
    }
    const size_t behind = at + packet_bytes;
    const size_t rest = count_bytes - behind;
    if (seed % 16 == 1) {
        data[seed >> 4 & 1 ? 0 : 1 + (seed >> 5 & 1)] = (uint8_t)(seed >> 16);
        return count_bytes;
    }
    if (seed % 16 == 2) {
        memmove(data + at, data + behind, rest);
        return count_bytes - packet_bytes;
    }
    if (seed % 16 == 3 && count_bytes + packet_bytes <= max_bytes) {
        memmove(data + behind + packet_bytes, data + behind, rest);
        memcpy(data + behind, data + at, packet_bytes);
        return count_bytes + packet_bytes;
    }
    uint8_t *body = malloc(max_bytes);
    REQUIRE(body != NULL);
    const size_t body_bytes = packet_bytes - FRAME_BYTES;
    size_t room = max_bytes - (count_bytes - body_bytes);
    room = room < UINT16_MAX ? room : UINT16_MAX;
    memcpy(body, data + at + FRAME_BYTES, body_bytes);
    const size_t mutated = LLVMFuzzerMutate(body, body_bytes < room ? body_bytes : room, room);
    memmove(data + at + FRAME_BYTES + mutated, data + behind, rest);
    memcpy(data + at + FRAME_BYTES, body, mutated);
    data[at + 1] = (uint8_t)mutated;
    data[at + 2] = (uint8_t)(mutated >> 8);
    free(body);
    return at + FRAME_BYTES + mutated + rest;
}
