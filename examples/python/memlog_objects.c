/* import memlog_objects: all that CPython allocates for its objects from then on is reported as a
 * heap of its own, "python objects". malloc sees the arenas that small ones are cut from, and
 * nothing else of them.
 *
 *     gcc -shared -fPIC -g $(pkg-config --cflags memlog) $(python3-config --includes) \
 *         -o memlog_objects.so memlog_objects.c
 *     memlog run -- python3 -c "import memlog_objects, program"
 *     memlog report --heap="python objects" DUMP */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define MEMLOG_WEAK
#include <memlog.h>

static PyMemAllocatorEx real[2]; /* PyMem_Malloc's, PyObject_Malloc's */
static uint32_t heap;

static void *report(void *block, size_t bytes) {
    if (block != NULL) {
        memlog_alloc(heap, (uintptr_t)block, bytes);
    }
    return block;
}

static void *take(void *context, size_t bytes) {
    const PyMemAllocatorEx *next = context;
    return report(next->malloc(next->ctx, bytes), bytes);
}

static void *take_zeroed(void *context, size_t count, size_t bytes) {
    const PyMemAllocatorEx *next = context;
    return report(next->calloc(next->ctx, count, bytes), count * bytes);
}

static void give_back(void *context, void *block) {
    const PyMemAllocatorEx *next = context;
    if (block != NULL) {
        memlog_free(heap, (uintptr_t)block);
    }
    next->free(next->ctx, block);
}

/* The caller has the GIL: nobody gets the old block's address meanwhile. */
static void *resize(void *context, void *block, size_t bytes) {
    const PyMemAllocatorEx *next = context;
    void *moved = next->realloc(next->ctx, block, bytes);
    if (moved != NULL && block != NULL) {
        memlog_free(heap, (uintptr_t)block);
    }
    return report(moved, bytes);
}

static void stand_before(PyMemAllocatorDomain domain, PyMemAllocatorEx *next) {
    PyMemAllocatorEx ours = {next, take, take_zeroed, resize, give_back};
    PyMem_GetAllocator(domain, next);
    PyMem_SetAllocator(domain, &ours);
}

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "memlog_objects", .m_size = -1};

PyMODINIT_FUNC PyInit_memlog_objects(void) {
    if (memlog_heap != NULL && heap == 0 && (heap = memlog_heap("python objects", 1)) != 0) {
        stand_before(PYMEM_DOMAIN_MEM, &real[0]);
        stand_before(PYMEM_DOMAIN_OBJ, &real[1]);
    }
    return PyModule_Create(&module);
}
