#include "host/collect/statistics.h"

#include <math.h>
#include <stdlib.h>

#define Z_WITHOUT_SPREAD 1000.0

static double mean_of(struct ml_side side) {
    return side.count > 0 ? side.sum / (double)side.count : 0;
}

/* Of the mean. */
static double variance_of(struct ml_side side) {
    const double count = (double)side.count;
    if (side.count < 2) {
        return 0;
    }
    const double mean = side.sum / count;
    const double spread = (side.squares - count * mean * mean) / (count - 1);
    return spread > 0 ? spread / count : 0;
}

double ml_statistics_interval(struct ml_side side) {
    const double z_of_95_percent = 1.959964;
    return z_of_95_percent * sqrt(variance_of(side));
}

/* What is as unlikely of a normal distribution as t is with so many degrees of freedom. Source:
 * D. L. Wallace, "Bounds on normal approximations to Student's and the chi-square distributions",
 * 1959. */
static double z_of_t(double t, double freedom) {
    const double z = (8 * freedom + 1) / (8 * freedom + 3) * sqrt(freedom * log1p(t * t / freedom));
    return t < 0 ? -z : z;
}

/* Each side with its own spread (Welch). */
static double z_apart(double by, struct ml_side before, struct ml_side after) {
    const double one = variance_of(before);
    const double other = variance_of(after);
    const double freedom =
        (one + other) * (one + other) /
        (one * one / (double)(before.count - 1) + other * other / (double)(after.count - 1));
    return z_of_t(by / sqrt(one + other), freedom);
}

/* With one spread for both (Student), as it is where the sides are equal. */
static double z_together(double by, struct ml_side before, struct ml_side after) {
    const double one = (double)before.count;
    const double other = (double)after.count;
    const double freedom = one + other - 2;
    const double spread =
        (variance_of(before) * one * (one - 1) + variance_of(after) * other * (other - 1)) /
        freedom;
    return z_of_t(by / sqrt(spread * (1 / one + 1 / other)), freedom);
}

struct ml_difference ml_statistics_compare(struct ml_side before, struct ml_side after) {
    struct ml_difference difference = {
        .mean_before = mean_of(before), .mean_after = mean_of(after), .p = 1, .q = 1};
    const double by = difference.mean_after - difference.mean_before;
    if (before.count < ML_STATISTICS_LEAST || after.count < ML_STATISTICS_LEAST || by == 0) {
        return difference;
    }
    if (variance_of(before) + variance_of(after) > 0) {
        const double apart = z_apart(by, before, after);
        const double together = z_together(by, before, after);
        difference.z = fabs(apart) < fabs(together) ? apart : together;
    } else {
        difference.z = by > 0 ? Z_WITHOUT_SPREAD : -Z_WITHOUT_SPREAD;
    }
    difference.p = erfc(fabs(difference.z) / sqrt(2.0));
    return difference;
}

struct rank {
    double p;
    size_t of;
};

static int by_p(const void *a, const void *b) {
    const double one = ((const struct rank *)a)->p;
    const double other = ((const struct rank *)b)->p;
    return one < other ? -1 : one > other;
}

bool ml_statistics_adjust(struct ml_difference *differences, size_t count) {
    struct rank *ranks = calloc(count + 1, sizeof(*ranks));
    if (ranks == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        ranks[i] = (struct rank){.p = differences[i].p, .of = i};
    }
    qsort(ranks, count, sizeof(*ranks), by_p);
    double least = 1;
    for (size_t i = count; i > 0; i--) {
        const double q = ranks[i - 1].p * (double)count / (double)i;
        least = q < least ? q : least;
        differences[ranks[i - 1].of].q = least;
    }
    free(ranks);
    return true;
}
