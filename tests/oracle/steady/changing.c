/* A program that changes the first bytes of its own malloc once, when another's code comes into it:
 * as one that patches itself, or loads another library there, in the moment between a look at its
 * code and a jump into it.
 *
 * Says "ready"; once it has changed, it allocates all the time, and goes on until it is killed. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ROOM_BYTES = 1 << 20, MAPS_BYTES = 1 << 16, PAGE_BYTES = 4096 };

void *own_malloc(size_t size_bytes);
void *malloc(size_t size_bytes);
void free(void *address);
void *calloc(size_t count, size_t size_bytes);
void *realloc(void *address, size_t size_bytes);
extern unsigned char malloc_code[];

/* The number in its first instruction means nothing. */
__asm__(".text\n"
        ".globl malloc\n"
        ".type malloc, @function\n"
        ".p2align 4\n"
        "malloc:\n"
        "malloc_code:\n"
        "mov $1, %eax\n"
        "jmp own_malloc\n"
        ".size malloc, . - malloc\n");

__attribute__((used)) void *own_malloc(size_t size_bytes) {
    static _Alignas(16) unsigned char room[ROOM_BYTES];
    static size_t used;
    used = used + size_bytes + 64 > sizeof(room) ? 0 : used;
    void *address = room + used;
    used += (size_bytes + 15) & ~(size_t)15;
    return address;
}

__attribute__((noinline)) void free(void *address) {
    static void *freed[2];
    freed[1] = freed[0];
    freed[0] = address;
}

__attribute__((noinline)) void *calloc(size_t count, size_t size_bytes) {
    return memset(malloc(count * size_bytes), 0, count * size_bytes);
}

__attribute__((noinline)) void *realloc(void *address, size_t size_bytes) {
    void *moved = malloc(size_bytes);
    return address != NULL ? memmove(moved, address, size_bytes) : moved;
}

static void pause_us(long count) {
    const struct timespec pause = {.tv_nsec = count * 1000};
    (void)nanosleep(&pause, NULL);
}

/* Code that is of no file. */
static bool is_another_there(void) {
    static char text[MAPS_BYTES];
    size_t used = 0;
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t got = 1; fd >= 0 && got > 0 && used + 1 < sizeof(text); used += (size_t)got) {
        got = read(fd, text + used, sizeof(text) - 1 - used);
        got = got > 0 ? got : 0;
    }
    text[used] = '\0';
    (void)close(fd);
    return strstr(text, " r-xp 00000000 00:00 0 \n") != NULL;
}

/* Code is not left writable: memlog plans nothing in what is. */
static bool change(void) {
    unsigned char *const code = malloc_code;
    unsigned char *const page = code - (uintptr_t)code % PAGE_BYTES;
    if (mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        return false;
    }
    code[1]++;
    return mprotect(page, PAGE_BYTES, PROT_READ | PROT_EXEC) == 0;
}

int main(void) {
    (void)!write(1, "ready\n", 6);
    while (!is_another_there()) {
        pause_us(50);
    }
    if (!change()) {
        return 1;
    }
    for (;;) {
        free(malloc(100));
        pause_us(1000);
    }
}
