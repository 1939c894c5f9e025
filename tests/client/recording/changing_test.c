/* The sampling interval changes while a thread allocates, by what the samples so far have cost, as
 * the governor of --overhead does it: estimates stay unbiased. Over many seeds, of what all blocks
 * come to and of what lives, in bytes and in blocks, by size. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "client/recording/sampler.h"
#include "tests/suite.h"

enum { SEEDS = 6000, BLOCKS = 4000, WINDOW = 150, SIZES = 5, FIGURES = 4 };

/* So that some of the smallest blocks are sampled at each: what is never sampled has no variance.
 */
enum { LONGEST = 1 << 16 };

static const uint64_t sizes[SIZES] = {7, 40, 400, 6000, 90000};

static struct ml_control_page control;
static struct ml_gate_page gate_page;
static struct ml_poisson_memo chances;

/* Bytes and blocks of all, and of those that live. */
struct sums {
    double figures[SIZES][FIGURES];
};

static uint64_t next(uint64_t *random) {
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

/* Seeds that follow one another must not give states that do: their numbers would be the same. */
static struct ml_thread *begin(uint64_t seed) {
    control = (struct ml_control_page){.sampling_bytes = 4096, .generation = 1, .all_sampled = 1};
    ml_process.control = &control;
    ml_process.gate_page = &gate_page;
    ml_thread = (struct ml_thread){.random = ml_poisson_random(&seed)};
    ml_thread.seeded = ml_process.generation;
    ml_sampler_follow(&ml_thread, true);
    ml_thread.control = control.generation;
    ml_sampler_let(&ml_thread);
    return &ml_thread;
}

static void count(struct sums *sums, unsigned size, double bytes, double blocks, bool lives) {
    double *figures = sums->figures[size];
    figures[0] += bytes;
    figures[1] += blocks;
    figures[2] += lives ? bytes : 0;
    figures[3] += lives ? blocks : 0;
}

/* As the hooks do: the fast part, then the slow one, which follows the control page. */
static bool sample(
    struct ml_thread *thread, uint64_t size_bytes, bool redraws, struct ml_poisson_weights *weights
) {
    if (ml_sampler_passes(thread, size_bytes)) {
        return false;
    }
    ml_sampler_hold(thread);
    if (thread->control != control.generation) {
        const uint64_t way = ml_sampler_way(thread);
        ml_sampler_follow(thread, true);
        thread->control = control.generation;
        if (!redraws) {
            ml_sampler_set_way(thread, way);
        }
    }
    const bool is_taken = ml_sampler_decide(thread, &chances, size_bytes, weights);
    ml_sampler_let(thread);
    return is_taken;
}

/* Many samples: coarser at once; few: finer. So the interval depends on which blocks were taken. */
static void govern(unsigned taken) {
    const uint64_t before = control.sampling_bytes;
    if (taken > 60 && before * 8 <= LONGEST) {
        control.sampling_bytes = before * 8;
    } else if (taken < 50 && before > 256) {
        control.sampling_bytes = before / 2;
    }
    control.generation += control.sampling_bytes != before;
}

/* Returns how often the interval changed. */
static unsigned run(uint64_t seed, bool redraws, struct sums *truth, struct sums *estimate) {
    struct ml_thread *thread = begin(seed);
    uint64_t random = seed;
    unsigned taken = 0;
    for (unsigned i = 0; i < BLOCKS; i++) {
        const unsigned size = (unsigned)(next(&random) % SIZES);
        const bool lives = next(&random) % 3 == 0;
        struct ml_poisson_weights weights;
        count(truth, size, (double)sizes[size], 1, lives);
        if (sample(thread, sizes[size], redraws, &weights)) {
            count(estimate, size, (double)weights.bytes, (double)weights.blocks, lives);
            taken++;
        }
        if (i % WINDOW == WINDOW - 1) {
            govern(taken);
            taken = 0;
        }
    }
    return control.generation - 1;
}

/* By how many standard errors of the mean the estimate is off, at the worst. */
static double worst(bool redraws, unsigned *out_changes) {
    static double offs[SIZES][FIGURES], squares[SIZES][FIGURES];
    *out_changes = 0;
    for (unsigned k = 0; k < SIZES * FIGURES; k++) {
        offs[k / FIGURES][k % FIGURES] = squares[k / FIGURES][k % FIGURES] = 0;
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sums truth = {.figures = {{0}}};
        struct sums estimate = {.figures = {{0}}};
        *out_changes += run(seed, redraws, &truth, &estimate);
        for (unsigned k = 0; k < SIZES * FIGURES; k++) {
            const double off = estimate.figures[k / FIGURES][k % FIGURES] -
                               truth.figures[k / FIGURES][k % FIGURES];
            offs[k / FIGURES][k % FIGURES] += off;
            squares[k / FIGURES][k % FIGURES] += off * off;
        }
    }
    double most = 0;
    for (unsigned k = 0; k < SIZES * FIGURES; k++) {
        const double mean = offs[k / FIGURES][k % FIGURES] / SEEDS;
        const double variance = squares[k / FIGURES][k % FIGURES] / SEEDS - mean * mean;
        const double deviations = variance > 0 ? fabs(mean) / sqrt(variance / SEEDS) : 0;
        most = deviations > most ? deviations : most;
    }
    return most;
}

START_TEST(estimates_are_unbiased_over_changes) {
    unsigned changes = 0;
    const double most = worst(true, &changes);
    ck_assert_uint_gt(changes, 5 * SEEDS);
    ck_assert_double_lt(most, 4.5); /* the largest of 20: once in 7,000 by chance */
}
END_TEST

/* The old distance at the new interval is a mistake that this test sees. */
START_TEST(a_distance_that_is_kept_would_be_seen) {
    unsigned changes = 0;
    ck_assert_double_gt(worst(false, &changes), 6);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("changing");
    tcase_set_timeout(tcase, 0);
    tcase_add_test(tcase, estimates_are_unbiased_over_changes);
    tcase_add_test(tcase, a_distance_that_is_kept_would_be_seen);
    return run_suite("client/changing", tcase);
}
