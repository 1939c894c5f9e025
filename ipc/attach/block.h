/* What a tracer and the client that it puts into a running process have in common: a block in the
 * client's own data, which the tracer reads and writes from outside. Room: ipc. Context: the tracer
 * writes while no thread of the process runs the client, unless it says otherwise.
 *
 * One rule: at each moment the block says enough to take everything back. It names each entry of
 * the program's code, with the bytes that stood there and those that memlog puts there, before the
 * first of them is written. So whoever comes after a tracer that was killed can repair the process.
 *
 * The process owns its memory and may write anything here. A tracer checks what it reads. */
#ifndef MEMLOG_IPC_ATTACH_BLOCK_H
#define MEMLOG_IPC_ATTACH_BLOCK_H

#include <linux/filter.h>
#include <stdint.h>

#include "base/entry/allocator_call.h"
#include "ipc/wire/staging.h"

enum {
    ML_ATTACH_VERSION = 3,
    ML_ATTACH_MARK_BYTES = 16,
    ML_ATTACH_FUNCTIONS_MAX = 256, /* as client/patch has room for */
    ML_ATTACH_STUB_BYTES = 32,
    ML_ATTACH_ENTRY_BYTES = 5, /* jmp rel32 */
    ML_ATTACH_FRAME_BYTES =
        16384, /* a signal frame with all of a processor's registers: AMX has 8 KiB */
    ML_ATTACH_STACK_BYTES = 65536,
    ML_ATTACH_OWNER_BYTES = 64,
    ML_ATTACH_PATH_BYTES = 4096,
    ML_ATTACH_AUX_MAX = 32,
    ML_ATTACH_FILTERS_MAX = 16,
    ML_ATTACH_FILTER_LINES_MAX = 8192, /* of all filters together */
    ML_ATTACH_THREADS_MAX = 8192,      /* rows */
    ML_ATTACH_ROW_BYTES_MAX = 4096,
    ML_ATTACH_SEND_WAIT_S = 2 /* as long as a client waits for its host */
};

/* The block begins on a page of its own. Its first bytes; the tracer writes them when the client is
 * whole. */
#define ML_ATTACH_MARK "memlog-attached"

/* What a function's entry leads to. */
enum ml_attach_hook {
    ML_ATTACH_ALLOCATOR = 0, /* by `call` */
    ML_ATTACH_DLCLOSE,
    ML_ATTACH_PRCTL,
    ML_ATTACH_SYSCALL,
    ML_ATTACH_CLONE,
    ML_ATTACH_FORK, /* _Fork */
    ML_ATTACH_EXIT, /* _exit */
    ML_ATTACH_EXECVE,
    ML_ATTACH_EXECVEAT,
    ML_ATTACH_FEXECVE,
    ML_ATTACH_HOOK_COUNT
};

/* One patched function. */
struct ml_attach_function {
    uint64_t entry; /* where the jump stands */
    uint64_t stub;  /* where it leads to */
    uint64_t next;  /* the function's first instructions, and a jump behind them */
    uint8_t old[8]; /* of these ML_ATTACH_ENTRY_BYTES count, as of the next */
    uint8_t jump[8];
    uint32_t hook;  /* enum ml_attach_hook */
    uint32_t is_on; /* 1: of the present attachment; 0: of an earlier one alone */
    struct ml_allocator_call call;
    uint8_t keeps;                 /* 1: its callers may know which registers it leaves alone */
    uint64_t own_start, own_bytes; /* of a library with an allocator: its code; else 0 */
    uint64_t address;              /* of the function: `entry`, or endbr64 in front of it */
};

