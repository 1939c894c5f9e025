/* The client's start in a process that runs already. Room: client. Context: a thread that a tracer
 * has borrowed wherever it stood, on a stack of ours, with all signals blocked; every other thread
 * goes on. No thread is inside a hook, and no entry leads to one.
 *
 * One rule: nothing of the process is relied on but its memory and the kernel: no libc, no loader,
 * no thread-local storage, no lock. The thread may hold any of the program's. */
#include "client/attached/begin.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "client/patch/entry_hooks.h"
#include "client/recording/past.h"
#include "client/startup/seccomp_probe.h"
#include "client/recording/start.h"
#include "client/startup/exec_preload.h"
#include "client/startup/handshake.h"
#include "client/startup/libc.h"
#include "client/state/process.h"
#include "client/state/sys.h"
#include "client/symbols/allocators.h"
#include "client/symbols/loaded.h"
#include "client/unwind/objects.h"
#include "client/unwind/unwind.h"

enum { UNLOADS_WAIT_MS = 1000, NS_PER_MS = 1000000 };

_Static_assert(
    (int)ML_THREADS_MAX <= (int)ML_ATTACH_THREADS_MAX &&
        sizeof(struct ml_thread) <= ML_ATTACH_ROW_BYTES_MAX &&
        (int)ML_THREAD_PLACE_TAKEN <= (int)ML_ATTACH_POINTER_NONE,
    "the tracer reads the table"
);

struct ml_attach_block ml_attach_block;

/* Entries lead here: they stay. */
static struct ml_patched patched[ML_ATTACH_FUNCTIONS_MAX];

/* ---- what libc and the loader tell a preloaded client */

const struct r_debug *ml_loaded_list;
uintptr_t ml_loaded_told_stack;

/* The client itself. */
static struct link_map own_object;

/* A program without a loader is its one object. */
static struct link_map only_object;
static struct r_debug only_list;

unsigned long getauxval(unsigned long kind) {
    for (uint32_t i = 0; i < ml_attach_block.auxv_count && i < ML_ATTACH_AUX_MAX; i++) {
        if (ml_attach_block.auxv[i].kind == kind) {
            return ml_attach_block.auxv[i].value;
        }
    }
    return 0;
}

/* No copy of the environment is made for shells: their starts are not hooked by their names. */
char *const *ml_exec_preload_without_shells(char *const *environment) {
    return environment;
}

/* A hook of a call looks at what the call said. */
int *__errno_location(void) {
    static int none;
    int *(*const find)(void) = (int *(*)(void))(uintptr_t)ml_attach_block.errno_location;
    return find != NULL ? find() : &none;
}

struct ml_allocators ml_allocators_find(void) {
    return (struct ml_allocators
    ){.owner = ml_attach_block.owner,
      .in_program = ml_attach_block.in_program != 0,
      .entry_point = "",
      .entry_point_of = ""};
}

/* The program's headers, as the kernel passed them. */
static const ElfW(Phdr) * headers(uint64_t *out_count) {
    *out_count = getauxval(AT_PHNUM);
    return (const ElfW(Phdr) *)getauxval(AT_PHDR);
}

/* How far off where it was linked for the program lies. */
static uintptr_t program_bias(void) {
    uint64_t count = 0;
    const ElfW(Phdr) *list = headers(&count);
    for (uint64_t i = 0; list != NULL && i < count; i++) {
        if (list[i].p_type == PT_PHDR) {
            return (uintptr_t)list - list[i].p_vaddr;
        }
    }
    return 0;
}

static const ElfW(Dyn) * program_dynamic(uintptr_t bias) {
    uint64_t count = 0;
    const ElfW(Phdr) *list = headers(&count);
    for (uint64_t i = 0; list != NULL && i < count; i++) {
        if (list[i].p_type == PT_DYNAMIC) {
            return (const ElfW(Dyn) *)(bias + list[i].p_vaddr);
        }
    }
    return NULL;
}

/* The loader leaves its list there for debuggers. */
static const struct r_debug *list_of_loader(const ElfW(Dyn) * dynamic) {
    for (; dynamic != NULL && dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_DEBUG) {
            return (const struct r_debug *)dynamic->d_un.d_ptr;
        }
    }
    return NULL;
}

