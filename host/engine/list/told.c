/* What a client's report says of a program that is not recorded, in words. Room: host. */
#include "host/engine/state.h"

const char *ml_engine_not_profiled_text(enum memlog_client_not_profiled_reason reason) {
    static const struct {
        const char *text; /* NULL: as is said of such an image */
        enum ml_image_kind kind;
    } texts[] = {
        [MEMLOG_CLIENT_NOT_PROFILED_REASON_STATIC] = {.kind = ML_IMAGE_STATIC},
        [MEMLOG_CLIENT_NOT_PROFILED_REASON_OTHER_LOADER] = {.kind = ML_IMAGE_OTHER_LOADER},
        [MEMLOG_CLIENT_NOT_PROFILED_REASON_OTHER_ARCHITECTURE] =
            {"of another architecture than memlog"},
        [MEMLOG_CLIENT_NOT_PROFILED_REASON_SETUID] = {.kind = ML_IMAGE_SETUID},
        [MEMLOG_CLIENT_NOT_PROFILED_REASON_LIBRARY_NOT_VISIBLE] =
            {"libmemlog.so is not visible in its root directory, or may not be read there; 'memlog "
             "start "
             "PID' attaches from outside"},
        [MEMLOG_CLIENT_NOT_PROFILED_REASON_SOCKET_NOT_VISIBLE] =
            {"its sandbox hides memlog's socket; 'memlog start PID' attaches from outside"},
        [MEMLOG_CLIENT_NOT_PROFILED_REASON_UNREADABLE] =
            {"its file may not be looked at by who started it, so memlog was not passed on to it"},
        [MEMLOG_CLIENT_NOT_PROFILED_REASON_HANDSHAKE_FAILED] =
            {"it started, but found no host in time"},
        [MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_DESCRIPTORS] =
            {"not recorded: it has too few descriptors left for memlog's (ulimit -n)"},
        [MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_ROOM] =
            {"not recorded: its limits leave memlog no room (ulimit -v, -d, -f), or its kernel or "
             "a "
             "filter gives it none"},
        [MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_WIPE_ON_FORK] =
            {"not recorded: its kernel (before Linux 4.14), or a filter, has no MADV_WIPEONFORK"},
        [MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_MEMFD] =
            {"not recorded: its kernel (before Linux 3.17), or a filter, has no memfd_create"},
        [MEMLOG_CLIENT_NOT_PROFILED_REASON_SANITIZER] = {"a sanitizer's run-time is in it"},
        [MEMLOG_CLIENT_NOT_PROFILED_REASON_FILTER] =
            {"memlog was not passed on to it: a system call filter stops what memlog needs there; "
             "'memlog start PID' tries from outside"},
        [MEMLOG_CLIENT_NOT_PROFILED_REASON_CONNECTION_CLOSED] =
            {"the program that started it had closed memlog's connection by system calls of its "
             "own, and its sandbox hides memlog's socket; 'memlog start PID' attaches from "
             "outside"},
        [MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_ROOM_FOR_WORDS] =
            {"its arguments and its environment leave no room for memlog's words; 'memlog start "
             "PID' attaches from outside"},
    };
    if ((size_t)reason >= sizeof(texts) / sizeof(texts[0])) {
        return "for an unknown reason";
    }
    return texts[reason].text != NULL ? texts[reason].text : ml_image_text(texts[reason].kind);
}
