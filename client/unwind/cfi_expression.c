#include "client/unwind/cfi_internal.h"

/* DWARF 5, 7.7.1: the operations that make sense in a frame table. */
enum {
    OP_ADDR = 0x03,
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S = 0x09,
    OP_CONST2U = 0x0a,
    OP_CONST2S = 0x0b,
    OP_CONST4U = 0x0c,
    OP_CONST4S = 0x0d,
    OP_CONST8U = 0x0e,
    OP_CONST8S = 0x0f,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_DUP = 0x12,
    OP_DROP = 0x13,
    OP_OVER = 0x14,
    OP_PICK = 0x15,
    OP_SWAP = 0x16,
    OP_ROT = 0x17,
    OP_ABS = 0x19,
    OP_AND = 0x1a,
    OP_DIV = 0x1b,
    OP_MINUS = 0x1c,
    OP_MOD = 0x1d,
    OP_MUL = 0x1e,
    OP_NEG = 0x1f,
    OP_NOT = 0x20,
    OP_OR = 0x21,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_SHR = 0x25,
    OP_SHRA = 0x26,
    OP_XOR = 0x27,
    OP_BRA = 0x28,
    OP_EQ = 0x29,
    OP_GE = 0x2a,
    OP_GT = 0x2b,
    OP_LE = 0x2c,
    OP_LT = 0x2d,
    OP_NE = 0x2e,
    OP_SKIP = 0x2f,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    OP_DEREF_SIZE = 0x94,
    OP_NOP = 0x96
};

struct machine {
    const struct ml_cfi_machine *outside;
    struct ml_cfi_cursor cursor;
    uintptr_t begin; /* of the operations: a branch may not leave them */
    uint32_t depth;
    uint64_t stack[ML_CFI_EXPRESSION_DEPTH];
};

static void push(struct machine *machine, uint64_t value) {
    if (machine->depth == ML_CFI_EXPRESSION_DEPTH) {
        machine->cursor.failed = true;
        return;
    }
    machine->stack[machine->depth++] = value;
}

static uint64_t pop(struct machine *machine) {
    if (machine->depth == 0) {
        machine->cursor.failed = true;
        return 0;
    }
    return machine->stack[--machine->depth];
}

static void pick(struct machine *machine, uint64_t index) {
    if (index >= machine->depth) {
        machine->cursor.failed = true;
        return;
    }
    push(machine, machine->stack[machine->depth - 1 - index]);
}

static void push_register(struct machine *machine, uint64_t reg, uint64_t offset) {
    if (reg >= ML_ARCH_CFI_REGISTERS || (machine->outside->known >> reg & 1) == 0) {
        machine->cursor.failed = true;
        return;
    }
    push(machine, machine->outside->registers[reg] + offset);
}

static void deref(struct machine *machine, uint64_t bytes) {
    uint64_t word = 0;
    uint64_t address = pop(machine);
    if (machine->cursor.failed || (bytes != 8 && bytes != 4 && bytes != 2 && bytes != 1) ||
        !machine->outside->load(machine->outside->context, address, &word)) {
        machine->cursor.failed = true;
        return;
    }
    push(machine, bytes == 8 ? word : word & ((UINT64_C(1) << (8 * bytes)) - 1));
}

static void branch(struct machine *machine, bool taken) {
    int64_t distance = (int16_t)ml_cfi_fixed(&machine->cursor, 2);
    uintptr_t target = machine->cursor.pos + (uintptr_t)distance;
    if (!taken) {
        return;
    }
    if (target < machine->begin || target > machine->cursor.end) {
        machine->cursor.failed = true;
        return;
    }
    machine->cursor.pos = target;
}

/* Pushes of constants and registers. Returns false for any other operation. */
static bool apply_push(struct machine *machine, uint8_t op) {
    struct ml_cfi_cursor *cursor = &machine->cursor;
    if (op >= OP_LIT0 && op <= OP_LIT31) {
        push(machine, (uint64_t)(op - OP_LIT0));
        return true;
    }
    if (op >= OP_BREG0 && op <= OP_BREG31) {
        push_register(machine, (uint64_t)(op - OP_BREG0), (uint64_t)ml_cfi_sleb(cursor));
        return true;
    }
    switch (op) {
    case OP_ADDR:
    case OP_CONST8U:
    case OP_CONST8S:
        push(machine, ml_cfi_fixed(cursor, 8));
        return true;
    case OP_CONST1U:
        push(machine, ml_cfi_fixed(cursor, 1));
        return true;
    case OP_CONST1S:
        push(machine, (uint64_t)(int8_t)ml_cfi_fixed(cursor, 1));
        return true;
    case OP_CONST2U:
        push(machine, ml_cfi_fixed(cursor, 2));
        return true;
    case OP_CONST2S:
        push(machine, (uint64_t)(int16_t)ml_cfi_fixed(cursor, 2));
        return true;
    case OP_CONST4U:
        push(machine, ml_cfi_fixed(cursor, 4));
        return true;
    case OP_CONST4S:
        push(machine, (uint64_t)(int32_t)ml_cfi_fixed(cursor, 4));
        return true;
    case OP_CONSTU:
        push(machine, ml_cfi_uleb(cursor));
        return true;
    case OP_CONSTS:
        push(machine, (uint64_t)ml_cfi_sleb(cursor));
        return true;
    case OP_BREGX: {
        uint64_t reg = ml_cfi_uleb(cursor);
        push_register(machine, reg, (uint64_t)ml_cfi_sleb(cursor));
        return true;
    }
    default:
        return false;
    }
}