static void learn_facts(void) {
    static char no_name[] = "";
    static char own_name[] = "libmemlog-attached.so";
    own_object =
        (struct link_map){.l_addr = (uintptr_t)ml_attach_block.address, .l_name = own_name};
    const uintptr_t bias = program_bias();
    const ElfW(Dyn) *dynamic = program_dynamic(bias);
    ml_loaded_told_stack = (uintptr_t)ml_attach_block.stack_end;
    ml_loaded_list = list_of_loader(dynamic);
    if (ml_loaded_list == NULL) {
        only_object = (struct link_map
        ){.l_addr = bias, .l_name = no_name, .l_ld = (ElfW(Dyn) *)(uintptr_t)dynamic};
        only_list = (struct r_debug){.r_version = 1, .r_map = &only_object};
        ml_loaded_list = &only_list;
    }
    ml_object_is_own(&own_object);
    ml_object_begin((const void *)(uintptr_t)ml_attach_block.find_object);
}

/* ---- the entries */

/* jmp *0(%rip); the hook's address. */
static void jump_to(const void *hook, uint8_t *out_code) {
    static const uint8_t code[] = {0xff, 0x25, 0, 0, 0, 0};
    memcpy(out_code, code, sizeof(code));
    memcpy(out_code + sizeof(code), &hook, sizeof(hook));
}

/* The hooks of calls that are no allocator's, and how they call the function itself. */
static const struct {
    const void *hook;
    size_t next_offset; /* in struct ml_libc */
} hooks[ML_ATTACH_HOOK_COUNT] = {
#define HOOK(name, field)                                                                          \
    { .hook = ML_ATTACHED_HOOK(name), .next_offset = offsetof(struct ml_libc, field) }
    [ML_ATTACH_DLCLOSE] = HOOK(dlclose, dlclose),
    [ML_ATTACH_PRCTL] = HOOK(prctl, prctl),
    [ML_ATTACH_SYSCALL] = HOOK(syscall, syscall),
    [ML_ATTACH_CLONE] = HOOK(clone, clone),
    [ML_ATTACH_FORK] = HOOK(_Fork, fork),
    [ML_ATTACH_EXIT] = HOOK(_exit, exit_now),
    [ML_ATTACH_EXECVE] = HOOK(execve, execve),
    [ML_ATTACH_EXECVEAT] = HOOK(execveat, execveat),
    [ML_ATTACH_FEXECVE] = HOOK(fexecve, fexecve),
};

static void write_stubs(void) {
    struct ml_attach_block *block = &ml_attach_block;
    for (uint32_t i = 0; i < block->functions_count && i < ML_ATTACH_FUNCTIONS_MAX; i++) {
        const struct ml_attach_function *function = &block->functions[i];
        const void *next = (const void *)(uintptr_t)function->next;
        patched[i] = (struct ml_patched
        ){.next = next,
          .call = function->call,
          .own_start = (uintptr_t)function->own_start,
          .own_bytes = (uintptr_t)function->own_bytes,
          .entry = (uintptr_t)function->address};
        if (function->is_on == 0) {
            continue;
        }
        if (function->hook == ML_ATTACH_ALLOCATOR) {
            ml_patched_stub(&patched[i], function->keeps != 0, block->stubs[i]);
        } else if (function->hook < ML_ATTACH_HOOK_COUNT) {
            uint8_t *const slot = (uint8_t *)&ml_libc + hooks[function->hook].next_offset;
            memcpy(slot, &next, sizeof(next));
            jump_to(hooks[function->hook].hook, block->stubs[i]);
        }
    }
}

/* ---- the start */

/* The tracer sees this call return, and takes its copy of the host's end. Where it has died the
 * other end is nobody's from here on, and the handshake fails at once. */
static int make_connection(void) {
    int pair[2] = {-1, -1};
    if (!ml_handshake_pair(pair)) {
        return -1;
    }
    ml_attach_block.own_fd = pair[0];
    ml_attach_block.host_fd = pair[1];
    (void)ml_sys0(SYS_getpid); /* the call at which the tracer looks */
    ml_attach_block.host_fd = -1;
    ml_attach_block.own_fd = -1;
    ml_sys_close(pair[1]);
    return ml_handshake_lift(pair[0]);
}

/* Run for each filter that watches a thread of the process. */
static void for_each_filter(void (*judge)(const struct sock_fprog *program)) {
    struct ml_attach_filters *filters = &ml_attach_block.filters;
    struct sock_filter *lines = filters->lines;
    for (uint32_t i = 0; i < filters->count && i < ML_ATTACH_FILTERS_MAX; i++) {
        const struct sock_fprog program = {
            .len = (unsigned short)filters->counts[i], .filter = lines};
        judge(&program);
        lines += filters->counts[i];
    }
}

/* Before the descriptors are there, by the numbers that they will most likely have. */
static void judge_early(const struct sock_fprog *program) {
    ml_process.filters |= ml_seccomp_probe_judge(program, ML_FD_LOWEST + 1, ML_FD_LOWEST, true);
}

