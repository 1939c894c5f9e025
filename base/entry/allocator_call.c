#include "base/entry/allocator_call.h"

#include <string.h>

enum {
    NAME_BYTES = 28, /* the longest, deletearray_aligned_nothrow, without a null */
    ALLOCATE = ML_ALLOCATOR_ALLOCATE,
    RELEASE = ML_ALLOCATOR_RELEASE,
    RESIZE = ML_ALLOCATOR_RESIZE,
    RESIZE_IN_PLACE = ML_ALLOCATOR_RESIZE_IN_PLACE,
    NO = ML_ALLOCATOR_NONE,
    ANY = 0,
    PLAIN = 1 << ML_ALLOCATOR_FAMILY_PLAIN,
    MIMALLOC = 1 << ML_ALLOCATOR_FAMILY_MIMALLOC,
    TCMALLOC = 1 << ML_ALLOCATOR_FAMILY_TCMALLOC,
    PASSES_ON = 1,  /* is or calls another member */
    FAILS_FREE = 2, /* releases the block where it cannot be resized */
};

struct row {
    char name[NAME_BYTES];
    uint8_t act;
    uint8_t arguments;
    uint8_t size;
    uint8_t count;
    uint8_t block;
    uint8_t out;
    uint8_t text;
    uint8_t flags;
    uint8_t families;
};

/* By name. After the headers of glibc 2.36, jemalloc 5.3, gperftools 2.10, mimalloc 2.0 and
 * 3.3, and Firefox 153. */
