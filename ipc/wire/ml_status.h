/* What a call can answer. Room: ipc. Context: any; no state.
 *
 * One rule: the family says how to react. ML_PEER_*: the other side lied, drop that peer and count
 * it. ML_ENV_*: the system refused, report upward. ML_BUG_*: we broke a contract ourselves, abort
 * in service and host, go dormant in the client. `ML_OK` is 0. */
#ifndef MEMLOG_IPC_WIRE_ML_STATUS_H
#define MEMLOG_IPC_WIRE_ML_STATUS_H

#define ML_NODISCARD __attribute__((warn_unused_result))

/* name, text. The one list: enum, names and texts are made from it. */
#define ML_STATUS_LIST(X)                                                                          \
    X(ML_OK, "no error")                                                                           \
    X(ML_PEER_SHORT, "the data ends before a field does")                                          \
    X(ML_PEER_RANGE, "a value lies outside its permitted range")                                   \
    X(ML_PEER_FORM, "a value is not in its one permitted form")                                    \
    X(ML_PEER_TYPE, "a field has another type than its contract says")                             \
    X(ML_PEER_UNKNOWN, "a tag, kind or message that this version does not know")                   \
    X(ML_PEER_TRAILING, "bytes are left over behind the last field")                               \
    X(ML_PEER_VERSION, "the other side speaks another version")                                    \
    X(ML_PEER_STATE, "a message that is not allowed in the connection's present state")            \
    X(ML_PEER_HANDLE, "a descriptor is missing, surplus or of the wrong kind")                     \
    X(ML_PEER_LIMIT, "a count, size or total is beyond its named limit")                           \
    X(ML_PEER_REFERENCE, "a reference to something that was never defined")                        \
    X(ML_PEER_CLOSED, "the other side has closed the connection")                                  \
    X(ML_ENV_MEMORY, "the system has no memory left for this")                                     \
    X(ML_ENV_SYSTEM, "a system call failed; errno says why")                                       \
    X(ML_ENV_AGAIN, "nothing to do right now, try again later")                                    \
    X(ML_ENV_MISSING, "the thing asked for does not exist")                                        \
    X(ML_ENV_REFUSED, "the system or the user does not permit this")                               \
    X(ML_BUG_SPACE, "a caller's buffer is too small for what it was asked to hold")                \
    X(ML_BUG_CONTRACT, "a caller broke the contract of the function it called")

enum ml_status {
#define ML_STATUS_ENUM(name, text) name,
    ML_STATUS_LIST(ML_STATUS_ENUM)
#undef ML_STATUS_ENUM
        ML_STATUS_COUNT
};

enum ml_family { ML_FAMILY_OK, ML_FAMILY_PEER, ML_FAMILY_ENV, ML_FAMILY_BUG };

/* The status as it is written in the source, "ML_PEER_SHORT"; "ML_STATUS_?" for a value outside the
 * list. */
const char *ml_status_name(enum ml_status status);

/* The status in words for a person, lower case, no full stop. */
const char *ml_status_text(enum ml_status status);

/* How to react to it. */
enum ml_family ml_status_family(enum ml_status status);

#endif
