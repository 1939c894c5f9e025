#include "tools/analyzer/formats/symbol_packets.h"

#include <pb_encode.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/trace/trace.pb.h"
#include "ipc/wire/event.h"
#include "tools/analyzer/formats/gzip_stream.h"

/* Addresses of one packet: it stays well below what readers hold in memory. */
enum { PLACES_PER_PACKET = 2000 };

/* Some places of one file, as a packet. */
struct writing {
    const struct ml_stacks *stacks;
    const uint32_t *places;
    size_t count;
    bool is_profiled;             /* Perfetto has a stack with them */
    const struct ml_place *place; /* the one at hand */
};

static bool write_text(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const char *text = *arg;

    return text[0] == '\0' || (pb_encode_tag_for_field(stream, field) &&
                               pb_encode_string(stream, (const pb_byte_t *)text, strlen(text)));
}

static pb_callback_t text_from(const char *text) {
    return (pb_callback_t){
        .funcs.encode = write_text,
        .arg = (void *)(uintptr_t)text, /* only read; nanopb's argument is not const */
    };
}

static bool write_bytes(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct ml_profile_text *text = *arg;

    return pb_encode_tag_for_field(stream, field) &&
           pb_encode_string(stream, (const pb_byte_t *)text->bytes, text->count_bytes);
}

static pb_callback_t bytes_from(const struct ml_profile_text *text) {
    return (pb_callback_t){.funcs.encode = write_bytes, .arg = (void *)(uintptr_t)text};
}

static bool write_lines(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct writing *writing = *arg;

    for (size_t i = 0; i < writing->place->symbols_count; i++) {
        const struct ml_symbol *symbol =
            &writing->stacks->symbols[writing->place->first_symbol + i];
        const ml_trace_ModuleSymbols_Line line = {
            .function_name = text_from(symbol->function),
            .source_file_name = text_from(symbol->file),
            .line_number = symbol->line,
        };
        if (!pb_encode_tag_for_field(stream, field) ||
            !pb_encode_submessage(stream, ml_trace_ModuleSymbols_Line_fields, &line)) {
            return false;
        }
    }
    return true;
}

static bool write_addresses(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    struct writing *writing = *arg;

    for (size_t i = 0; i < writing->count; i++) {
        ml_trace_ModuleSymbols_AddressSymbols one = {
            .lines = {.funcs.encode = write_lines, .arg = writing}};
        writing->place = &writing->stacks->places[writing->places[i]];
        one.address = writing->place->offset;
        if (!pb_encode_tag_for_field(stream, field) ||
            !pb_encode_submessage(stream, ml_trace_ModuleSymbols_AddressSymbols_fields, &one)) {
            return false;
        }
    }
    return true;
}

static bool write_module(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    struct writing *writing = *arg;
    const struct ml_code_file *file =
        &writing->stacks->files[writing->stacks->places[writing->places[0]].file];
    const ml_trace_ModuleSymbols message = {
        .path = bytes_from(&file->path),
        .build_id = bytes_from(&file->build_id),
        .address_symbols = {.funcs.encode = write_addresses, .arg = writing},
    };

    return pb_encode_tag_for_field(stream, field) &&
           pb_encode_submessage(stream, ml_trace_ModuleSymbols_fields, &message);
}

/* A write error is reported when the file is closed. */
static void put_packet(const ml_trace_TracePacket *packet, FILE *out) {
    pb_ostream_t stream = ml_pb_stream_into(out);

    (void
    )(pb_encode_tag(&stream, PB_WT_STRING, ml_trace_Trace_packet_tag) &&
      pb_encode_submessage(&stream, ml_trace_TracePacket_fields, packet));
}

static void write_packet(struct writing *writing, FILE *out) {
    const pb_callback_t symbols = {.funcs.encode = write_module, .arg = writing};
    ml_trace_TracePacket packet = {.trusted_packet_sequence_id = 1};

    if (writing->is_profiled) {
        packet.module_symbols = symbols;
    } else {
        packet.memlog_symbols = symbols;
    }
    put_packet(&packet, out);
}

static bool write_lack(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct ml_code_file *file = *arg;
    const ml_trace_ModuleSymbols message = {
        .path = bytes_from(&file->path),
        .build_id = bytes_from(&file->build_id),
        .memlog_lack = file->lack.kind,
        .memlog_lack_error = file->lack.error,
    };

    return pb_encode_tag_for_field(stream, field) &&
           pb_encode_submessage(stream, ml_trace_ModuleSymbols_fields, &message);
}

/* What only whoever looked at the processes can tell. */
static bool is_lack_news(const struct ml_code_file *file) {
    return file->lack.kind >= ML_LACK_ENDED && file->lack.kind != ML_LACK_SHARED &&
           !file->is_lack_told && !file->is_symbolized && file->path.count_bytes > 0;
}

void ml_symbol_packets_write_lacks(const struct ml_stacks *stacks, FILE *out) {
    for (size_t i = 0; i < stacks->files_count; i++) {
        const ml_trace_TracePacket packet = {
            .trusted_packet_sequence_id = 1,
            .memlog_symbols = {.funcs.encode = write_lack, .arg = &stacks->files[i]},
        };
        if (is_lack_news(&stacks->files[i])) {
            put_packet(&packet, out);
        }
    }
}