static const struct row rows[] = {
    /* act, arguments, size, count, block, out, text, flags, families */
    {"__posix_memalign", ALLOCATE, 3, 2, NO, NO, 0, NO, 0, ANY},
    {"aligned_alloc", ALLOCATE, 2, 1, NO, NO, NO, NO, 0, ANY},
    {"aligned_offset_recalloc", RESIZE, 5, 2, 1, 0, NO, NO, 0, MIMALLOC},
    {"aligned_recalloc", RESIZE, 4, 2, 1, 0, NO, NO, 0, MIMALLOC},
    {"calloc", ALLOCATE, 2, 1, 0, NO, NO, NO, 0, ANY},
    {"calloc_aligned", ALLOCATE, 3, 1, 0, NO, NO, NO, 0, MIMALLOC},
    {"calloc_aligned_at", ALLOCATE, 4, 1, 0, NO, NO, NO, 0, MIMALLOC},
    {"cfree", RELEASE, 1, NO, NO, 0, NO, NO, PASSES_ON, ANY},
    {"dallocx", RELEASE, 2, NO, NO, 0, NO, NO, 0, ANY},
    {"delete", RELEASE, 1, NO, NO, 0, NO, NO, 0, TCMALLOC},
    {"delete_aligned", RELEASE, 2, NO, NO, 0, NO, NO, 0, TCMALLOC},
    {"delete_aligned_nothrow", RELEASE, 3, NO, NO, 0, NO, NO, 0, TCMALLOC},
    {"delete_nothrow", RELEASE, 2, NO, NO, 0, NO, NO, 0, TCMALLOC},
    {"delete_sized", RELEASE, 2, NO, NO, 0, NO, NO, 0, TCMALLOC},
    {"delete_sized_aligned", RELEASE, 3, NO, NO, 0, NO, NO, 0, TCMALLOC},
    {"deletearray", RELEASE, 1, NO, NO, 0, NO, NO, 0, TCMALLOC},
    {"deletearray_aligned", RELEASE, 2, NO, NO, 0, NO, NO, 0, TCMALLOC},
    {"deletearray_aligned_nothrow", RELEASE, 3, NO, NO, 0, NO, NO, 0, TCMALLOC},
    {"deletearray_nothrow", RELEASE, 2, NO, NO, 0, NO, NO, 0, TCMALLOC},
    {"deletearray_sized", RELEASE, 2, NO, NO, 0, NO, NO, 0, TCMALLOC},
    {"deletearray_sized_aligned", RELEASE, 3, NO, NO, 0, NO, NO, 0, TCMALLOC},
    {"free", RELEASE, 1, NO, NO, 0, NO, NO, 0, ANY},
    {"free_aligned", RELEASE, 2, NO, NO, 0, NO, NO, 0, MIMALLOC},
    {"free_aligned_sized", RELEASE, 3, NO, NO, 0, NO, NO, 0, ANY},
    {"free_size", RELEASE, 2, NO, NO, 0, NO, NO, 0, MIMALLOC},
    {"free_size_aligned", RELEASE, 3, NO, NO, 0, NO, NO, 0, MIMALLOC},
    {"free_sized", RELEASE, 2, NO, NO, 0, NO, NO, 0, ANY},
    {"free_small", RELEASE, 1, NO, NO, 0, NO, NO, 0, MIMALLOC},
    {"free_small_local", RELEASE, 1, NO, NO, 0, NO, NO, 0, MIMALLOC},
    {"free_small_local_nonnull", RELEASE, 1, NO, NO, 0, NO, NO, 0, MIMALLOC},
    {"free_small_nonnull", RELEASE, 1, NO, NO, 0, NO, NO, 0, MIMALLOC},
    {"heap_alloc_new", ALLOCATE, 2, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"heap_alloc_new_n", ALLOCATE, 3, 2, 1, NO, NO, NO, 0, MIMALLOC},
    {"heap_calloc", ALLOCATE, 3, 2, 1, NO, NO, NO, 0, MIMALLOC},
    {"heap_calloc_aligned", ALLOCATE, 4, 2, 1, NO, NO, NO, 0, MIMALLOC},
    {"heap_calloc_aligned_at", ALLOCATE, 5, 2, 1, NO, NO, NO, 0, MIMALLOC},
    {"heap_malloc", ALLOCATE, 2, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"heap_malloc_aligned", ALLOCATE, 3, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"heap_malloc_aligned_at", ALLOCATE, 4, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"heap_malloc_small", ALLOCATE, 2, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"heap_mallocn", ALLOCATE, 3, 2, 1, NO, NO, NO, 0, MIMALLOC},
    {"heap_realloc", RESIZE, 3, 2, NO, 1, NO, NO, 0, MIMALLOC},
    {"heap_realloc_aligned", RESIZE, 4, 2, NO, 1, NO, NO, 0, MIMALLOC},
    {"heap_realloc_aligned_at", RESIZE, 5, 2, NO, 1, NO, NO, 0, MIMALLOC},
    {"heap_reallocf", RESIZE, 3, 2, NO, 1, NO, NO, FAILS_FREE, MIMALLOC},
    {"heap_reallocn", RESIZE, 4, 3, 2, 1, NO, NO, 0, MIMALLOC},
    {"heap_recalloc", RESIZE, 4, 3, 2, 1, NO, NO, 0, MIMALLOC},
    {"heap_recalloc_aligned", RESIZE, 5, 3, 2, 1, NO, NO, 0, MIMALLOC},
    {"heap_rezalloc", RESIZE, 3, 2, NO, 1, NO, NO, 0, MIMALLOC},
    {"heap_rezalloc_aligned", RESIZE, 4, 2, NO, 1, NO, NO, 0, MIMALLOC},
    {"heap_rezalloc_aligned_at", RESIZE, 5, 2, NO, 1, NO, NO, 0, MIMALLOC},
    {"heap_strdup", ALLOCATE, 2, NO, NO, NO, NO, 1, 0, MIMALLOC},
    {"heap_strndup", ALLOCATE, 3, 2, NO, NO, NO, 1, 0, MIMALLOC},
    {"heap_zalloc", ALLOCATE, 2, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"heap_zalloc_aligned", ALLOCATE, 3, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"heap_zalloc_aligned_at", ALLOCATE, 4, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"heap_zalloc_small", ALLOCATE, 2, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"malloc", ALLOCATE, 1, 0, NO, NO, NO, NO, 0, ANY},
    {"malloc_aligned", ALLOCATE, 2, 0, NO, NO, NO, NO, 0, MIMALLOC},
    {"malloc_aligned_at", ALLOCATE, 3, 0, NO, NO, NO, NO, 0, MIMALLOC},
    {"malloc_skip_new_handler", ALLOCATE, 1, 0, NO, NO, NO, NO, 0, TCMALLOC},
    {"malloc_small", ALLOCATE, 1, 0, NO, NO, NO, NO, 0, MIMALLOC},
    {"mallocn", ALLOCATE, 2, 1, 0, NO, NO, NO, 0, MIMALLOC},
    {"mallocx", ALLOCATE, 2, 0, NO, NO, NO, NO, 0, ANY},
    {"memalign", ALLOCATE, 2, 1, NO, NO, NO, NO, 0, ANY},
    {"moz_arena_calloc", ALLOCATE, 3, 2, 1, NO, NO, NO, 0, ANY},
    {"moz_arena_free", RELEASE, 2, NO, NO, 1, NO, NO, 0, ANY},
    {"moz_arena_malloc", ALLOCATE, 2, 1, NO, NO, NO, NO, 0, ANY},
    {"moz_arena_memalign", ALLOCATE, 3, 2, NO, NO, NO, NO, 0, ANY},
    {"moz_arena_realloc", RESIZE, 3, 2, NO, 1, NO, NO, 0, ANY},
    {"new", ALLOCATE, 1, 0, NO, NO, NO, NO, 0, MIMALLOC | TCMALLOC},
    {"new_aligned", ALLOCATE, 2, 0, NO, NO, NO, NO, 0, MIMALLOC | TCMALLOC},
    {"new_aligned_nothrow", ALLOCATE, 3, 0, NO, NO, NO, NO, 0, MIMALLOC | TCMALLOC},
    {"new_n", ALLOCATE, 2, 1, 0, NO, NO, NO, 0, MIMALLOC},
    {"new_nothrow", ALLOCATE, 2, 0, NO, NO, NO, NO, 0, MIMALLOC | TCMALLOC},
    {"new_realloc", RESIZE, 2, 1, NO, 0, NO, NO, 0, MIMALLOC},
    {"new_reallocn", RESIZE, 3, 2, 1, 0, NO, NO, 0, MIMALLOC},
    {"newarray", ALLOCATE, 1, 0, NO, NO, NO, NO, 0, TCMALLOC},
    {"newarray_aligned", ALLOCATE, 2, 0, NO, NO, NO, NO, 0, TCMALLOC},
    {"newarray_aligned_nothrow", ALLOCATE, 3, 0, NO, NO, NO, NO, 0, TCMALLOC},
    {"newarray_nothrow", ALLOCATE, 2, 0, NO, NO, NO, NO, 0, TCMALLOC},
    {"posix_memalign", ALLOCATE, 3, 2, NO, NO, 0, NO, 0, ANY},
    {"pvalloc", ALLOCATE, 1, 0, NO, NO, NO, NO, 0, ANY},
    {"rallocx", RESIZE, 3, 1, NO, 0, NO, NO, 0, ANY},
    {"realloc", RESIZE, 2, 1, NO, 0, NO, NO, 0, ANY},
    {"realloc_aligned", RESIZE, 3, 1, NO, 0, NO, NO, 0, MIMALLOC},
    {"realloc_aligned_at", RESIZE, 4, 1, NO, 0, NO, NO, 0, MIMALLOC},
    {"reallocarray", RESIZE, 3, 2, 1, 0, NO, NO, PASSES_ON, ANY},
    {"reallocf", RESIZE, 2, 1, NO, 0, NO, NO, FAILS_FREE, ANY},
    {"reallocn", RESIZE, 3, 2, 1, 0, NO, NO, 0, MIMALLOC},
    {"recalloc", RESIZE, 3, 2, 1, 0, NO, NO, 0, MIMALLOC},
    {"recalloc_aligned", RESIZE, 4, 2, 1, 0, NO, NO, 0, MIMALLOC},
    {"recalloc_aligned_at", RESIZE, 5, 2, 1, 0, NO, NO, 0, MIMALLOC},
    {"rezalloc", RESIZE, 2, 1, NO, 0, NO, NO, 0, MIMALLOC},
    {"rezalloc_aligned", RESIZE, 3, 1, NO, 0, NO, NO, 0, MIMALLOC},
    {"rezalloc_aligned_at", RESIZE, 4, 1, NO, 0, NO, NO, 0, MIMALLOC},
    {"sdallocx", RELEASE, 3, NO, NO, 0, NO, NO, 0, ANY},
    {"strdup", ALLOCATE, 1, NO, NO, NO, NO, 0, 0, MIMALLOC | PLAIN},
    {"strndup", ALLOCATE, 2, 1, NO, NO, NO, 0, 0, MIMALLOC | PLAIN},
    {"theap_alloc_new", ALLOCATE, 2, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"theap_alloc_new_n", ALLOCATE, 3, 2, 1, NO, NO, NO, 0, MIMALLOC},
    {"theap_alloc_new_nothrow", ALLOCATE, 2, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"theap_calloc", ALLOCATE, 3, 2, 1, NO, NO, NO, 0, MIMALLOC},
    {"theap_malloc", ALLOCATE, 2, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"theap_malloc_aligned", ALLOCATE, 3, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"theap_malloc_small", ALLOCATE, 2, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"theap_realloc", RESIZE, 3, 2, NO, 1, NO, NO, 0, MIMALLOC},
    {"theap_rezalloc", RESIZE, 3, 2, NO, 1, NO, NO, 0, MIMALLOC},
    {"theap_zalloc", ALLOCATE, 2, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"theap_zalloc_aligned", ALLOCATE, 3, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"theap_zalloc_small", ALLOCATE, 2, 1, NO, NO, NO, NO, 0, MIMALLOC},
    {"ucalloc", ALLOCATE, 3, 1, 0, NO, NO, NO, 0, MIMALLOC},
    {"ufree", RELEASE, 2, NO, NO, 0, NO, NO, 0, MIMALLOC},
    {"umalloc", ALLOCATE, 2, 0, NO, NO, NO, NO, 0, MIMALLOC},
    {"umalloc_aligned", ALLOCATE, 3, 0, NO, NO, NO, NO, 0, MIMALLOC},
    {"umalloc_small", ALLOCATE, 2, 0, NO, NO, NO, NO, 0, MIMALLOC},
    {"urealloc", RESIZE, 4, 1, NO, 0, NO, NO, 0, MIMALLOC},
    {"uzalloc_aligned", ALLOCATE, 3, 0, NO, NO, NO, NO, 0, MIMALLOC},
    {"uzalloc_small", ALLOCATE, 2, 0, NO, NO, NO, NO, 0, MIMALLOC},
    {"valloc", ALLOCATE, 1, 0, NO, NO, NO, NO, 0, ANY},
    {"xallocx", RESIZE_IN_PLACE, 4, 1, NO, 0, NO, NO, 0, ANY},
    {"zalloc", ALLOCATE, 1, 0, NO, NO, NO, NO, 0, MIMALLOC},
    {"zalloc_aligned", ALLOCATE, 2, 0, NO, NO, NO, NO, 0, MIMALLOC},
    {"zalloc_aligned_at", ALLOCATE, 3, 0, NO, NO, NO, NO, 0, MIMALLOC},
    {"zalloc_small", ALLOCATE, 1, 0, NO, NO, NO, NO, 0, MIMALLOC},
};

