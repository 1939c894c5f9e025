#include "host/policy/overhead.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"

enum {
    LOOK_CPU_NS = 40 * 1000 * 1000, /* in less, too little happens to judge it by */
    SLOW_NS = 1000 * 1000 * 1000,
    SLOW_CPU_NS = 250 * 1000 * 1000,
    STEP_UP_MAX = 64,  /* times the interval */
    STEP_DOWN_MAX = 8, /* a part of it */
    LEAST_PART = 16,   /* of the promise */
    NS_PER_S = 1000000000
};

/* Where a step leads to, as a share of what the promise leaves to recording. What cannot be
 * measured fits between the two: our use of the program's caches. */
static const double aim = 0.7;

/* What is measured wavers: an interval that is nearly right stays. */
static const double least_step = 1.25;

static double share(uint64_t from, uint64_t to, double all) {
    const double part = to > from ? (double)(to - from) / all : 0;
    return part < 1 ? part : 1;
}

static double ticks_of(
    const struct ml_overhead_reading *from, const struct ml_overhead_reading *to, uint64_t of_ns
) {
    if (to->at_ns <= from->at_ns || to->ticks <= from->ticks) {
        return 0;
    }
    return (double)(to->ticks - from->ticks) / (double)(to->at_ns - from->at_ns) * (double)of_ns;
}

static uint64_t
cpu_between(const struct ml_overhead_reading *from, const struct ml_overhead_reading *to) {
    return to->cpu_ns > from->cpu_ns ? to->cpu_ns - from->cpu_ns : 0;
}

struct ml_overhead_cost
ml_overhead_cost(const struct ml_overhead_reading *from, const struct ml_overhead_reading *to) {
    const double all = ticks_of(from, to, cpu_between(from, to));
    if (all <= 0) {
        return (struct ml_overhead_cost){.recording_ppm = 0};
    }
    return (struct ml_overhead_cost
    ){.recording_ppm = (uint32_t)(share(from->recording_ticks, to->recording_ticks, all) * ML_PPM),
      .passing_ppm = (uint32_t)(share(from->passing_ticks, to->passing_ticks, all) * ML_PPM)};
}

uint64_t ml_overhead_start(const struct ml_overhead_rule *rule) {
    return rule->least_bytes > ML_OVERHEAD_START_BYTES ? rule->least_bytes
                                                       : ML_OVERHEAD_START_BYTES;
}

static uint64_t most_of(const struct ml_overhead_rule *rule) {
    return rule->least_bytes > ML_OVERHEAD_MOST_BYTES ? rule->least_bytes : ML_OVERHEAD_MOST_BYTES;
}

static uint64_t within(const struct ml_overhead_rule *rule, uint64_t bytes) {
    const uint64_t most = most_of(rule);
    return bytes < rule->least_bytes ? rule->least_bytes : bytes > most ? most : bytes;
}

/* What recording may cost: what is left of the aim. Where the calls that are passed over take all
 * of it, no interval keeps the promise, and one so long that nothing is recorded helps nobody. */
static double room_of(const struct ml_overhead_rule *rule, struct ml_overhead_cost cost) {
    const double promised = rule->promised_ppm;
    const double left = aim * (promised - cost.passing_ppm);
    const double least = promised / LEAST_PART;
    return left > least ? left : least;
}

/* The interval at which recording would cost that, or somewhat less. */
static uint64_t coarser(
    const struct ml_overhead_rule *rule, uint64_t interval_bytes, struct ml_overhead_cost cost
) {
    const double times = cost.recording_ppm / room_of(rule, cost);
    const double bounded = times < STEP_UP_MAX ? times : STEP_UP_MAX;
    const double wanted = (double)interval_bytes * bounded;
    uint64_t bytes = 1;
    while ((double)bytes < wanted) {
        bytes *= 2; /* a figure that people recognize */
    }
    return bounded < least_step ? interval_bytes : within(rule, bytes);
}

/* The shortest interval, a half to an eighth of this one, at which it would cost no more than that;
 * this one: there is none. */
static uint64_t
finer(const struct ml_overhead_rule *rule, uint64_t interval_bytes, struct ml_overhead_cost cost) {
    for (uint64_t part = STEP_DOWN_MAX; part > 1; part /= 2) {
        if (cost.recording_ppm * (double)part <= room_of(rule, cost)) {
            return within(rule, interval_bytes / part);
        }
    }
    return interval_bytes;
}

static void note_interval(struct ml_overhead *overhead, uint64_t interval_bytes) {
    if (overhead->shortest_bytes == 0 || interval_bytes < overhead->shortest_bytes) {
        overhead->shortest_bytes = interval_bytes;
    }
    if (interval_bytes > overhead->longest_bytes) {
        overhead->longest_bytes = interval_bytes;
    }
}

static void begin(struct ml_overhead *overhead, const struct ml_overhead_reading *now) {
    overhead->has_begun = true;
    overhead->first = *now;
    overhead->last = *now;
    overhead->slow = *now;
}

/* The larger of both in each part: a program that has just become busy is not sampled finer. */
static struct ml_overhead_cost worse(struct ml_overhead_cost a, struct ml_overhead_cost b) {
    return (struct ml_overhead_cost
    ){.recording_ppm = a.recording_ppm > b.recording_ppm ? a.recording_ppm : b.recording_ppm,
      .passing_ppm = a.passing_ppm > b.passing_ppm ? a.passing_ppm : b.passing_ppm};
}

