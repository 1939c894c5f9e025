/* Stacks too deep to be kept whole: what is recorded must not depend on what the last stack and its
 * marks save the walk. */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <check.h>

#include "tests/client/unwind/oracle.h"
#include "tests/suite.h"

enum {
    LANDING_EVERY = 256, /* levels between those that a jump may go to */
    DEPTH_MAX = 6000,
    LANDINGS = DEPTH_MAX / LANDING_EVERY + 1,
    LEVELS = 900000,
    STACK_BYTES = 512 * 1024 * 1024
};

/* ---- one thread with room for deep stacks */

static void *run_deep(void *(*function)(void *), void *context) {
    pthread_t thread;
    pthread_attr_t attributes;
    void *result = NULL;
    void *stack = mmap(
        NULL,
        STACK_BYTES,
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
        -1,
        0
    );
    ck_assert(stack != MAP_FAILED);
    pthread_attr_init(&attributes);
    ck_assert_int_eq(pthread_attr_setstack(&attributes, stack, STACK_BYTES), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, function, context), 0);
    pthread_join(thread, &result);
    munmap(stack, STACK_BYTES);
    return result;
}

/* ---- cost */

struct descent {
    struct ml_oracle *oracle;
    uint32_t on_the_way_down; /* an event on each such level; 0: none */
    uint32_t on_the_way_up;
    uint32_t compared; /* of these levels' stacks all are held against whole walks */
};

static void event(const struct descent *descent, uint32_t every, uint32_t level) {
    if (level % descent->compared == 0) {
        ml_oracle_probe(descent->oracle);
    } else if (every != 0 && level % every == 0) {
        ml_oracle_walk(descent->oracle);
    }
}

__attribute__((noinline)) static long descend(const struct descent *descent, uint32_t level) {
    event(descent, descent->on_the_way_down, level);
    long result = level == 0 ? 0 : descend(descent, level - 1) + 1;
    event(descent, descent->on_the_way_up, level);
    return result;
}

static void *descend_all(void *context) {
    ck_assert_int_eq(descend(context, LEVELS), LEVELS);
    return NULL;
}

static void assert_cheap(uint32_t down, uint32_t up) {
    struct descent descent = {
        .oracle = ml_oracle_new(NULL, 0),
        .on_the_way_down = down,
        .on_the_way_up = up,
        .compared = LEVELS / 6,
    };
    descent.oracle->quick = true;
    descent.oracle->quiet = true; /* nodes are not looked up */
    (void)run_deep(descend_all, &descent);
    const struct ml_unwind_thread *thread = descent.oracle->thread;
    ck_assert_uint_eq(descent.oracle->wrong, 0);
    ck_assert_uint_eq(descent.oracle->broken, 0);
    ck_assert_uint_gt(descent.oracle->cut, LEVELS / 100);
    ck_assert_msg(
        thread->cut_walked < (uint64_t)LEVELS * 32, "%lu steps", (unsigned long)thread->cut_walked
    );
    ml_oracle_free(descent.oracle);
}

START_TEST(nine_hundred_thousand_levels_are_walked_a_few_times_not_thousands) {
    assert_cheap(1, 1);
}
END_TEST

START_TEST(nine_hundred_thousand_levels_may_be_met_at_the_bottom_first) {
    assert_cheap(0, 1);
    assert_cheap(0, 50);
}
END_TEST

/* ---- the same as without */

struct journey {
    struct ml_oracle *oracle;
    uint64_t random;
    uint32_t depth_max;
    uint32_t every;  /* one event in so many levels, by chance */
    uint32_t stops;  /* turning points left; each has an event */
    bool jumps;      /* some returns are by longjmp */
    uint32_t target; /* depth of the next turning point */
    jmp_buf landings[LANDINGS];
};

static uint32_t chance(struct journey *journey) {
    journey->random = journey->random * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (uint32_t)(journey->random >> 33);
}

static void travel(struct journey *journey, uint32_t depth);