/* Operations on the top of the stack, and branches. Returns false for any other. */
static bool apply_stack(struct machine *machine, uint8_t op) {
    struct ml_cfi_cursor *cursor = &machine->cursor;
    uint64_t a;
    uint64_t b;
    uint64_t c;
    switch (op) {
    case OP_DEREF:
        deref(machine, 8);
        return true;
    case OP_DEREF_SIZE:
        deref(machine, ml_cfi_fixed(cursor, 1));
        return true;
    case OP_DUP:
        pick(machine, 0);
        return true;
    case OP_OVER:
        pick(machine, 1);
        return true;
    case OP_PICK:
        pick(machine, ml_cfi_fixed(cursor, 1));
        return true;
    case OP_DROP:
        (void)pop(machine);
        return true;
    case OP_SWAP:
        a = pop(machine);
        b = pop(machine);
        push(machine, a);
        push(machine, b);
        return true;
    case OP_ROT:
        a = pop(machine);
        b = pop(machine);
        c = pop(machine);
        push(machine, a);
        push(machine, c);
        push(machine, b);
        return true;
    case OP_ABS:
        a = pop(machine);
        push(machine, (int64_t)a < 0 ? 0 - a : a);
        return true;
    case OP_NEG:
        push(machine, 0 - pop(machine));
        return true;
    case OP_NOT:
        push(machine, ~pop(machine));
        return true;
    case OP_PLUS_UCONST:
        a = pop(machine);
        push(machine, a + ml_cfi_uleb(cursor));
        return true;
    case OP_SKIP:
        branch(machine, true);
        return true;
    case OP_BRA:
        branch(machine, pop(machine) != 0);
        return true;
    case OP_NOP:
        return true;
    default:
        return false;
    }
}

static uint64_t divide(struct machine *machine, uint64_t a, uint64_t b) {
    if (b == 0 || (a == (uint64_t)INT64_MIN && b == UINT64_MAX)) {
        machine->cursor.failed = true;
        return 0;
    }
    return (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t shift_right_signed(uint64_t a, uint64_t b) {
    uint64_t sign = (int64_t)a < 0 ? UINT64_MAX : 0;
    return b == 0 ? a : b > 63 ? sign : a >> b | sign << (64 - b);
}

/* Operations on two values; anything unknown fails. */
static uint64_t binary(struct machine *machine, uint8_t op, uint64_t a, uint64_t b) {
    switch (op) {
    case OP_AND:
        return a & b;
    case OP_DIV:
        return divide(machine, a, b);
    case OP_MINUS:
        return a - b;
    case OP_MOD:
        machine->cursor.failed = machine->cursor.failed || b == 0;
        return b == 0 ? 0 : a % b;
    case OP_MUL:
        return a * b;
    case OP_OR:
        return a | b;
    case OP_PLUS:
        return a + b;
    case OP_SHL:
        return b > 63 ? 0 : a << b;
    case OP_SHR:
        return b > 63 ? 0 : a >> b;
    case OP_SHRA:
        return shift_right_signed(a, b);
    case OP_XOR:
        return a ^ b;
    case OP_EQ:
        return a == b;
    case OP_GE:
        return (int64_t)a >= (int64_t)b;
    case OP_GT:
        return (int64_t)a > (int64_t)b;
    case OP_LE:
        return (int64_t)a <= (int64_t)b;
    case OP_LT:
        return (int64_t)a < (int64_t)b;
    case OP_NE:
        return a != b;
    default:
        machine->cursor.failed = true;
        return 0;
    }
}

bool ml_cfi_evaluate(
    const struct ml_cfi_machine *outside,
    uintptr_t address,
    const uint64_t *initial,
    uint64_t *out_value
) {
    struct machine machine = {.outside = outside};
    struct ml_cfi_cursor *cursor = &machine.cursor;
    *cursor = ml_cfi_cursor_make(address, outside->limit);
    uint64_t bytes = ml_cfi_uleb(cursor);
    if (cursor->failed || bytes > cursor->end - cursor->pos) {
        return false;
    }
    machine.begin = cursor->pos;
    cursor->end = cursor->pos + bytes;
    if (initial != NULL) {
        push(&machine, *initial);
    }
    for (uint32_t steps = 0; cursor->pos < cursor->end; steps++) {
        uint8_t op = (uint8_t)ml_cfi_fixed(cursor, 1);
        if (!apply_push(&machine, op) && !apply_stack(&machine, op)) {
            uint64_t b = pop(&machine);
            uint64_t a = pop(&machine);
            push(&machine, binary(&machine, op, a, b));
        }
        if (cursor->failed || steps == ML_CFI_EXPRESSION_STEPS) {
            return false;
        }
    }
    *out_value = pop(&machine);
    return !cursor->failed;
}
