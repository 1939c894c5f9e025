/* memlog's client as a library. Link libmemlog.a into a program that cannot be preloaded, or that
 * chooses itself when recording starts. Link that program dynamically: the client hooks functions
 * of libc.so, and the linker refuses -static. Room: client (public).
 * Context: any thread, but not inside an allocator.
 *
 * One rule: nothing here can fail in a way that the program has to handle. Without a host
 * everything is a no-op.
 *
 * A program that is not linked with libmemlog.a can call the preloaded client if there is one:
 *
 *     #define MEMLOG_WEAK
 *     #include <memlog.h>
 *     if (memlog_dump) { memlog_dump("", "after start-up"); }
 *
 * This needs position-independent code (gcc's and clang's default on Debian). With -fno-pie the
 * linker resolves a weak function to NULL; use dlsym(RTLD_DEFAULT, "memlog_dump") there. */
#ifndef MEMLOG_CLIENT_MEMLOG_H
#define MEMLOG_CLIENT_MEMLOG_H

#ifdef MEMLOG_WEAK
#    pragma weak memlog_start
#    pragma weak memlog_recording
#    pragma weak memlog_dump
#    pragma weak memlog_heap
#    pragma weak memlog_type
#    pragma weak memlog_alloc
#    pragma weak memlog_alloc_typed
#    pragma weak memlog_free
#    pragma weak memlog_scope_begin
#    pragma weak memlog_scope_end
#    pragma weak memlog_scope_leave
#    pragma weak memlog_scopes_take
#    pragma weak memlog_scopes_give
#    pragma weak memlog_thread_name
#endif

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Connect to the host at that socket and record if the host says so. Call it once, early, while the
 * process has one thread: earlier allocations are not recorded. A program with the preload, or one
 * started by `memlog run`, need not call it.
 *
 * Shape:  path of the host's client socket; NULL: take it from MEMLOG_SOCKET and remove that
 *         variable.
 * Errors: 0 when connected (recording or dormant); -1 when there is no host there, or no memory.
 *         errno is kept. */
int memlog_start(const char *socket_path);

/* 1 while this process is being recorded, 0 while it is not. */
int memlog_recording(void);

/* Ask the host for a dump, as `memlog dump` does, at a moment that the program chooses. The dump
 * holds everything that happened before the call. It is taken while the program continues, so a
 * block freed right after the call may be missing.
 *
 * Shape:  role: "browser", "renderer", "gpu", "utility", "other": the processes of that role alone;
 *         NULL or "": all. reason: why, for people, in the dump, the report and the page; any
 *         bytes, of which 256 are kept; NULL or "": nothing.
 * Bounds: never waits: a full socket drops the request. A process may ask eight times in a row and
 *         then ten times a second. A run gets twenty dumps in a row and then one in ten seconds.
 *         Further requests are only counted (DIR/triggers.log, /metrics).
 * Errors: 0 when the request was sent (its answer is not awaited), else -1. errno is kept. Callable
 *         from any thread and from a signal handler. */
int memlog_dump(const char *role, const char *reason);

/* ---- heaps of the program's own: arenas, pools, objects of an interpreter, memory of a device
 *
 * A program that divides memory up itself may report who has it. Each heap is shown beside malloc's
 * (`memlog report --heap=NAME`, `--by=heap`), with stacks, totals and a peak of its own. Its blocks
 * are in none of malloc's sums: they mostly lie in memory that malloc or mmap has given.
 *
 * All are callable from any thread, a signal handler and an allocator, before memlog_start and
 * after fork. Where nothing is recorded they cost a few instructions. errno is kept. Register the
 * first heap or type before a seccomp filter forbids mmap: behind one there is none. */

/* Register a heap. The same name gives the same heap; a forked child has its parent's.
 *
 * Shape:  name: copied; more than 1,000 bytes of it are cut off. sampling_interval_bytes: 1: every
 *         block is recorded; n: about one in n bytes is, and the figures are estimates; 0: as
 *         malloc's (--memlog-sampling-rate).
 * Errors: 0: there are 255 already, or no memory; reports of heap 0 do nothing. */
uint32_t memlog_heap(const char *name, uint64_t sampling_interval_bytes);

/* Register a type of blocks, "Node" or "session". As memlog_heap; there may be 65,535. 0: no type.
 */
uint32_t memlog_type(const char *name);

