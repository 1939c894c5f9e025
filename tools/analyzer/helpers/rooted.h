/* Opens a path below another root, as a process there would, whatever links it has. Room: tools.
 * Context: any; may wait as long as the file system does.
 *
 * One rule: nothing outside of that root is reached. Whoever owns it may lead a link anywhere, also
 * to a file that its owner may not read, and may change it meanwhile. */
#ifndef MEMLOG_TOOLS_ANALYZER_HELPERS_ROOTED_H
#define MEMLOG_TOOLS_ANALYZER_HELPERS_ROOTED_H

/* O_PATH, so nothing happens to what lies there. -1: nothing does, errno says why. */
int ml_rooted_open(int root_fd, const char *path);

/* The same one component at a time, for kernels before 5.6, which have no openat2(2). */
int ml_rooted_walk(int root_fd, const char *path);

/* The topmost folder of a mount namespace, O_PATH, as its processes see it now. It is entered by a
 * process of its own: this one stays where it is. -1: it may not be entered. */
int ml_rooted_top(int space_fd);

/* A regular file for reading, by its O_PATH descriptor, which is closed. -1: it is no regular file,
 * or may not be read. Opening a device may have effects, and a FIFO may wait. */
int ml_rooted_read(int take_place_fd);

#endif