uint64_t ml_overhead_step(
    struct ml_overhead *overhead,
    const struct ml_overhead_rule *rule,
    uint64_t interval_bytes,
    const struct ml_overhead_reading *now
) {
    overhead->promised_ppm = rule->promised_ppm;
    note_interval(overhead, interval_bytes);
    if (!overhead->has_begun || now->cpu_ns < overhead->last.cpu_ns) {
        begin(overhead, now);
        return interval_bytes;
    }
    const uint64_t cpu_ns = cpu_between(&overhead->last, now);
    if (cpu_ns < LOOK_CPU_NS || now->at_ns <= overhead->last.at_ns) {
        return interval_bytes;
    }
    overhead->recent = ml_overhead_cost(&overhead->last, now);
    overhead->whole = ml_overhead_cost(&overhead->first, now);
    const uint64_t calls = now->passed_calls > overhead->last.passed_calls
                               ? now->passed_calls - overhead->last.passed_calls
                               : 0;
    overhead->recent_calls_per_s = (uint64_t)((double)calls / (double)cpu_ns * NS_PER_S);
    overhead->is_measured = true;
    overhead->last = *now;
    uint64_t wanted = interval_bytes;
    const bool is_over = ml_overhead_sum(overhead->recent) > rule->promised_ppm;
    if (is_over) {
        wanted = coarser(rule, interval_bytes, overhead->recent);
    } else if (now->at_ns - overhead->slow.at_ns >= SLOW_NS && cpu_between(&overhead->slow, now) >= SLOW_CPU_NS) {
        const struct ml_overhead_cost slow = ml_overhead_cost(&overhead->slow, now);
        wanted = finer(rule, interval_bytes, worse(slow, overhead->recent));
        overhead->slow = *now;
    }
    overhead->is_broken = is_over && wanted == interval_bytes &&
                          ml_overhead_sum(overhead->whole) > rule->promised_ppm;
    if (wanted != interval_bytes) {
        overhead->slow = *now;
        note_interval(overhead, wanted);
    }
    return wanted;
}

const char *ml_overhead_percent(uint32_t ppm, char text[ML_OVERHEAD_PERCENT_BYTES]) {
    enum { PPM_PER_TENTH = ML_PPM / 1000, PPM_PER_HUNDREDTH = PPM_PER_TENTH / 10, TEN = 10 };
    const uint32_t tenths = (ppm + PPM_PER_TENTH / 2) / PPM_PER_TENTH;
    const uint32_t ones = (ppm + PPM_PER_TENTH * TEN / 2) / (PPM_PER_TENTH * TEN);
    if (ppm < PPM_PER_TENTH) {
        (void
        )snprintf(text, ML_OVERHEAD_PERCENT_BYTES, "0.0%" PRIu32 " %%", ppm / PPM_PER_HUNDREDTH);
    } else if (tenths % TEN == 0 || tenths >= TEN * TEN) {
        (void)snprintf(text, ML_OVERHEAD_PERCENT_BYTES, "%" PRIu32 " %%", ones);
    } else {
        (void)snprintf(
            text,
            ML_OVERHEAD_PERCENT_BYTES,
            "%" PRIu32 ".%" PRIu32 " %%",
            tenths / TEN,
            tenths % TEN
        );
    }
    return text;
}

const char *ml_overhead_trouble(
    const struct ml_overhead *overhead,
    const struct ml_overhead_rule *rule,
    char text[ML_OVERHEAD_TEXT_BYTES]
) {
    char cost[ML_OVERHEAD_PERCENT_BYTES];
    char promised[ML_OVERHEAD_PERCENT_BYTES];
    char part[ML_OVERHEAD_PERCENT_BYTES];
    text[0] = '\0';
    if (!overhead->is_broken) {
        return text;
    }
    ml_overhead_percent(ml_overhead_sum(overhead->recent), cost);
    ml_overhead_percent(rule->promised_ppm, promised);
    if (overhead->recent.passing_ppm > overhead->recent.recording_ppm) {
        (void)snprintf(
            text,
            ML_OVERHEAD_TEXT_BYTES,
            "cost %s, promised %s: its %" PRIu64
            " calls of the allocator in each second of a processor cost %s alone, sampled or not",
            cost,
            promised,
            overhead->recent_calls_per_s,
            ml_overhead_percent(overhead->recent.passing_ppm, part)
        );
    } else {
        char interval[ML_SIZE_TEXT_BYTES];
        (void)snprintf(
            text,
            ML_OVERHEAD_TEXT_BYTES,
            "cost %s, promised %s: at the longest interval, %s, recording costs %s",
            cost,
            promised,
            ml_size_text(most_of(rule), interval),
            ml_overhead_percent(overhead->recent.recording_ppm, part)
        );
    }
    return text;
}

bool ml_overhead_read(const char *text, uint32_t *out_ppm) {
    enum { MOST = 50, DIGITS = 4, TEN = 10 };
    uint64_t ppm = 0;
    uint64_t unit = ML_PPM / 100;
    const size_t count = strlen(text);
    const size_t number = strspn(text, "0123456789.");
    bool behind_point = false;
    if (number == 0 || number > DIGITS + 1 || number + 1 != count || text[number] != '%' ||
        text[0] == '.' || text[number - 1] == '.') {
        return false;
    }
    for (size_t i = 0; i < number; i++) {
        const uint64_t digit = (uint64_t)(text[i] - '0');
        if (text[i] == '.') {
            if (behind_point) {
                return false;
            }
            behind_point = true;
        } else if (behind_point) {
            unit /= TEN;
            ppm += digit * unit;
        } else {
            ppm = ppm * TEN + digit * unit;
        }
    }
    *out_ppm = (uint32_t)ppm;
    return ppm > 0 && ppm <= (uint64_t)MOST * (ML_PPM / 100);
}