static enum ml_attach_outcome connect(void) {
    static const enum ml_attach_outcome outcomes[] = {
        [ML_START_DONE] = ML_ATTACH_CONNECTED,
        [ML_START_UNANSWERED] = ML_ATTACH_UNANSWERED,
        [ML_START_REFUSED] = ML_ATTACH_REFUSED,
        [ML_START_NO_ROOM] = ML_ATTACH_NO_ROOM,
    };
    struct ml_thread *thread = ml_this_thread();
    const int socket_fd = make_connection();
    if (socket_fd < 0) {
        return ML_ATTACH_NO_SOCKET;
    }
    thread->hook_frame = (uintptr_t)__builtin_frame_address(0);
    thread->phase = ML_PHASE_RECORD;
    const enum ml_start start = ml_start_connected(socket_fd);
    thread->phase = ML_PHASE_NONE;
    thread->hook_frame = 0;
    return outcomes[start];
}

/* A filter may kill for what the kernel makes of a wait that a stop interrupts. */
static void linger_a_millisecond(void) {
    const uint64_t since_ns = ml_sys_monotonic_ns();
    while (ml_sys_monotonic_ns() - since_ns < NS_PER_MS) {
        ml_sys_linger();
    }
}

/* Behind the real dlclose its hook looks through the modules of the run. A wait by nanosleep would
 * make the thread forget the wait that it was borrowed in. */
static bool wait_for_unloads(void) {
    for (uint32_t i = 0; i < UNLOADS_WAIT_MS; i++) {
        if (ml_unwind_unloads_rest(atomic_load(&ml_process.unwind->unloads))) {
            return true;
        }
        if (ml_attach_block.filters.count == 0) {
            (void)ml_sys3(SYS_poll, 0, 0, 1);
        } else {
            linger_a_millisecond();
        }
    }
    return ml_unwind_unloads_rest(atomic_load(&ml_process.unwind->unloads));
}

/* The tracer has seen that no thread is inside an allocator's hook of that run. False: one is
 * inside dlclose, and will read the memory of that run. */
static bool forget_earlier_run(void) {
    if (ml_process.connected) {
        if (!wait_for_unloads()) {
            return false;
        }
        ml_start_forget();
    }
    ml_thread_table_clear();
    ml_thread_table.id_offset = &ml_attach_block.id_offset; /* the tracer learns it later */
    return true;
}

static void tell_of_threads(struct ml_attach_block *block) {
    block->threads = (struct ml_attach_threads
    ){.pointers = (uintptr_t)ml_thread_table.pointers,
      .rows = (uintptr_t)ml_thread_table.threads,
      .count = ML_THREADS_MAX,
      .row_bytes = sizeof(struct ml_thread),
      .phase_at = offsetof(struct ml_thread, phase),
      .frame_at = offsetof(struct ml_thread, hook_frame)};
}

void ml_attached_begin(void) {
    struct ml_attach_block *block = &ml_attach_block;
    __atomic_store_n(&block->outcome, ML_ATTACH_BEGUN, __ATOMIC_RELEASE);
    if (!forget_earlier_run()) {
        __atomic_store_n(&block->outcome, ML_ATTACH_BUSY, __ATOMIC_RELEASE);
        return;
    }
    tell_of_threads(block);
    learn_facts();
    ml_exec_preload_tell(block->library, block->socket_path);
    write_stubs();
    ml_process.filters = 0;
    for_each_filter(judge_early);
    const enum ml_attach_outcome outcome =
        (ml_process.filters & ML_FILTERS_CLOSED) != 0 ? ML_ATTACH_FILTERED : connect();
    if (outcome == ML_ATTACH_CONNECTED) {
        for_each_filter(ml_seccomp_probe_filter);
        ml_past_entries(block->hooked, block->refused);
    }
    __atomic_store_n(&block->outcome, outcome, __ATOMIC_RELEASE);
}

/* Where a borrowed thread comes in: on our stack, with the address of its signal frame in rbx. It
 * goes back by itself, as from a signal handler, whether or not a tracer is there to see it. */
__asm__(".text\n"
        ".globl ml_attached_enter\n"
        ".type ml_attached_enter, @function\n"
        "ml_attached_enter:\n"
        "cld\n"
        "call ml_attached_begin\n"
        "1: mov %rbx, %rsp\n"
        "mov $15, %eax\n" /* rt_sigreturn */
        "syscall\n"
        "jmp 1b\n" /* it does not come back */
        ".size ml_attached_enter, . - ml_attached_enter\n");
