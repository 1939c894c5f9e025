#include "base/seccomp/filter.h"

#include <stdbool.h>
#include <string.h>

/* Registers of a filter at work. */
struct machine {
    uint32_t a, x;
    uint32_t memory[BPF_MEMWORDS];
};

static uint32_t compute(uint16_t operation, uint32_t a, uint32_t operand) {
    switch (operation) {
    case BPF_ADD:
        return a + operand;
    case BPF_SUB:
        return a - operand;
    case BPF_MUL:
        return a * operand;
    case BPF_DIV:
        return operand == 0 ? 0 : a / operand;
    case BPF_MOD:
        return operand == 0 ? 0 : a % operand;
    case BPF_OR:
        return a | operand;
    case BPF_AND:
        return a & operand;
    case BPF_XOR:
        return a ^ operand;
    case BPF_LSH:
        return operand < 32 ? a << operand : 0;
    case BPF_RSH:
        return operand < 32 ? a >> operand : 0;
    default: /* BPF_NEG */
        return 0 - a;
    }
}

static bool holds(uint16_t operation, uint32_t a, uint32_t operand) {
    switch (operation) {
    case BPF_JEQ:
        return a == operand;
    case BPF_JGT:
        return a > operand;
    case BPF_JGE:
        return a >= operand;
    default: /* BPF_JSET */
        return (a & operand) != 0;
    }
}

/* LD and LDX: the call's data, a constant, the filter's own memory. */
static uint32_t
load(const struct sock_filter *at, const struct machine *machine, const struct seccomp_data *call) {
    uint32_t word = 0;
    switch (BPF_MODE(at->code)) {
    case BPF_ABS:
        if (at->k <= sizeof(*call) - sizeof(word)) {
            memcpy(&word, (const uint8_t *)call + at->k, sizeof(word));
        }
        return word;
    case BPF_LEN:
        return sizeof(*call);
    case BPF_MEM:
        return machine->memory[at->k % BPF_MEMWORDS];
    default: /* BPF_IMM */
        return at->k;
    }
}

uint32_t
ml_filter_answer(const struct sock_filter *filter, size_t count, const struct seccomp_data *call) {
    struct machine machine = {0};
    /* Jumps go forward alone: it ends. */
    for (size_t i = 0; i < count; i++) {
        const struct sock_filter *at = &filter[i];
        const uint32_t operand = BPF_SRC(at->code) == BPF_X ? machine.x : at->k;
        switch (BPF_CLASS(at->code)) {
        case BPF_LD:
            machine.a = load(at, &machine, call);
            break;
        case BPF_LDX:
            machine.x = load(at, &machine, call);
            break;
        case BPF_ST:
            machine.memory[at->k % BPF_MEMWORDS] = machine.a;
            break;
        case BPF_STX:
            machine.memory[at->k % BPF_MEMWORDS] = machine.x;
            break;
        case BPF_ALU:
            machine.a = compute(BPF_OP(at->code), machine.a, operand);
            break;
        case BPF_JMP:
            if (BPF_OP(at->code) == BPF_JA) {
                i += at->k;
            } else {
                i += holds(BPF_OP(at->code), machine.a, operand) ? at->jt : at->jf;
            }
            break;
        case BPF_RET:
            return BPF_RVAL(at->code) == BPF_A ? machine.a : at->k;
        default: /* BPF_MISC */
            if (BPF_MISCOP(at->code) == BPF_TAX) {
                machine.x = machine.a;
            } else {
                machine.a = machine.x;
            }
            break;
        }
    }
    return SECCOMP_RET_KILL_PROCESS;
}
