#include "tools/analyzer/model/trace_deobfuscation.h"

#include <pb_encode.h>
#include <stdint.h>
#include <string.h>

#include "ipc/trace/trace.pb.h"
#include "tools/analyzer/model/trace_table.h"

/* The most classes of one packet. It stays well below what readers hold in memory. */
enum { CLASSES_PER_PACKET = 1000 };

static bool read_member(struct ml_deobfuscation *names, pb_istream_t *stream, bool is_method) {
    struct ml_profile_text from = {.bytes = ""};
    struct ml_profile_text to = {.bytes = ""};
    ml_trace_ObfuscatedMember message = {
        .obfuscated_name = ML_TEXT_INTO(&names->arena, &from),
        .deobfuscated_name = ML_TEXT_INTO(&names->arena, &to),
    };

    return pb_decode(stream, ml_trace_ObfuscatedMember_fields, &message) &&
           ml_deobfuscation_member(names, from.bytes, to.bytes, is_method);
}

static bool read_field(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    (void)field;
    return read_member(*arg, stream, false);
}

static bool read_method(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    (void)field;
    return read_member(*arg, stream, true);
}

static bool read_class(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct ml_deobfuscation *names = *arg;
    struct ml_profile_text from = {.bytes = ""};
    struct ml_profile_text to = {.bytes = ""};
    size_t number = names->classes_count;
    ml_trace_ObfuscatedClass message = {
        .obfuscated_name = ML_TEXT_INTO(&names->arena, &from),
        .deobfuscated_name = ML_TEXT_INTO(&names->arena, &to),
        .obfuscated_members = {.funcs.decode = read_field, .arg = names},
        .obfuscated_methods = {.funcs.decode = read_method, .arg = names},
    };

    (void)field;
    /* The members may come before the names, so the class is added without them. */
    if (!ml_deobfuscation_class(names, "", "") ||
        !pb_decode(stream, ml_trace_ObfuscatedClass_fields, &message)) {
        return false;
    }
    names->classes[number].from = from.bytes;
    names->classes[number].to = to.bytes;
    names->classes[number].is_brought = true;
    return true;
}

enum ml_status ml_trace_deobfuscation_decode(struct ml_deobfuscation *names, pb_istream_t *stream) {
    struct ml_profile_text package = {.bytes = ""};
    size_t before = names->classes_count;
    ml_trace_DeobfuscationMapping message = {
        .package_name = ML_TEXT_INTO(&names->arena, &package),
        .obfuscated_classes = {.funcs.decode = read_class, .arg = names},
    };

    if (!pb_decode(stream, ml_trace_DeobfuscationMapping_fields, &message)) {
        ml_deobfuscation_cut(names, before);
        return ML_PEER_FORM;
    }
    for (size_t i = before; i < names->classes_count; i++) {
        names->classes[i].package = package.bytes;
    }
    return ML_OK;
}

/* Some classes of one package, as a packet. */
struct writing {
    const struct ml_deobfuscation *names;
    size_t first, count;
    size_t at; /* the current class */
};

static bool write_text(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const char *text = *arg;

    return pb_encode_tag_for_field(stream, field) &&
           pb_encode_string(stream, (const pb_byte_t *)text, strlen(text));
}

static pb_callback_t text_from(const char *text) {
    return (pb_callback_t){
        .funcs.encode = write_text,
        .arg = (void *)(uintptr_t)text, /* only read; nanopb's argument is not const */
    };
}

static bool write_members(
    pb_ostream_t *stream, const pb_field_t *field, const struct writing *writing, bool is_method
) {
    const struct ml_obfuscated_class *one = &writing->names->classes[writing->at];

    for (size_t i = 0; i < one->members_count; i++) {
        const struct ml_obfuscated_member *member = &writing->names->members[one->first_member + i];
        const ml_trace_ObfuscatedMember message = {
            .obfuscated_name = text_from(member->from),
            .deobfuscated_name = text_from(member->to),
        };
        if (member->is_method == is_method &&
            (!pb_encode_tag_for_field(stream, field) ||
             !pb_encode_submessage(stream, ml_trace_ObfuscatedMember_fields, &message))) {
            return false;
        }
    }
    return true;
}

static bool write_fields(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    return write_members(stream, field, *arg, false);
}

static bool write_methods(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    return write_members(stream, field, *arg, true);
}

static bool write_classes(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    struct writing *writing = *arg;

    for (size_t i = 0; i < writing->count; i++) {
        const struct ml_obfuscated_class *one = &writing->names->classes[writing->first + i];
        const ml_trace_ObfuscatedClass message = {
            .obfuscated_name = text_from(one->from),
            .deobfuscated_name = text_from(one->to),
            .obfuscated_members = {.funcs.encode = write_fields, .arg = writing},
            .obfuscated_methods = {.funcs.encode = write_methods, .arg = writing},
        };
        writing->at = writing->first + i;
        if (!pb_encode_tag_for_field(stream, field) ||
            !pb_encode_submessage(stream, ml_trace_ObfuscatedClass_fields, &message)) {
            return false;
        }
    }
    return true;
}

static bool write_mapping(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    struct writing *writing = *arg;
    const ml_trace_DeobfuscationMapping message = {
        .package_name = text_from(writing->names->classes[writing->first].package),
        .obfuscated_classes = {.funcs.encode = write_classes, .arg = writing},
    };

    return pb_encode_tag_for_field(stream, field) &&
           pb_encode_submessage(stream, ml_trace_DeobfuscationMapping_fields, &message);
}

static bool put_bytes(pb_ostream_t *stream, const pb_byte_t *bytes, size_t count_bytes) {
    return fwrite(bytes, 1, count_bytes, stream->state) == count_bytes;
}

void ml_trace_deobfuscation_write(const struct ml_deobfuscation *names, FILE *out) {
    for (size_t i = 0; i < names->classes_count;) {
        const struct ml_obfuscated_class *first = &names->classes[i];
        struct writing writing = {.names = names, .first = i};
        pb_ostream_t stream = {.callback = put_bytes, .state = out, .max_size = SIZE_MAX};
        const ml_trace_TracePacket packet = {
            .trusted_packet_sequence_id = 1,
            .deobfuscation_mapping = {.funcs.encode = write_mapping, .arg = &writing},
        };

        while (i < names->classes_count && writing.count < CLASSES_PER_PACKET &&
               names->classes[i].is_brought == first->is_brought &&
               strcmp(names->classes[i].package, first->package) == 0) {
            writing.count++;
            i++;
        }
        if (!first->is_brought) {
            /* A write error is reported when the file is closed. */
            (void
            )(pb_encode_tag(&stream, PB_WT_STRING, ml_trace_Trace_packet_tag) &&
              pb_encode_submessage(&stream, ml_trace_TracePacket_fields, &packet));
        }
    }
}
