/* Whether a curve of live bytes grows steadily. Room: tools. Context: any thread.
 *
 * One rule: nothing is claimed that chance could have done. A curve that goes up and down by chance
 * (a random walk) is called steady less often than once in 1,000 curves, and one that fills and
 * levels off never for long. What is not claimed may still be a leak: a longer recording tells.
 *
 * How it is judged. The time is cut into parts, 17 where there are many points. Of each part the
 * least counts, as a heap that is collected from time to time grows in its lows alone. Growth is
 * steady if all steps between parts go up, but for one in 16; if no step is half of all; if they
 * are much alike (their mean is six times its own standard error); and if the last step is a third
 * of the mean or more. The same is
 * tried without the first eighth, quarter and half of the time, as programs fill memory when they
 * start. Growth whose steps become smaller is not steady, however long it lasts. */
#ifndef MEMLOG_TOOLS_ANALYZER_GROWTH_GROWTH_H
#define MEMLOG_TOOLS_ANALYZER_GROWTH_GROWTH_H

#include <stddef.h>
#include <stdint.h>

enum ml_growth_kind {
    ML_GROWTH_NONE,     /* it does not grow, or not so that it can be told from chance */
    ML_GROWTH_SHORT,    /* its time has too few points to tell */
    ML_GROWTH_STEADY,   /* it grows until the end, as fast as before or faster */
    ML_GROWTH_SLOWING,  /* it grows until the end, ever more slowly */
    ML_GROWTH_LEVELLED, /* it has grown, and has not for a while */
    ML_GROWTH_FREED     /* it grew steadily, and in the last eighth of its time most was freed */
};

/* Up to ML_GROWTH_STEPS_MOST steps are from point to point; of more points, so many as 16. */
enum { ML_GROWTH_STEPS_LEAST = 10, ML_GROWTH_STEPS = 16, ML_GROWTH_STEPS_MOST = 32 };

/* The least that was held from the end of the slot before it to end_ms. */
struct ml_growth_low {
    uint64_t end_ms;
    uint64_t bytes;
};

struct ml_growth {
    enum ml_growth_kind kind;
    uint64_t since_ms;      /* STEADY, FREED: where the growth began; else where the curve begins */
    uint64_t until_ms;      /* LEVELLED, FREED: where it ended; else where the curve ends */
    uint64_t grown_bytes;   /* in that time; 0 of NONE and SHORT */
    double bytes_per_s;     /* STEADY, FREED: the slope */
    double error_per_s;     /* and its standard error */
    unsigned steps, rising; /* likewise: of so many steps so many go up */
};

/* Judge a curve from `from_ms` on. Lows rise in time. `least_bytes`: less growth is none. */
struct ml_growth ml_growth_judge(
    const struct ml_growth_low *lows, size_t count, uint64_t from_ms, uint64_t least_bytes
);

#endif