/* How the client's start went. */
enum ml_attach_outcome {
    ML_ATTACH_NOT_BEGUN = 0,
    ML_ATTACH_BEGUN,      /* a thread is in it */
    ML_ATTACH_CONNECTED,  /* the host serves it */
    ML_ATTACH_REFUSED,    /* by the host */
    ML_ATTACH_BUSY,       /* a thread is unloading a library: all is as it was */
    ML_ATTACH_NO_SOCKET,  /* the process may make no socket pair */
    ML_ATTACH_FILTERED,   /* its seccomp filters forbid what recording needs */
    ML_ATTACH_UNANSWERED, /* by the host, in time: all is as it was */
    ML_ATTACH_NO_ROOM     /* for the memory that recording needs */
};

/* The seccomp filters that watch any thread of the process, each once, one behind the other. */
struct ml_attach_filters {
    uint32_t count;
    uint32_t lines_count;
    uint32_t counts[ML_ATTACH_FILTERS_MAX]; /* lines of each */
    struct sock_filter lines[ML_ATTACH_FILTER_LINES_MAX];
};

/* Where the client keeps a row for each thread that came to a hook. All 0: none has come. */
struct ml_attach_threads {
    uint64_t pointers; /* address of `count` thread pointers; the first few values are none */
    uint64_t rows;     /* address of the first row */
    uint32_t count, row_bytes;
    uint32_t phase_at; /* in a row, 4 bytes: 0 while the thread is inside no hook */
    uint32_t frame_at; /* 8 bytes: the stack pointer behind the return of the hook that it is in */
};
enum { ML_ATTACH_POINTER_NONE = 15 /* and below */ };

struct ml_attach_auxv {
    uint64_t kind, value;
};

struct ml_attach_block {
    _Alignas(4096) char mark[ML_ATTACH_MARK_BYTES];
    uint32_t version;
    uint32_t outcome;        /* enum ml_attach_outcome; by the client */
    uint64_t address, bytes; /* the client's memory in the process */
    uint64_t fingerprint;    /* of the client's file: another one does not fit this memory */
    int32_t host_fd; /* by the client: the end of the socket pair that the host is to have; -1 */
    int32_t own_fd;  /* and its own one; -1 */
    uint32_t functions_count;         /* of `functions` that may be patched */
    struct ml_attach_threads threads; /* by the client */
    /* Facts about the process, for the client's start. */
    uint64_t find_object;    /* _dl_find_object; 0: none */
    uint64_t errno_location; /* libc's __errno_location; 0: none */
    uint64_t stack_end;      /* the main thread's first stack pointer; 0: not known */
    uint32_t
        id_offset; /* where behind a thread pointer libc keeps the thread's number; 0: not known */
    uint32_t auxv_count;
    struct ml_attach_auxv auxv[ML_ATTACH_AUX_MAX];
    char owner[ML_ATTACH_OWNER_BYTES]; /* file of the malloc in use; "": the executable */
    /* For programs that the process executes, as they are told of a host; "": they are not. */
    char library[ML_ATTACH_PATH_BYTES]; /* to preload, as LD_PRELOAD names it */
    char socket_path[ML_ATTACH_PATH_BYTES];
    /* The host that has it, while entries lead to memlog: its pid and start time. */
    uint32_t host_pid;
    uint32_t turn; /* another one whenever a tracer writes the block */
    uint64_t host_start_ticks;
    uint32_t in_program; /* it is the executable's own */
    uint32_t hooked;     /* allocators' functions among `functions` */
    char refused[ML_ENTRIES_REFUSED_BYTES];
    struct ml_attach_function functions[ML_ATTACH_FUNCTIONS_MAX];
    uint8_t stubs[ML_ATTACH_FUNCTIONS_MAX][ML_ATTACH_STUB_BYTES]; /* by the client's start */
    /* What follows counts during a start alone. Where a borrowed thread runs it, and what it
     * becomes behind it. */
    _Alignas(64) uint8_t frame[ML_ATTACH_FRAME_BYTES];
    _Alignas(64) uint8_t stack[ML_ATTACH_STACK_BYTES];
    struct ml_attach_filters filters; /* as of this attachment */
};

#endif