enum { ROWS_COUNT = sizeof(rows) / sizeof(rows[0]) };

/* As memcmp, where the shorter of two is smaller. */
static int order_of(const char *name, size_t name_bytes, const struct row *row) {
    const size_t row_bytes = strlen(row->name);
    const size_t common = name_bytes < row_bytes ? name_bytes : row_bytes;
    const int order = memcmp(name, row->name, common);
    return order != 0 ? order : (name_bytes > row_bytes) - (name_bytes < row_bytes);
}

static const struct row *row_of(const char *name, size_t name_bytes) {
    size_t low = 0;
    size_t high = ROWS_COUNT;
    if (name_bytes >= NAME_BYTES) {
        return NULL;
    }
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const int order = order_of(name, name_bytes, &rows[middle]);
        if (order == 0) {
            return &rows[middle];
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

/* What is left of a mangled name. */
struct mangled {
    const char *at;
    size_t bytes;
    uint8_t arguments;
};

/* One more parameter, if it is the next. */
static bool takes(struct mangled *mangled, const char *parameter) {
    const size_t bytes = strlen(parameter);
    if (mangled->bytes < bytes || memcmp(mangled->at, parameter, bytes) != 0) {
        return false;
    }
    mangled->at += bytes;
    mangled->bytes -= bytes;
    mangled->arguments++;
    return true;
}

/* operator new and delete, in the forms of C++17, and tcmalloc's with a hint of how hot a block is.
 * No form of delete has both a size and nothrow. */
static bool operator_of(const char *name, size_t name_bytes, struct ml_allocator_call *out_call) {
    struct mangled mangled = {.at = name + 4, .bytes = name_bytes - 4};
    const bool is_new = name[2] == 'n' && (name[3] == 'w' || name[3] == 'a');
    const bool is_delete = name[2] == 'd' && (name[3] == 'l' || name[3] == 'a');
    if (is_new && takes(&mangled, "m")) {
        (void)takes(&mangled, "St11align_val_t");
        (void)takes(&mangled, "RKSt9nothrow_t");
        (void)takes(&mangled, "12__hot_cold_t");
    } else if (is_delete && takes(&mangled, "Pv")) {
        const bool is_sized = takes(&mangled, "m");
        (void)takes(&mangled, "St11align_val_t");
        (void)(!is_sized && takes(&mangled, "RKSt9nothrow_t"));
    } else {
        return false;
    }
    *out_call = (struct ml_allocator_call){
        .act = is_new ? ALLOCATE : RELEASE,
        .size_argument = is_new ? 0 : NO,
        .count_argument = NO,
        .block_argument = is_new ? NO : 0,
        .out_argument = NO,
        .text_argument = NO,
        .arguments = mangled.arguments,
        .is_needed = is_delete,
        .only_families = PLAIN,
    };
    return mangled.bytes == 0;
}

bool ml_allocator_call_of(const char *name, size_t name_bytes, struct ml_allocator_call *out_call) {
    if (name_bytes >= 4 && name[0] == '_' && name[1] == 'Z') {
        return operator_of(name, name_bytes, out_call);
    }
    const struct row *row = row_of(name, name_bytes);
    if (row == NULL) {
        return false;
    }
    *out_call = (struct ml_allocator_call){
        .act = row->act,
        .size_argument = row->size,
        .count_argument = row->count,
        .block_argument = row->block,
        .out_argument = row->out,
        .text_argument = row->text,
        .arguments = row->arguments,
        .is_needed = row->act != ALLOCATE && (row->flags & PASSES_ON) == 0,
        .is_released_on_failure = (row->flags & FAILS_FREE) != 0,
        .only_families = row->families,
    };
    return true;
}
