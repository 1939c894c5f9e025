#include "tools/analyzer/model/trace_reader.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/analyzer/model/trace_decode.h"
#include "tools/analyzer/model/trace_symbols.h"
#include "tools/analyzer/progress/progress.h"

/* Trace.packet: field 1, length-delimited. */
enum { PACKET_HEAD_BYTE = 0x0a };

/* A dump's first packet begins with the clocks: field 6, length-delimited. In a file that was cut
 * inside it, only this identifies a dump. */
enum { FIRST_FIELD_BYTE = 0x32 };

/* A packet's announced length is untrusted: memory grows with the bytes that are there. */
enum { READ_STEP_BYTES = 1 << 20 };

struct packet_buffer {
    uint8_t *bytes;
    size_t capacity;
    size_t count;
    uint64_t start; /* where in the file the packet begins */
    uint64_t end;   /* one past its last byte */
};

/* The result of reading the next packet. */
enum step { STEP_PACKET, STEP_END, STEP_CUT, STEP_NONSENSE, STEP_NO_MEMORY, STEP_READ_ERROR };

static enum step end_or_error(FILE *file, enum step at_end) {
    return ferror(file) ? STEP_READ_ERROR : at_end;
}

static enum step read_length(FILE *file, struct packet_buffer *buffer, size_t *out_length) {
    uint64_t length = 0;

    for (unsigned shift = 0; shift < 35; shift += 7) {
        int byte = getc(file);
        if (byte == EOF) {
            return end_or_error(file, STEP_CUT);
        }
        buffer->end++;
        length |= (uint64_t)((unsigned)byte & 0x7f) << shift;
        if (!((unsigned)byte & 0x80)) {
            *out_length = (size_t)length;
            return length <= ML_TRACE_PACKET_MAX_BYTES ? STEP_PACKET : STEP_NONSENSE;
        }
    }
    return STEP_NONSENSE;
}

static enum step read_packet(FILE *file, struct packet_buffer *buffer) {
    int head = getc(file);
    size_t length = 0;
    enum step step = STEP_PACKET;

    buffer->start = buffer->end;
    if (head == EOF) {
        return end_or_error(file, STEP_END);
    }
    if (head != PACKET_HEAD_BYTE) {
        return STEP_NONSENSE;
    }
    buffer->end++;
    step = read_length(file, buffer, &length);
    if (step != STEP_PACKET) {
        return step;
    }
    buffer->count = 0;
    while (buffer->count < length) {
        size_t left = length - buffer->count;
        size_t wanted = left < READ_STEP_BYTES ? left : READ_STEP_BYTES;
        size_t got = 0;

        if (!ML_GROW(buffer->bytes, buffer->capacity, buffer->count + wanted)) {
            return STEP_NO_MEMORY;
        }
        got = fread(buffer->bytes + buffer->count, 1, wanted, file);
        buffer->count += got;
        buffer->end += got;
        if (got < wanted) {
            return end_or_error(file, STEP_CUT);
        }
    }
    return STEP_PACKET;
}

static void note_trouble(struct ml_profile *profile, uint64_t at, const char *what) {
    if (!profile->bad_is) {
        profile->bad_at = at;
        profile->bad_is = what;
    }
}

/* Of a reading that stands beside the process's own; NULL: there is none. */
static bool is_cut(const struct ml_profile_process *other) {
    return other && (other->regions_count != other->regions_expected ||
                     other->holdings_count != other->holdings_expected);
}

/* Mark processes that did not get all that their heads announced. */
static void mark_partial(struct ml_profile *profile) {
    for (size_t i = 0; i < profile->processes_count; i++) {
        struct ml_profile_process *process = &profile->processes[i];
        process->partial = process->arguments_count != process->arguments_expected ||
                           process->modules_count != process->modules_expected ||
                           process->regions_count != process->regions_expected ||
                           process->holdings_count != process->holdings_expected ||
                           process->strings_count != process->strings_expected ||
                           process->nodes_count != process->nodes_expected ||
                           process->cells_count != process->cells_expected ||
                           process->words_count != process->words_expected ||
                           is_cut(process->at_tree_peak);
    }
}

