/* Why a module's file gave no names, and what to do about it. Room: tools. Context: any thread.
 *
 * One rule: of several ways to a file that all failed, the reason is told that says most. The
 * numbers stand in dumps (ipc/trace/trace.proto) and keep their meaning. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_LACK_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_LACK_H

#include <stdint.h>

/* What says more has a larger number. */
enum ml_lack_kind {
    ML_LACK_NONE = 0,     /* there is a file, or nobody looked */
    ML_LACK_HERE = 1,     /* there is no file where its report is made */
    ML_LACK_DELETED = 2,  /* likewise, and it was deleted while the program ran */
    ML_LACK_ENDED = 3,    /* its process had ended, and no root that memlog kept has the file */
    ML_LACK_SPACE = 4,    /* likewise, and one of the mount namespaces may not be entered */
    ML_LACK_UNLINKED = 5, /* its process ran, and has nothing at that path any more */
    ML_LACK_KIND = 6,     /* no regular file is there */
    ML_LACK_SIZE = 7,     /* it is too large for a copy */
    ML_LACK_SLOW = 8,     /* its file system does not answer */
    ML_LACK_DENIED = 9,   /* it may not be read, or cannot be; with an errno */
    ML_LACK_BUILD = 10,   /* a file is there, of another build */
    ML_LACK_SHARED = 11   /* the path leads to the same file without its process */
};

struct ml_lack {
    uint32_t kind; /* enum ml_lack_kind; others by later versions */
    int32_t error; /* of DENIED */
};

/* The one that says more. */
struct ml_lack ml_lack_more(struct ml_lack one, struct ml_lack other);

/* For people, with the next step: "not readable: Permission denied; ...". NULL: there is nothing to
 * tell. Owner: out_text may be what is returned, or not be used. */
enum { ML_LACK_TEXT_BYTES = 256 };
const char *ml_lack_text(struct ml_lack lack, char out_text[ML_LACK_TEXT_BYTES]);

#endif
