#include "ipc/wire/ml_status.h"

/* Bytes of the longest name and text with their NUL. Rows of characters, not pointers: libmemlog.so
 * has them too, and a pointer is a relocation in every process. */
enum { NAME_BYTES = 24, TEXT_BYTES = 72 };
#define ML_STATUS_FITS(name, text)                                                                 \
    _Static_assert(sizeof(#name) <= NAME_BYTES && sizeof(text) <= TEXT_BYTES, "a longer row");
ML_STATUS_LIST(ML_STATUS_FITS)
#undef ML_STATUS_FITS

static const char status_names[ML_STATUS_COUNT][NAME_BYTES] = {
#define ML_STATUS_NAME(name, text) [name] = #name,
    ML_STATUS_LIST(ML_STATUS_NAME)
#undef ML_STATUS_NAME
};

static const char status_texts[ML_STATUS_COUNT][TEXT_BYTES] = {
#define ML_STATUS_TEXT(name, text) [name] = (text),
    ML_STATUS_LIST(ML_STATUS_TEXT)
#undef ML_STATUS_TEXT
};

const char *ml_status_name(enum ml_status status) {
    if ((unsigned)status >= ML_STATUS_COUNT) {
        return "ML_STATUS_?";
    }
    return status_names[status];
}

const char *ml_status_text(enum ml_status status) {
    if ((unsigned)status >= ML_STATUS_COUNT) {
        return "a status outside the list";
    }
    return status_texts[status];
}

enum ml_family ml_status_family(enum ml_status status) {
    if (status == ML_OK) {
        return ML_FAMILY_OK;
    }
    if (status < ML_ENV_MEMORY) {
        return ML_FAMILY_PEER;
    }
    return status < ML_BUG_SPACE ? ML_FAMILY_ENV : ML_FAMILY_BUG;
}