/* Functions whose frames differ in size, in what they do with rbp, and in where they call from. */
__attribute__((noinline)) static void small(struct journey *journey, uint32_t depth) {
    travel(journey, depth);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void larger(struct journey *journey, uint32_t depth) {
    volatile char room[72];
    room[0] = 1;
    travel(journey, depth);
    room[1] = room[0];
}

__attribute__((noinline)) static void framed(struct journey *journey, uint32_t depth) {
    volatile char *room = alloca(16 + journey->random % 5 * 16);
    room[0] = 1;
    travel(journey, depth);
    room[1] = 1;
}

__attribute__((noinline)) static void with_rbp(struct journey *journey, uint32_t depth) {
    register uint64_t kept __asm__("rbp") = journey->random;
    __asm__ volatile("" : "+r"(kept));
    travel(journey, depth);
    __asm__ volatile("" ::"r"(kept));
}

__attribute__((noinline)) static void go_deeper(struct journey *journey, uint32_t depth) {
    switch (chance(journey) % 6) {
    case 0:
        larger(journey, depth);
        break;
    case 1:
        framed(journey, depth);
        break;
    case 2:
        with_rbp(journey, depth);
        break;
    default:
        small(journey, depth);
    }
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void maybe_event(struct journey *journey) {
    if (chance(journey) % journey->every == 0) {
        ml_oracle_probe(journey->oracle);
    }
    __asm__ volatile("" ::: "memory");
}

/* Where to next: mostly near, sometimes anywhere; by a jump some of the time. */
__attribute__((noinline)) static void turn(struct journey *journey, uint32_t depth) {
    static const uint32_t REACHES[] = {40, 300, 1500, 2 * DEPTH_MAX};
    const uint32_t reach = REACHES[chance(journey) % 4];
    const uint32_t least = depth > reach / 2 ? depth - reach / 2 : 1;
    ml_oracle_probe(journey->oracle);
    journey->target = least + chance(journey) % reach;
    journey->target = journey->target > journey->depth_max ? journey->depth_max : journey->target;
    if (--journey->stops == 0) {
        journey->target = 0;
    } else if (journey->jumps && chance(journey) % 3 == 0 && depth > LANDING_EVERY) {
        longjmp(journey->landings[chance(journey) % (depth / LANDING_EVERY)], 1);
    }
    __asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void travel(struct journey *journey, uint32_t depth) {
    if (depth % LANDING_EVERY == 0) {
        (void)setjmp(journey->landings[depth / LANDING_EVERY]);
    }
    maybe_event(journey);
    while (journey->target >= depth && journey->stops > 0) {
        if (journey->target == depth) {
            turn(journey, depth);
        } else {
            go_deeper(journey, depth + 1);
            maybe_event(journey);
        }
    }
}

static void *travel_all(void *context) {
    travel(context, 0);
    return NULL;
}

static void assert_same(uint32_t every, uint32_t stops, bool jumps) {
    struct journey *journey = calloc(1, sizeof *journey);
    *journey = (struct journey){
        .oracle = ml_oracle_new(NULL, 0),
        .random = every * 31 + jumps,
        .depth_max = DEPTH_MAX,
        .every = every,
        .stops = stops,
        .jumps = jumps,
        .target = 600,
    };
    journey->oracle->quick = true;
    journey->oracle->may_lie_beside = jumps;
    (void)run_deep(travel_all, journey);
    ck_assert_uint_gt(journey->oracle->cut, stops / 2);
    ck_assert_uint_eq(journey->oracle->wrong, 0);
    ck_assert_uint_eq(journey->oracle->wrong_nodes, 0);
    ck_assert_uint_eq(journey->oracle->broken, 0);
    ml_oracle_free(journey->oracle);
    free(journey);
}

START_TEST(deep_stacks_are_as_without_marks_when_each_level_allocates) {
    assert_same(1, 20, false);
}
END_TEST

START_TEST(deep_stacks_are_as_without_marks_when_few_events_are_recorded) {
    assert_same(20, 200, false);
    assert_same(1000, 1500, false);
}
END_TEST

START_TEST(deep_stacks_are_as_without_marks_when_frames_are_jumped_over) {
    assert_same(1, 20, true);
    assert_same(20, 200, true);
    assert_same(1000, 1500, true);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("deep");
    tcase_set_timeout(tcase, 200);
    tcase_add_test(tcase, nine_hundred_thousand_levels_are_walked_a_few_times_not_thousands);
    tcase_add_test(tcase, nine_hundred_thousand_levels_may_be_met_at_the_bottom_first);
    tcase_add_test(tcase, deep_stacks_are_as_without_marks_when_each_level_allocates);
    tcase_add_test(tcase, deep_stacks_are_as_without_marks_when_few_events_are_recorded);
    tcase_add_test(tcase, deep_stacks_are_as_without_marks_when_frames_are_jumped_over);
    return run_suite("client/unwind, deep", tcase);
}