/* Which places the packets have, and what they have of them. */
struct choice {
    const struct ml_stacks *stacks;
    const bool *are_profiled;     /* by number of the place */
    bool is_profiled;             /* those that are, or the others */
    struct ml_string_table *told; /* NULL: all that the dump does not have */
};

/* Whether it was not told before; false without memory, too. */
static bool is_new(const struct choice *choice, const struct ml_place *place) {
    const struct ml_stacks *stacks = choice->stacks;
    struct ml_string_table *told = choice->told;
    const struct ml_code_file *file = &stacks->files[place->file];
    const size_t known = told->count;
    char *key = NULL;
    size_t count = 0;
    FILE *text = open_memstream(&key, &count);
    bool is_added = false;

    if (text) {
        fwrite(&choice->is_profiled, sizeof choice->is_profiled, 1, text);
        fwrite(&place->offset, sizeof place->offset, 1, text);
        fwrite(&file->build_id.count_bytes, sizeof file->build_id.count_bytes, 1, text);
        fwrite(file->build_id.bytes, 1, file->build_id.count_bytes, text);
        fwrite(file->path.bytes, 1, file->path.count_bytes, text);
        is_added = fclose(text) == 0 && ml_string_table_copy(told, key, count) == known;
    }
    free(key);
    return is_added;
}

/* Whether its names are written; with `told`, those that the dump has, too. */
static bool is_written(const struct choice *choice, uint32_t number) {
    const struct ml_place *place = &choice->stacks->places[number];

    return place->kind == ML_FRAME_ADDRESS && place->file != ML_STACKS_NONE &&
           place->symbols_count > 0 && choice->are_profiled[number] == choice->is_profiled &&
           (choice->told ? is_new(choice, place) : !place->is_brought);
}

static size_t write_chosen(const struct choice *choice, uint32_t *places, FILE *out) {
    const struct ml_stacks *stacks = choice->stacks;
    size_t count = 0;

    for (uint32_t i = 0; i < stacks->places_count; i++) {
        if (is_written(choice, i)) {
            places[count++] = i;
        }
    }
    ml_stacks_sort_places(stacks, places, count);
    for (size_t i = 0; i < count;) {
        struct writing writing = {
            .stacks = stacks, .places = &places[i], .is_profiled = choice->is_profiled};
        uint32_t file = stacks->places[places[i]].file;

        while (i < count && writing.count < PLACES_PER_PACKET &&
               stacks->places[places[i]].file == file) {
            writing.count++;
            i++;
        }
        write_packet(&writing, out);
    }
    return count;
}

/* What has a stack that allocated a byte: service/dump/profile.c writes no others. */
struct profiled {
    bool *nodes, *places; /* by number */
};

static void mark_list(
    const struct ml_stacks *stacks, const struct ml_stack_list *list, struct profiled *profiled
) {
    for (size_t i = 0; i < list->count; i++) {
        const struct ml_stack *stack = &list->stacks[i];
        uint32_t node = stack->own.total_bytes > 0 ? stack->node : ML_STACKS_NONE;

        while (node != ML_STACKS_NONE && !profiled->nodes[node]) {
            profiled->nodes[node] = true;
            profiled->places[stacks->nodes[node].place] = true;
            node = stacks->nodes[node].parent;
        }
    }
}

static void mark_profiled(const struct ml_stacks *stacks, struct profiled *profiled) {
    for (size_t i = 0; i < stacks->processes_count; i++) {
        mark_list(stacks, &stacks->processes[i], profiled);
        if (stacks->details) {
            mark_list(stacks, &stacks->details[i], profiled);
        }
    }
}

static enum ml_status write_all(
    const struct ml_stacks *stacks, struct ml_string_table *told, FILE *out, size_t *out_places
) {
    uint32_t *places = calloc(stacks->places_count + 1, sizeof *places);
    struct profiled profiled = {
        .nodes = calloc(stacks->nodes_count + 1, sizeof *profiled.nodes),
        .places = calloc(stacks->places_count + 1, sizeof *profiled.places),
    };
    const bool done = places && profiled.nodes && profiled.places;
    struct choice choice = {.stacks = stacks, .are_profiled = profiled.places, .told = told};

    *out_places = 0;
    if (done) {
        mark_profiled(stacks, &profiled);
        *out_places = write_chosen(&choice, places, out);
        choice.is_profiled = true;
        *out_places += write_chosen(&choice, places, out);
    }
    free(places);
    free(profiled.nodes);
    free(profiled.places);
    return done ? ML_OK : ML_ENV_MEMORY;
}

enum ml_status
ml_symbol_packets_write(const struct ml_stacks *stacks, FILE *out, size_t *out_places) {
    return write_all(stacks, NULL, out, out_places);
}

enum ml_status ml_symbol_packets_write_new(
    const struct ml_stacks *stacks, struct ml_string_table *told, FILE *out
) {
    size_t places = 0;

    return write_all(stacks, told, out, &places);
}
