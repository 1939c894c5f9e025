/* Where an interpreter of CPython keeps what is read of it. Room: client (private). Context: any.
 *
 * One rule: from 3.13 on the interpreter says it itself, in a table at the start of its state. If
 * anything of it is odd, it is not read. */
#ifndef MEMLOG_CLIENT_SCRIPTS_PYTHON_LAYOUT_H
#define MEMLOG_CLIENT_SCRIPTS_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* How a function's record tells where a call of the evaluator begins. */
enum ml_python_calls {
    ML_PYTHON_CALLS_APART, /* each call has a record of its own, and its first function a mark */
    ML_PYTHON_CALLS_AMONG  /* a record that is no function's lies among the others */
};

/* Offsets, in bytes. */
struct ml_python_layout {
    enum ml_python_calls calls;
    uint16_t state_current;  /* of a thread's state: the innermost call's, or function's, record */
    uint16_t state_compiled; /* not NULL: the innermost call runs machine code; 0: no field */
    uint16_t frame_code;
    uint16_t frame_previous;
    uint16_t frame_instruction;
    uint16_t frame_owner; /* ML_PYTHON_CALLS_APART: the mark */
    uint16_t object_type;
    uint16_t object_size;
    uint16_t code_first_line;
    uint16_t code_file;
    uint16_t code_function; /* the qualified name */
    uint16_t code_lines;
    uint16_t code_first_traceable; /* of ML_PYTHON_CALLS_AMONG alone */
    uint16_t code_instructions;
    uint16_t bytes_data;
    uint16_t text_length;
    uint16_t text_hash;
    uint16_t text_state;
    uint16_t text_ascii_data;
    uint16_t text_data;
    uint32_t text_bits; /* of a text's state: those that are set where it can be read */
    uintptr_t tags;     /* bits of frame_code that are not of the address */
};

enum { ML_PYTHON_OFFSETS_BYTES = 81 * 8 /* of the table, as much as is read */ };

/* Of the version in Py_Version. `offsets`: the table, of 3.13 or later. `compiles`: whether the
 * interpreter can make machine code. False: it is not read. */
bool ml_python_layout_of(
    uint32_t version, const void *offsets, bool compiles, struct ml_python_layout *out_layout
);

#endif
