#include "tools/analyzer/growth/growth.h"

#include <math.h>
#include <stdbool.h>

enum { PARTS_MAX = ML_GROWTH_STEPS_MOST + 1 };

/* A time, and the least that the curve held in each of its parts. */
struct parts {
    uint64_t from_ms, to_ms;
    uint64_t length_ms; /* of a part */
    double lows[PARTS_MAX];
    uint64_t lows_ms[PARTS_MAX]; /* where the slots of the lows end */
    unsigned steps;              /* one less than parts */
};

/* Steps between the parts of a time. */
struct steps {
    double by[ML_GROWTH_STEPS_MOST];
    unsigned count, rising;
    double sum, largest, mean, mean_error;
    double first_half, last_half; /* of as many steps */
};

/* Cut the time from `from_ms` to the end of the curve. Few points are a part each; of many, those
 * whose slots end in a part are its, or else the one whose slot covers it. False: there are too
 * few. */
static bool
cut(const struct ml_growth_low *lows, size_t count, uint64_t from_ms, struct parts *out) {
    size_t at = 0;
    size_t points = 0;
    bool is_each = false;

    while (at < count && lows[at].end_ms <= from_ms) {
        at++;
    }
    if (at + 1 < count && (lows[at].end_ms - from_ms) * 2 < lows[at + 1].end_ms - lows[at].end_ms) {
        from_ms = lows[at++].end_ms; /* the rest of a slot is no part of its own */
    }
    points = count - at;
    if (points <= ML_GROWTH_STEPS_LEAST) {
        return false;
    }
    is_each = points <= ML_GROWTH_STEPS_MOST + 1;
    *out = (struct parts
    ){.from_ms = from_ms,
      .to_ms = lows[count - 1].end_ms,
      .steps = is_each ? (unsigned)points - 1 : ML_GROWTH_STEPS};
    out->length_ms = (out->to_ms - from_ms) / (out->steps + 1);
    for (unsigned part = 0; part <= out->steps; part++) {
        const uint64_t end_ms =
            is_each ? lows[at].end_ms
                    : from_ms + (out->to_ms - from_ms) * (part + 1) / (out->steps + 1);
        size_t low = at;
        while (at + 1 < count && lows[at].end_ms <= end_ms) {
            low = lows[at].bytes < lows[low].bytes ? at : low;
            at++;
        }
        if (at + 1 == count && lows[at].end_ms <= end_ms) {
            low = lows[at].bytes < lows[low].bytes ? at : low;
        }
        out->lows[part] = (double)lows[low].bytes;
        out->lows_ms[part] = lows[low].end_ms;
    }
    return true;
}

static struct steps steps_of(const struct parts *parts) {
    struct steps steps = {.count = parts->steps};
    double squares = 0;

    for (unsigned i = 0; i < steps.count; i++) {
        const double by = parts->lows[i + 1] - parts->lows[i];
        steps.by[i] = by;
        steps.sum += by;
        steps.rising += by > 0;
        steps.largest = fmax(steps.largest, by);
        steps.first_half += i < steps.count / 2 ? by : 0;
        steps.last_half += i >= steps.count - steps.count / 2 ? by : 0;
    }
    steps.mean = steps.sum / steps.count;
    for (unsigned i = 0; i < steps.count; i++) {
        squares += (steps.by[i] - steps.mean) * (steps.by[i] - steps.mean);
    }
    steps.mean_error = sqrt(squares / (steps.count - 1) / steps.count);
    return steps;
}

/* Whether the steps become smaller, and not by chance: Kendall's test of their order, one in 100.
 * A large first step, as of a program that starts, is no such order. */
static bool is_slowing(const struct steps *steps) {
    const double n = steps->count;
    const double LEAST_SCORE = 2.33;
    const double MUCH_LESS = 0.8;
    double order = 0;

    for (unsigned i = 0; i < steps->count; i++) {
        for (unsigned j = i + 1; j < steps->count; j++) {
            order += (steps->by[j] > steps->by[i]) - (steps->by[j] < steps->by[i]);
        }
    }
    return order < -LEAST_SCORE * sqrt(n * (n - 1) * (2 * n + 5) / 18) &&
           steps->last_half < MUCH_LESS * steps->first_half;
}

static bool is_steady(const struct steps *steps) {
    enum { ALIKE = 6 };
    const unsigned allowed = steps->count / ML_GROWTH_STEPS;

    return steps->rising + allowed >= steps->count && steps->largest * 2 <= steps->sum &&
           steps->last_half * 2 >= steps->first_half && steps->mean >= ALIKE * steps->mean_error &&
           steps->by[steps->count - 1] * 3 >= steps->mean;
}

/* The first moment of the growth that goes on at from_ms: as far back as parts of the same length
 * go down, each to less than the one behind it. */
static uint64_t began(
    const struct ml_growth_low *lows, size_t count, uint64_t first_ms, const struct parts *parts
) {
    const uint64_t length_ms = parts->length_ms;
    uint64_t since_ms = parts->from_ms;
    double behind = parts->lows[0];

    while (since_ms >= first_ms + length_ms && length_ms > 0) {
        double low = behind;
        bool is_any = false;
        for (size_t i = 0; i < count && lows[i].end_ms <= since_ms; i++) {
            if (lows[i].end_ms > since_ms - length_ms) {
                low = is_any ? fmin(low, (double)lows[i].bytes) : (double)lows[i].bytes;
                is_any = true;
            }
        }
        if (!is_any || low >= behind) {
            break;
        }
        behind = low;
        since_ms -= length_ms;
    }
    return since_ms;
}

