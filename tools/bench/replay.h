/* What the ways to replay have in common. Room: tools (testonly). Context: one thread. */
#ifndef MEMLOG_TOOLS_BENCH_REPLAY_H
#define MEMLOG_TOOLS_BENCH_REPLAY_H

#include <stddef.h>
#include <stdint.h>

enum {
    REPLAY_READ_BYTES = 1 << 16, /* a read of the pipe */
    REPLAY_ROUND_BYTES = 1 << 18 /* read between two advances */
};

struct stream {
    uint8_t *bytes;
    size_t count, capacity;
    size_t untimed; /* bytes in front that are only there to begin with */
};

/* One line on stderr, and the end. */
_Noreturn void replay_die(const char *what);

void replay_append(struct stream *stream, const void *bytes, size_t count);

/* A file's bytes, behind what is there. */
void replay_read_file(struct stream *stream, const char *path);

/* Replay the files as the processes of one tree, all at the same time, by each of the numbers of
 * workers in `workers` ("1,2"), in turn. Answers the program's exit code. */
int replay_together(const char *workers, char *const *paths, unsigned paths_count, unsigned repeat);

/* How fast the files can be decoded, and decoded and put into a map of live blocks, with nothing
 * else done. Answers the program's exit code. */
int replay_floor(char *const *paths, unsigned paths_count, unsigned repeat);

/* How long a dump of so many processes, all as the file says, keeps their pipes waiting. Answers
 * the program's exit code. */
int replay_dump(const char *path, uint32_t processes, unsigned repeat);

#endif
