#include "tools/analyzer/symbols/lack.h"

#include <stdio.h>
#include <string.h>

struct ml_lack ml_lack_more(struct ml_lack one, struct ml_lack other) {
    return other.kind > one.kind ? other : one;
}

const char *ml_lack_text(struct ml_lack lack, char out_text[ML_LACK_TEXT_BYTES]) {
    static const char *const texts[] = {
        [ML_LACK_HERE] = "the file is not here",
        [ML_LACK_DELETED] = "the file was deleted while it ran, and no dump was taken meanwhile; "
                            "memlog dump keeps its names",
        [ML_LACK_ENDED] = "its process had ended before its names were read; memlog dump while it "
                          "runs keeps them",
        [ML_LACK_SPACE] = "its process had ended, and memlog may not enter its mount namespace; "
                          "memlog dump while it runs keeps the names",
        [ML_LACK_UNLINKED] = "the file was deleted or renamed before its names were read; memlog "
                             "dump while it is there keeps them, or memlog as root",
        [ML_LACK_KIND] = "what is at its place is no regular file; memlog symbolize with "
                         "MEMLOG_BINARY_PATH finds a copy of yours",
        [ML_LACK_SIZE] = "the file is larger than memlog copies (1 GiB); memlog symbolize with "
                         "MEMLOG_BINARY_PATH finds a copy of yours",
        [ML_LACK_SLOW] = "its file system did not answer; memlog symbolize with "
                         "MEMLOG_BINARY_PATH finds a copy of yours",
        [ML_LACK_BUILD] = "the file is another one by now",
        [ML_LACK_SHARED] = "the file is another one by now",
    };
    if (lack.kind == ML_LACK_DENIED) {
        (void)snprintf(
            out_text,
            ML_LACK_TEXT_BYTES,
            "the file is not readable for memlog: %s; run memlog as root, or memlog symbolize with "
            "MEMLOG_BINARY_PATH",
            strerror(lack.error)
        );
        return out_text;
    }
    return lack.kind < sizeof texts / sizeof texts[0] ? texts[lack.kind] : NULL;
}
