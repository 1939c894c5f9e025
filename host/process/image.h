/* Why a program that was started does not come under memlog. Room: host. Context: right after an
 * exec.
 *
 * One rule: the host parses no ELF. What the kernel has mapped (/proc/PID/maps) and the file's mode
 * tell enough. */
#ifndef MEMLOG_HOST_PROCESS_IMAGE_H
#define MEMLOG_HOST_PROCESS_IMAGE_H

#include <stdio.h>
#include <sys/types.h>

/* What a look at a fresh image tells. */
enum ml_image_kind {
    ML_IMAGE_PRELOADABLE = 0,
    ML_IMAGE_GONE,         /* it ended before it could be looked at */
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

/* Look at a process that has just made its exec; waits a few milliseconds at most for the kernel to
 * have it mapped. */
enum ml_image_kind ml_image_look(pid_t pid);

/* The same without waiting: ML_IMAGE_GONE where it is not mapped yet. */
enum ml_image_kind ml_image_peek(pid_t pid);

#endif
