/* The functions that CPython runs on a thread, by its own records of them. Room: client
 * (private). Context: inside malloc, on that thread; no lock, no allocation, no system call.
 *
 * One rule: they are read only by the thread that holds the interpreter's lock, of its own calls.
 * Nobody else changes them then, and none of the objects goes. If something is not as it must be,
 * there are none.
 *
 * Python 3.11, 3.13 and 3.14 (docs/symbols.md). */
#ifndef MEMLOG_CLIENT_SCRIPTS_PYTHON_H
#define MEMLOG_CLIENT_SCRIPTS_PYTHON_H

#include <stdbool.h>
#include <stdint.h>

#include "client/scripts/python_layout.h"

enum {
    /* Of a deeper stack the outermost, a mark, and the innermost from a number on that is a
     * multiple of STEP, as the unwinder's: their nodes stay the same while a recursion goes up and
     * down. */
    ML_PYTHON_OUTER = 96,
    ML_PYTHON_INNER_MIN = 79,
    ML_PYTHON_STEP = 64,
    ML_PYTHON_FRAMES_MAX = ML_PYTHON_OUTER + 1 + ML_PYTHON_INNER_MIN + ML_PYTHON_STEP,
    ML_PYTHON_DEPTH_MAX = 1 << 16,                 /* of a deeper one nothing is said */
    ML_PYTHON_STEPS_MAX = ML_PYTHON_DEPTH_MAX * 3, /* with what is no function's */
    ML_PYTHON_TEXT_BYTES = 1000
};

/* The interpreter of the process; all 0: there is none. */
struct ml_python {
    const void *(*holder)(void
    );                        /* the state of the thread that holds the lock; NULL: nobody does */
    const void *(*own)(void); /* that of the calling thread; NULL: it has none */
    uintptr_t code_type;      /* the type of all code objects */
    struct ml_python_layout layout;
};

/* Find it in the executable, or in what it is linked with. False: there is none, or it is of
 * a version that is not read. Context: the start; nothing is loaded or unloaded. */
bool ml_python_find(struct ml_python *out_python);

struct ml_python_frame {
    const void *code;  /* code object; NULL: frames are left out here */
    const void *at;    /* the instruction; NULL: not known */
    uint64_t identity; /* tells that code object from another one that lay there before */
    uintptr_t place;   /* on the stack, within the frame of the C function that runs it */
};

/* The calling thread's, outermost first. Returns how many; 0: it runs none, or has let go of the
 * lock. */
uint32_t ml_python_stack(
    const struct ml_python *python, struct ml_python_frame out_frames[ML_PYTHON_FRAMES_MAX]
);

/* What it is called: "py::FUNCTION:FILE:LINE" in UTF-8, ended by a 0; without ":LINE" where the
 * instruction belongs to no line. Context: where the frame was read, at once. */
void ml_python_text(
    const struct ml_python *python,
    const struct ml_python_frame *frame,
    char out_text[ML_PYTHON_TEXT_BYTES]
);

#endif
