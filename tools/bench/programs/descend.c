#include "tools/bench/programs/descend.h"

enum { LEVELS_A_FORK = 3 };

/* The compiler would make a jump of a last call, and one call of two equal ones. */
#define STAY_A_CALL() __asm__ volatile("" ::: "memory")

typedef void level(const struct ml_descent *descent, unsigned left);

static level level_a, level_b, level_c, level_d;

/* Four functions with different frames: an unwinder meets more than one recipe. */
#define LEVEL(name, next, local_bytes)                                                                    \
    static __attribute__((noinline)) void name(const struct ml_descent *descent, unsigned left) {         \
        volatile char local[local_bytes];                                                                 \
        local[0] = (char)left;                                                                            \
        if (left == 0) {                                                                                  \
            descent->leaf(descent->context);                                                              \
        } else if (left % LEVELS_A_FORK == 0 && (descent->path >> (left / LEVELS_A_FORK - 1) & 1) != 0) { \
            next(descent, left - 1);                                                                      \
            STAY_A_CALL();                                                                                \
        } else {                                                                                          \
            next(descent, left - 1);                                                                      \
        }                                                                                                 \
        local[0]++;                                                                                       \
    }

LEVEL(level_a, level_b, 8)
LEVEL(level_b, level_c, 24)
LEVEL(level_c, level_d, 56)
LEVEL(level_d, level_a, 120)

void ml_descend(const struct ml_descent *descent, unsigned depth) {
    level_a(descent, depth);
    STAY_A_CALL();
}
