/* known_places: prints "NAME OFFSET" for places whose functions a test knows by name. */
#include <inttypes.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/tools/sample/known_calls.h"

static int main_bias(struct dl_phdr_info *info, size_t size, void *out_bias) {
    (void)size;
    *(uintptr_t *)out_bias = info->dlpi_addr;
    return 1; /* the program itself is the first */
}

__attribute__((noinline)) void known_place(const char *name) {
    uintptr_t bias = 0;

    dl_iterate_phdr(main_bias, &bias);
    printf("%s %" PRIxPTR "\n", name, (uintptr_t)__builtin_return_address(0) - 1 - bias);
    fflush(stdout);
}

/* Each call is followed by something that keeps it from being the last. */
static volatile int after;

static inline __attribute__((always_inline)) void inner_inlined(const char *name) {
    known_place(name);
    after++;
}

static inline __attribute__((always_inline)) void outer_inlined(const char *name) {
    inner_inlined(name);
    after++;
}

static __attribute__((noinline)) void quiet_static(void) {
    known_place("static");
    after++;
}

__attribute__((noinline)) void loud_global(void);
void loud_global(void) {
    outer_inlined("inlined");
    after++;
}

/* A copy with a constant in it: its symbol is copied_with.constprop.0. */
static __attribute__((noinline)) void copied_with(int always, const char *name) {
    if (always != 7) {
        name = "never";
    }
    known_place(name);
    after += always;
}

int main(void) {
    quiet_static();
    loud_global();
    copied_with(7, "copied");
    copied_with(7, "copied");
    known_cpp();
    return 0;
}