/* A block of that heap is new. Call it when the block is there, before another thread may free it.
 * The stack is the caller's.
 *
 * Shape:  id: what names the block until its memlog_free: a pointer, an index, a handle; any
 * number. Those below 2^55, but 0, are exact; others are told apart by 55 bits of a hash. An id
 * that is reported again without a memlog_free was freed unseen. bytes: below 2^48. type: 0: none.
 */
void memlog_alloc(uint32_t heap, uint64_t id, uint64_t bytes);
void memlog_alloc_typed(uint32_t heap, uint64_t id, uint64_t bytes, uint32_t type);

/* The block is about to be given back: call it before another one may have its id. An id that was
 * never reported is counted (`unknown_frees` of the heap). */
void memlog_free(uint32_t heap, uint64_t id);

/* ---- scopes: what the program is doing, in its own words
 *
 * A scope is a frame of the stacks of all that its thread allocates while it is open, beside the
 * functions (--memlog-stack-mode=mixed) or instead of them (pseudo). In the other modes, and where
 * nothing is recorded, all of this costs a few instructions and does nothing.
 *
 * Callable from any thread, a signal handler and an allocator, and after fork: a forked child has
 * the open scopes of the thread that forked. errno is kept. Names are copied, and cut as those of
 * heaps; a process has 32,767 of them, and further scopes are not shown. So the name says what is
 * done, not for whom. Of each thread the outermost 248 are shown. */

/* Open a scope; its place among the frames is the caller's.
 *
 * Returns: how many the thread had open before, as far as they are recorded: for
 *          memlog_scope_leave. */
uint32_t memlog_scope_begin(const char *name);

/* Close the scope that was opened last. */
void memlog_scope_end(void);

/* Close the scope of which memlog_scope_begin has returned that, and all that were opened in it: a
 * longjmp out of them has left them open. */
void memlog_scope_leave(uint32_t before);

/* For work that moves between threads or stacks, as coroutines do: at the moment when it is
 * suspended, close all that was opened since `before`, and keep it for later. Of more than
 * MEMLOG_SCOPES_MAX the innermost are not kept. */
enum { MEMLOG_SCOPES_MAX = 30 };
struct memlog_scopes {
    uint32_t count;
    uint32_t unused;
    struct {
        void *name;
        uintptr_t place;
    } scopes[MEMLOG_SCOPES_MAX];
};
void memlog_scopes_take(uint32_t before, struct memlog_scopes *out_scopes);

/* When it goes on: open them again on this thread. Returns as memlog_scope_begin.
 *
 * Shape:  has_own_stack: 1: the work goes on on the stack on which it opened them (swapcontext,
 *         fibers), where they have their places again; 0: their place is the caller's. */
uint32_t memlog_scopes_give(const struct memlog_scopes *scopes, int has_own_stack);

/* The thread's name in the modes with names of threads, instead of the kernel's. Unlike that one it
 * has 1,000 bytes. Kept while the thread is recorded. NULL: the kernel's again. */
void memlog_thread_name(const char *name);

/* C: a scope to the end of the block, by any way out of it but longjmp; by an exception where the
 * file is compiled with -fexceptions.
 *
 *     MEMLOG_SCOPE("parse");
 */
#ifdef MEMLOG_WEAK
#    define MEMLOG_HAS_SCOPES (memlog_scope_begin != 0)
#else
#    define MEMLOG_HAS_SCOPES 1
#endif

static inline uint32_t __attribute__((always_inline, unused))
memlog_scope_of_block(const char *name) {
    return MEMLOG_HAS_SCOPES ? memlog_scope_begin(name) : 0;
}

static inline void __attribute__((unused)) memlog_scope_of_block_ends(const uint32_t *before) {
    if (MEMLOG_HAS_SCOPES) {
        memlog_scope_leave(*before);
    }
}

#define MEMLOG_SCOPE_JOIN(a, b) a##b
#define MEMLOG_SCOPE_AT(name, line)                                                                \
    const uint32_t MEMLOG_SCOPE_JOIN(memlog_scope_, line)                                          \
        __attribute__((cleanup(memlog_scope_of_block_ends), unused)) = memlog_scope_of_block(name)
#define MEMLOG_SCOPE(name) MEMLOG_SCOPE_AT(name, __LINE__)

#ifdef __cplusplus
}

namespace memlog {

/* C++: a scope as long as this lives; it stays in the function that makes it. */
class Scope {
  public:
    explicit __attribute__((always_inline)) Scope(const char *name)
        : before_(memlog_scope_of_block(name)) {
    }
    ~Scope() {
        memlog_scope_of_block_ends(&before_);
    }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    const uint32_t before_;
};

} // namespace memlog
#endif

#endif