static void set_steady(
    const struct ml_growth_low *lows,
    size_t count,
    uint64_t first_ms,
    const struct parts *parts,
    const struct steps *steps,
    struct ml_growth *out
) {
    const uint64_t between_ms = parts->lows_ms[parts->steps] - parts->lows_ms[0];
    const double step_s = (double)between_ms / 1000 / (double)parts->steps;

    out->kind = ML_GROWTH_STEADY;
    out->since_ms = began(lows, count, first_ms, parts);
    out->grown_bytes = (uint64_t)steps->sum;
    out->bytes_per_s = steps->mean / step_s;
    out->error_per_s = steps->mean_error / step_s;
    out->steps = steps->count;
    out->rising = steps->rising;
}

/* Whether most of the growth lies before the last quarter of the time, and took more than a step:
 * one large allocation does not grow. *out_until_ms: where it ended. */
static bool has_levelled(const struct parts *parts, uint64_t *out_until_ms) {
    enum { QUIET_PART = 4, HARDLY = 10, STEPS = 2 };
    const double last = parts->lows[parts->steps];
    const double grown = last - parts->lows[0];
    unsigned at = parts->steps;
    unsigned rising = 0;

    while (at > 0 && last - parts->lows[at - 1] <= grown / HARDLY) {
        at--;
    }
    *out_until_ms = parts->from_ms + at * parts->length_ms;
    for (unsigned i = 1; i <= at; i++) {
        rising += (parts->lows[i] - parts->lows[i - 1]) * HARDLY > grown;
    }
    return rising >= STEPS && (parts->steps - at) * QUIET_PART >= parts->steps;
}

/* It holds most of what it ever held. */
static bool is_high(const struct parts *parts) {
    double most = 0;

    for (unsigned i = 0; i <= parts->steps; i++) {
        most = fmax(most, parts->lows[i]);
    }
    return parts->lows[parts->steps] * 5 >= most * 4;
}

static void judge_steady(
    const struct ml_growth_low *lows,
    size_t count,
    const struct parts *whole,
    uint64_t least_bytes,
    struct ml_growth *out
) {
    static const unsigned left_out_eighths[] = {0, 1, 2, 4};

    for (size_t i = 0; i < sizeof left_out_eighths / sizeof left_out_eighths[0]; i++) {
        const uint64_t start_ms =
            whole->from_ms + (whole->to_ms - whole->from_ms) * left_out_eighths[i] / 8;
        struct parts parts;
        struct steps steps;
        if (!cut(lows, count, start_ms, &parts)) {
            return;
        }
        steps = steps_of(&parts);
        if (steps.sum < fmax((double)least_bytes, 1) || !is_high(&parts)) {
            continue;
        }
        if (is_slowing(&steps)) {
            out->kind = ML_GROWTH_SLOWING;
            out->grown_bytes = (uint64_t)steps.sum;
            out->since_ms = start_ms;
            return;
        }
        if (is_steady(&steps) && parts.lows_ms[parts.steps] > parts.lows_ms[0]) {
            set_steady(lows, count, whole->from_ms, &parts, &steps, out);
            return;
        }
    }
}

static void judge_levelled(const struct parts *whole, uint64_t least_bytes, struct ml_growth *out) {
    const double grown = whole->lows[whole->steps] - whole->lows[0];
    uint64_t until_ms = 0;

    if (grown >= fmax((double)least_bytes, 1) && is_high(whole) && has_levelled(whole, &until_ms)) {
        out->kind = ML_GROWTH_LEVELLED;
        out->since_ms = whole->from_ms;
        out->until_ms = until_ms;
        out->grown_bytes = (uint64_t)grown;
    }
}

/* How many points are left without a drop at the end, within the last eighth of the time, from
 * which the curve does not recover. */
static size_t before_the_drop(const struct ml_growth_low *lows, size_t count, uint64_t from_ms) {
    const uint64_t end_ms = lows[count - 1].end_ms;
    uint64_t most = 0;
    size_t left = count;

    for (size_t i = 0; i < count; i++) {
        most = lows[i].bytes > most ? lows[i].bytes : most;
    }
    while (left > 0 && lows[left - 1].bytes < most - most / 5) {
        left--;
    }
    return left > 0 && (end_ms - lows[left - 1].end_ms) * 8 <= end_ms - from_ms ? left : count;
}

struct ml_growth ml_growth_judge(
    const struct ml_growth_low *lows, size_t count, uint64_t from_ms, uint64_t least_bytes
) {
    struct ml_growth growth = {.since_ms = from_ms, .until_ms = from_ms};
    struct parts whole;
    size_t left = 0;

    if (count > 0) {
        growth.until_ms = lows[count - 1].end_ms;
    }
    if (count == 0 || !cut(lows, count, from_ms, &whole)) {
        growth.kind = ML_GROWTH_SHORT;
        return growth;
    }
    left = before_the_drop(lows, count, from_ms);
    if (left < count && !cut(lows, left, from_ms, &whole)) {
        return growth;
    }
    judge_steady(lows, left, &whole, least_bytes, &growth);
    if (left < count) {
        growth.kind = growth.kind == ML_GROWTH_STEADY ? ML_GROWTH_FREED : ML_GROWTH_NONE;
        growth.until_ms = lows[left - 1].end_ms;
    } else if (growth.kind != ML_GROWTH_STEADY) {
        judge_levelled(&whole, least_bytes, &growth);
    }
    return growth;
}
