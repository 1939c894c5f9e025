/* libc's functions of bytes and texts, for libmemlog.so alone. Room: client (private). Context:
 * any.
 *
 * One rule: the library calls nobody else's. A sanitizer's run-time, or the program itself, may
 * stand in front of libc's with one that needs to be started first, or that counts. The linker
 * finds these, hidden, before any other. What the compiler does in line it still does. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A loop that copies or fills must not become a call of the function that it makes. clang is told
 * so by -fno-builtin alone. */
#if defined(__GNUC__) && !defined(__clang__)
#    pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

typedef unsigned char piece __attribute__((vector_size(16), aligned(1), may_alias));

enum {
    PIECE_BYTES = sizeof(piece),
    STRING_BYTES_MIN = 512 /* from here on the processor's own loop is the faster one */
};

void *memcpy(void *restrict to, const void *restrict from, size_t count) {
    void *at = to;
    const char *source = from;
    if (count < STRING_BYTES_MIN) {
        char *target = at;
        for (; count >= PIECE_BYTES; count -= PIECE_BYTES) {
            *(piece *)(void *)target = *(const piece *)(const void *)source;
            target += PIECE_BYTES;
            source += PIECE_BYTES;
        }
        at = target;
    }
    __asm__ volatile("rep movsb" : "+D"(at), "+S"(source), "+c"(count)::"memory");
    return to;
}

/* What the compiler makes of memcpy where it knows the room (_FORTIFY_SOURCE). */
void *__memcpy_chk(void *restrict to, const void *restrict from, size_t count, size_t room);
void *__memcpy_chk(void *restrict to, const void *restrict from, size_t count, size_t room) {
    if (count > room) {
        __builtin_trap();
    }
    return memcpy(to, from, count);
}

void *memmove(void *to, const void *from, size_t count) {
    if ((uintptr_t)to - (uintptr_t)from >= count) {
        /* Forwards, piece by piece: what is read lies at or behind what is written. */
        char *target = to;
        const char *source = from;
        for (; count >= PIECE_BYTES; count -= PIECE_BYTES) {
            *(piece *)(void *)target = *(const piece *)(const void *)source;
            target += PIECE_BYTES;
            source += PIECE_BYTES;
        }
        for (size_t i = 0; i < count; i++) {
            target[i] = source[i];
        }
        return to;
    }
    char *target = (char *)to;
    const char *source = from;
    for (; count >= PIECE_BYTES; count -= PIECE_BYTES) {
        *(piece *)(void *)(target + count - PIECE_BYTES) =
            *(const piece *)(const void *)(source + count - PIECE_BYTES);
    }
    for (; count > 0; count--) {
        target[count - 1] = source[count - 1];
    }
    return to;
}

void *memset(void *to, int value, size_t count) {
    void *at = to;
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(count) : "a"(value) : "memory");
    return to;
}

int memcmp(const void *one, const void *other, size_t count) {
    const unsigned char *a = one;
    const unsigned char *b = other;
    for (size_t i = 0; i < count; i++) {
        if (a[i] != b[i]) {
            return a[i] - b[i];
        }
    }
    return 0;
}

/* In parentheses what later libcs have macros of, as C23 wants them. */
void *(memchr)(const void *in, int wanted, size_t count) {
    const unsigned char *bytes = in;
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == (unsigned char)wanted) {
            return (void *)(uintptr_t)&bytes[i];
        }
    }
    return NULL;
}

size_t strlen(const char *text) {
    size_t count = 0;
    while (text[count] != 0) {
        count++;
    }
    return count;
}

int strncmp(const char *one, const char *other, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (one[i] != other[i] || one[i] == 0) {
            return (unsigned char)one[i] - (unsigned char)other[i];
        }
    }
    return 0;
}

int strcmp(const char *one, const char *other) {
    return strncmp(one, other, (size_t)-1);
}

char *(strchr)(const char *text, int wanted) {
    for (; *text != (char)wanted; text++) {
        if (*text == 0) {
            return NULL;
        }
    }
    return (char *)(uintptr_t)text;
}

char *(strrchr)(const char *text, int wanted) {
    const char *found = NULL;
    for (;; text++) {
        if (*text == (char)wanted) {
            found = text;
        }
        if (*text == 0) {
            return (char *)(uintptr_t)found;
        }
    }
}

size_t strcspn(const char *text, const char *stops) {
    size_t count = 0;
    while (text[count] != 0 && strchr(stops, text[count]) == NULL) {
        count++;
    }
    return count;
}

char *(strstr)(const char *text, const char *wanted) {
    const size_t count = strlen(wanted);
    for (; *text != 0 || count == 0; text++) {
        if (strncmp(text, wanted, count) == 0) {
            return (char *)(uintptr_t)text;
        }
    }
    return NULL;
}
