/* Why a program that was started is not recorded. Room: host. Context: right after an exec.
 *
 * One rule: the host parses no ELF. The mappings (/proc/PID/maps) and the file's mode tell enough.
 */
#ifndef MEMLOG_HOST_PROCESS_IMAGE_H
#define MEMLOG_HOST_PROCESS_IMAGE_H

#include <stdio.h>
#include <sys/types.h>

/* The kind of a new image. */
enum ml_image_kind {
    ML_IMAGE_PRELOADABLE = 0,
    ML_IMAGE_GONE,         /* it ended before the look */
    ML_IMAGE_STATIC,       /* no dynamic loader */
    ML_IMAGE_OTHER_LOADER, /* another libc's */
    ML_IMAGE_32_BIT,
    ML_IMAGE_SETUID,
    ML_IMAGE_UNREADABLE
};

/* In words, "statically linked: there is no dynamic loader that could load memlog". */
const char *ml_image_text(enum ml_image_kind kind);

/* From the text of /proc/PID/maps. ML_IMAGE_GONE when it holds no image (yet). */
enum ml_image_kind ml_image_from_maps(FILE *maps);

/* Look at a process that has just made its exec. Waits a few milliseconds at most for its mappings.
 */
enum ml_image_kind ml_image_look(pid_t pid);

/* The same without waiting: ML_IMAGE_GONE if it is not mapped yet. */
enum ml_image_kind ml_image_peek(pid_t pid);

#endif
