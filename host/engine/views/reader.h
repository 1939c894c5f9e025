/* A thread that reads what the kernel says of processes' memory, one process after the other. Room:
 * host. Context: the loop's thread, but for the reading.
 *
 * One rule: the loop never waits for a reading. Of a process with 30,000 mappings it takes most of
 * a second, and as long as another process holds a lock in the kernel. */
#ifndef MEMLOG_HOST_ENGINE_VIEWS_READER_H
#define MEMLOG_HOST_ENGINE_VIEWS_READER_H

#include <ev.h>

#include "host/engine/service/link.h"
#include "host/engine/views/holder.h"
#include "ipc/wire/event.h"

/* What was read, in the order of the questions. The view is the reader's. */
typedef void
ml_on_view(void *context, uint32_t id, uint64_t serial, const struct ml_process_view *view);

struct ml_view_reader_setup {
    struct ev_loop *loop;
    enum ml_clock clock;
    bool reads_words;  /* host/memory/words.h */
    bool reads_python; /* those that are types of Python's */
    ml_on_view *on_view;
    void *context;
};

struct ml_view_reader;

/* Start it. NULL: there is no memory, or no thread. `take_holder` is closed with it; its descriptor
 * is -1 where nobody is to be held. */
struct ml_view_reader *
ml_view_reader_new(const struct ml_view_reader_setup *setup, struct ml_holder take_holder);

struct ml_view_question {
    uint32_t id; /* the asker's */
    pid_t pid;
    bool is_to_be_held;    /* from before the reading until ml_view_reader_release */
    uint32_t tree_reading; /* of all processes, in which it has its turn; 0: it is read alone */
};

/* Have a process read. Returns its serial number, one more than the last; 0: there is no memory. A
 * question for the same id that is still waiting stands for this one. */
uint64_t ml_view_reader_ask(struct ml_view_reader *reader, const struct ml_view_question *what);

/* The process of that number need not be held any more. */
void ml_view_reader_release(struct ml_view_reader *reader, uint64_t serial);

/* End it; what waits is not told. A reading that hangs is left to end by itself. */
void ml_view_reader_free(struct ml_view_reader *take_reader);

#endif
