/* Prefetching memory. Room: service. Context: any.
 *
 * One rule: prefetch only through this. The compiler considers a function that only prefetches to
 * have no effect, and drops its calls. */
#ifndef MEMLOG_SERVICE_HEAP_PREFETCH_H
#define MEMLOG_SERVICE_HEAP_PREFETCH_H

/* To be written, too. Nothing is read: the place may be anywhere. */
static inline void ml_prefetch(const void *place) {
    __builtin_prefetch(place, 1);
    __asm__ volatile(""); /* an effect, as far as the compiler knows */
}

#endif