static int holding_order(const void *left, const void *right) {
    const struct ml_profile_region_holding *a = left, *b = right;

    if (a->region != b->region) {
        return (a->region > b->region) - (a->region < b->region);
    }
    if (a->node != b->node) {
        return (a->node > b->node) - (a->node < b->node);
    }
    return memcmp(a, b, sizeof *a);
}

/* Put the holdings of each region together. */
static void order_holdings(struct ml_profile *profile) {
    for (size_t i = 0; i < profile->processes_count; i++) {
        struct ml_profile_process *process = &profile->processes[i];
        struct ml_profile_process *then = process->at_tree_peak;
        ML_SORT(process->holdings, process->holdings_count, holding_order);
        if (then) {
            ML_SORT(then->holdings, then->holdings_count, holding_order);
        }
    }
}

/* Whether a packet's error ends the reading. */
static bool is_final(enum ml_status status) {
    return status == ML_ENV_MEMORY || status == ML_PEER_VERSION;
}

static enum ml_status read_packets(
    FILE *file, struct ml_trace_decoder *decoder, struct packet_buffer *buffer, size_t *out_whole
) {
    struct ml_profile *profile = decoder->profile;
    struct stat status_of_file = {0};

    /* Of a pipe nobody knows how much will come. */
    (void)fstat(fileno(file), &status_of_file);
    for (;;) {
        enum step step = read_packet(file, buffer);
        enum ml_status status = ML_OK;

        switch (step) {
        case STEP_END:
            profile->truncated = !decoder->ended;
            return ML_OK;
        case STEP_CUT:
            profile->truncated = true;
            note_trouble(profile, buffer->start, "the file ends inside a packet");
            return ML_OK;
        case STEP_NONSENSE:
            profile->damaged = true;
            profile->truncated = !decoder->ended;
            note_trouble(profile, buffer->start, "no packet begins where one should");
            return ML_OK;
        case STEP_NO_MEMORY:
            return ML_ENV_MEMORY;
        case STEP_READ_ERROR:
            return ML_ENV_SYSTEM;
        case STEP_PACKET:
            break;
        }
        profile->whole_bytes = buffer->end;
        ml_progress_bytes("Reading the dump", buffer->end, (uint64_t)status_of_file.st_size, NULL);
        status = ml_trace_decode_packet(decoder, buffer->bytes, buffer->count);
        if (is_final(status)) {
            return status;
        }
        if (status != ML_OK) {
            profile->damaged = true;
            note_trouble(profile, buffer->start, ml_status_text(status));
        } else {
            (*out_whole)++;
        }
    }
}

enum ml_status ml_trace_read(FILE *file, uint32_t number, struct ml_profile *out_profile) {
    struct ml_trace_decoder decoder = {.profile = out_profile, .wanted_dump = number};
    struct packet_buffer buffer = {0};
    size_t whole_packets = 0;
    enum ml_status status = ML_OK;
    bool is_cut_at_start = false;

    ml_profile_restart(out_profile);
    status = read_packets(file, &decoder, &buffer, &whole_packets);
    is_cut_at_start = whole_packets == 0 && out_profile->truncated && !out_profile->damaged &&
                      buffer.count > 0 && buffer.bytes[0] == FIRST_FIELD_BYTE;
    free(buffer.bytes);
    mark_partial(out_profile);
    order_holdings(out_profile);
    ml_trace_symbols_finish(&out_profile->symbols);
    ml_profile_part_heaps(out_profile);
    ml_profile_spread_errors(out_profile);
    ml_profile_settle_live(out_profile);
    if (status != ML_OK || out_profile->has_run) {
        return status;
    }
    if (is_cut_at_start) {
        return ML_OK;
    }
    return whole_packets == 0 && out_profile->damaged ? ML_PEER_FORM : ML_ENV_MISSING;
}

const char *ml_trace_read_advice(enum ml_status status) {
    switch (status) {
    case ML_PEER_FORM:
        return "this is no dump of memlog's; dumps are the *.pftrace files in the output folder of "
               "memlog run";
    case ML_ENV_MISSING:
        return "there is nothing of memlog's in it: it is empty, cut off at its very beginning, or "
               "a Perfetto trace of another program";
    case ML_PEER_VERSION:
        return "a newer memlog wrote it; use that version's memlog to read it";
    case ML_ENV_SYSTEM:
        return "it cannot be read";
    default:
        return ml_status_text(status);
    }
}
