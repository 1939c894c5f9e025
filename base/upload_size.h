/* How large the body of an upload may be, for `memlog run` and the analyzer alike. Room: base. */
#ifndef MEMLOG_BASE_UPLOAD_SIZE_H
#define MEMLOG_BASE_UPLOAD_SIZE_H

enum {
    /* The least that --upload-max-bytes takes: the sums of any tree and a few stacks are less. */
    ML_UPLOAD_LEAST_BYTES = 4096,
    ML_UPLOAD_MOST_BYTES = 10000000, /* its default: Chromium's bound for a report */
    /* The most that --upload-prune takes. A whole body has some hundred MB at most. */
    ML_UPLOAD_PRUNE_MAX = 100000,
};

#endif
