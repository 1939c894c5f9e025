#include "client/unwind/internal.h"

enum { OWN_FRAMES_MAX = 64 }; /* between the interpreter and the hook's caller */

/* What a frame's pc is. */
enum pc_kind {
    PC_EXACT,   /* where execution stands: the interpreter's own, or what a signal interrupted */
    PC_RETURN,  /* a return address */
    PC_ON_STACK /* a return address that was loaded from just below the frame's sp */
};

struct interpreter {
    struct ml_unwind_walk *walk;
    struct ml_unwind_registers *now;
    struct ml_unwind_registers *next;
    enum pc_kind now_pc;
    enum pc_kind next_pc;
    uintptr_t floor; /* nothing below is read */
    uint64_t recipe; /* of the frame stepped out of */
    bool own;        /* still between the interpreter and the hook's caller */
};

static bool load_word(void *context, uintptr_t address, uint64_t *out_word) {
    struct interpreter *in = context;
    if (address < in->floor || address % ML_ARCH_WORD_BYTES != 0 ||
        !ml_unwind_range_reach(
            &in->walk->thread->ranges, in->walk->range, address, address + ML_ARCH_WORD_BYTES
        )) {
        return false;
    }
    *out_word = ml_unwind_load(address);
    return true;
}

static bool evaluate(
    struct interpreter *in, uintptr_t expression, const uint64_t *initial, uint64_t *out_value
) {
    struct ml_cfi_machine machine = {
        .registers = in->now->values,
        .known = in->now->known,
        .load = load_word,
        .context = in,
        .limit = in->walk->thread->image.cfi.segment_hi,
    };
    return ml_cfi_evaluate(&machine, expression, initial, out_value);
}

static bool is_known(const struct ml_unwind_registers *registers, uint64_t reg) {
    return reg < ML_ARCH_CFI_REGISTERS && (registers->known >> reg & 1) != 0;
}

static void set_register(struct ml_unwind_registers *registers, uint32_t reg, uint64_t value) {
    registers->values[reg] = value;
    registers->known |= UINT32_C(1) << reg;
}

static bool compute_cfa(struct interpreter *in, uint64_t *out_cfa) {
    const struct ml_cfi_row *row = &in->walk->thread->scratch.row;
    if (row->cfa.kind == ML_CFI_EXPRESSION) {
        return evaluate(in, row->cfa.value, NULL, out_cfa);
    }
    if (!is_known(in->now, row->cfa_register)) {
        return false;
    }
    *out_cfa = in->now->values[row->cfa_register] + row->cfa.value;
    return true;
}

/* One register of the calling frame. A rule that cannot be followed leaves it unknown: most
 * registers are never needed. */
static void step_register(struct interpreter *in, uint32_t reg, uint64_t cfa) {
    const struct ml_cfi_rule *rule = &in->walk->thread->scratch.row.registers[reg];
    uint64_t value = 0;
    bool known = false;
    switch ((enum ml_cfi_kind)rule->kind) {
    case ML_CFI_UNSPECIFIED:
        known = (ML_ARCH_CALLEE_SAVED >> reg & 1) != 0 && is_known(in->now, reg);
        value = in->now->values[reg];
        break;
    case ML_CFI_SAME:
        known = is_known(in->now, reg);
        value = in->now->values[reg];
        break;
    case ML_CFI_OFFSET:
        known = load_word(in, cfa + rule->value, &value);
        break;
    case ML_CFI_VAL_OFFSET:
        known = true;
        value = cfa + rule->value;
        break;
    case ML_CFI_REGISTER:
        known = is_known(in->now, rule->value);
        value = known ? in->now->values[rule->value] : 0;
        break;
    case ML_CFI_EXPRESSION:
        known = evaluate(in, rule->value, &cfa, &value) && load_word(in, value, &value);
        break;
    case ML_CFI_VAL_EXPRESSION:
        known = evaluate(in, rule->value, &cfa, &value);
        break;
    case ML_CFI_UNDEFINED:
        break;
    }
    if (known) {
        set_register(in->next, reg, value);
    }
}

/* Step by the row in scratch. */
static enum ml_unwind_outcome step_by_row(struct interpreter *in) {
    const struct ml_cfi_scratch *scratch = &in->walk->thread->scratch;
    const struct ml_cfi_rule *ra = &scratch->row.registers[ML_ARCH_RA];
    uint64_t cfa;
    if (ra->kind == ML_CFI_UNDEFINED) {
        return ML_UNWIND_ENDED;
    }
    if (!compute_cfa(in, &cfa)) {
        return ML_UNWIND_LOST;
    }
    in->next->known = 0;
    for (uint32_t reg = 0; reg < ML_ARCH_CFI_REGISTERS; reg++) {
        step_register(in, reg, cfa);
    }
    if (scratch->row.registers[ML_ARCH_SP].kind == ML_CFI_UNSPECIFIED) {
        set_register(in->next, ML_ARCH_SP, cfa);
    }
    const bool on_stack = ra->kind == ML_CFI_OFFSET && ra->value == (uint64_t)-ML_ARCH_WORD_BYTES &&
                          in->next->values[ML_ARCH_SP] == cfa;
    in->next_pc = scratch->signal_frame ? PC_EXACT : on_stack ? PC_ON_STACK : PC_RETURN;
    return is_known(in->next, ML_ARCH_RA) && is_known(in->next, ML_ARCH_SP) ? ML_UNWIND_NEXT
                                                                            : ML_UNWIND_LOST;
}

/* Step out of code that has no table. Its effect on the other registers is unknown. */
static enum ml_unwind_outcome step_by_frame_pointer(struct interpreter *in) {
    uint64_t fp = in->now->values[ML_ARCH_FP];
    uint64_t caller_fp;
    uint64_t pc;
    if (!is_known(in->now, ML_ARCH_FP)) {
        return ML_UNWIND_LOST;
    }
    if (fp == 0) {
        return ML_UNWIND_ENDED;
    }
    if (fp < in->now->values[ML_ARCH_SP] || !load_word(in, fp, &caller_fp) ||
        !load_word(in, fp + ML_ARCH_WORD_BYTES, &pc)) {
        return ML_UNWIND_LOST;
    }
    in->next->known = 0;
    set_register(in->next, ML_ARCH_FP, caller_fp);
    set_register(in->next, ML_ARCH_RA, pc);
    set_register(in->next, ML_ARCH_SP, fp + 2 * ML_ARCH_WORD_BYTES);
    in->next_pc = PC_ON_STACK;
    return ML_UNWIND_NEXT;
}

/* Step out of generated code that is about to return. Registers that it pops beside the frame
 * pointer are not followed. */
static enum ml_unwind_outcome step_by_code(struct interpreter *in) {
    const uint64_t cfa = in->now->values[ML_ARCH_SP] + ml_recipe_cfa_bytes(in->recipe);
    const uint64_t fp_words = ml_recipe_fp_words(in->recipe);
    uint64_t fp = in->now->values[ML_ARCH_FP];
    uint64_t pc;
    if (!load_word(in, cfa - ML_ARCH_WORD_BYTES, &pc) ||
        (fp_words != 0 && !load_word(in, cfa - fp_words * ML_ARCH_WORD_BYTES, &fp))) {
        return ML_UNWIND_LOST;
    }
    in->next->known = 0;
    if (fp_words != 0 || is_known(in->now, ML_ARCH_FP)) {
        set_register(in->next, ML_ARCH_FP, fp);
    }
    set_register(in->next, ML_ARCH_RA, pc);
    set_register(in->next, ML_ARCH_SP, cfa);
    in->next_pc = PC_ON_STACK;
    return ML_UNWIND_NEXT;
}

/* Fill `next` from `now`; the recipe (and module) of the frame in in->recipe. */
static enum ml_unwind_outcome step(struct interpreter *in) {
    struct ml_unwind_walk *walk = in->walk;
    struct ml_image *image = &walk->thread->image;
    uintptr_t pc = in->now->values[ML_ARCH_RA];
    const bool exact = in->now_pc == PC_EXACT;
    uintptr_t lookup = exact ? pc : pc - 1;
    uint32_t module_id = 0;
    bool has_row = false;
    bool has_image = ml_image_find(lookup, image);
    if (has_image) {
        module_id = in->own ? 0 : ml_modules_id(&walk->process->modules, image, walk->seen);
        has_row = ml_cfi_find_row(&image->cfi, lookup, &walk->thread->scratch);
    }
    uint64_t cold = ml_recipe_make(ML_RECIPE_COLD, 0, 0, module_id);
    if (!has_row) {
        in->recipe = exact       ? cold | ML_UNWIND_FRAME_EXACT
                     : has_image ? ml_unwind_rule_without_row(walk->thread, pc, module_id)
                                 : ml_unwind_rule_generated(walk->thread, pc);
        return ml_recipe_kind(in->recipe) == ML_RECIPE_END  ? ML_UNWIND_ENDED
               : ml_recipe_kind(in->recipe) == ML_RECIPE_SP ? step_by_code(in)
                                                            : step_by_frame_pointer(in);
    }
    in->recipe =
        in->now_pc == PC_ON_STACK ? ml_unwind_rule_of_row(&walk->thread->scratch, module_id) : cold;
    if (exact || walk->thread->scratch.signal_frame) {
        in->recipe |= ML_UNWIND_FRAME_EXACT;
    }
    return step_by_row(in);
}

/* Can the frame reached be a caller's? Behind a signal frame any stack is possible.
 */
static bool place_is_sane(struct interpreter *in) {
    struct ml_unwind_walk *walk = in->walk;
    uintptr_t sp = in->next->values[ML_ARCH_SP];
    const struct ml_unwind_range *range = &walk->thread->ranges.list[walk->range];
    if (sp % ML_ARCH_WORD_BYTES != 0) {
        return false;
    }
    if (sp > in->now->values[ML_ARCH_SP] && sp <= range->hi) {
        return true;
    }
    if (in->next_pc != PC_EXACT) {
        return sp > in->now->values[ML_ARCH_SP] &&
               ml_unwind_range_reach(
                   &walk->thread->ranges, walk->range, sp - ML_ARCH_WORD_BYTES, sp
               );
    }
    uint32_t other = ml_unwind_range_switch(&walk->thread->ranges, sp, sp + ML_ARCH_WORD_BYTES);
    walk->range = other < ML_UNWIND_RANGES ? other : walk->range;
    return other < ML_UNWIND_RANGES;
}

static void advance(struct interpreter *in) {
    struct ml_unwind_registers *old = in->now;
    in->now = in->next;
    in->next = old;
    in->now_pc = in->next_pc;
    in->floor = in->now->values[ML_ARCH_SP] - (in->now_pc == PC_EXACT ? ML_ARCH_RED_ZONE_BYTES : 0);
}

/* From the interpreter's own frame to the hook's caller, by the tables of our own code. */
static bool leave_own_frames(struct interpreter *in) {
    const struct ml_unwind_entry *entry = in->walk->entry;
    for (uint32_t i = 0; i < OWN_FRAMES_MAX; i++) {
        const uint64_t *values = in->now->values;
        if (values[ML_ARCH_SP] == entry->sp && values[ML_ARCH_RA] == entry->pc) {
            return is_known(in->now, ML_ARCH_FP) && values[ML_ARCH_FP] == entry->fp;
        }
        if (values[ML_ARCH_SP] >= entry->sp || step(in) != ML_UNWIND_NEXT || !place_is_sane(in)) {
            return false;
        }
        advance(in);
    }
    return false;
}

static void start_at_entry(struct interpreter *in) {
    const struct ml_unwind_entry *entry = in->walk->entry;
    in->now->known = 0;
    set_register(in->now, ML_ARCH_RA, entry->pc);
    set_register(in->now, ML_ARCH_SP, entry->sp);
    set_register(in->now, ML_ARCH_FP, entry->fp);
}

/* Tell the walk where the interpreter is. */
static void publish(struct interpreter *in) {
    in->walk->at.slot = in->now->values[ML_ARCH_SP] - ML_ARCH_WORD_BYTES;
    in->walk->at.pc = in->now->values[ML_ARCH_RA];
    in->walk->at.fp = is_known(in->now, ML_ARCH_FP) ? in->now->values[ML_ARCH_FP] : 0;
}

static enum ml_unwind_outcome walk_by_registers(struct interpreter *in) {
    struct ml_unwind_walk *walk = in->walk;
    while (walk->walked < ML_UNWIND_FULL_WALK_MAX) {
        publish(in);
        if (in->now->values[ML_ARCH_RA] == 0) {
            walk->end_slot = in->now_pc == PC_ON_STACK ? walk->at.slot : 0;
            return ML_UNWIND_ENDED;
        }
        if (in->now_pc == PC_ON_STACK && is_known(in->now, ML_ARCH_FP) && ml_unwind_join(walk)) {
            return ML_UNWIND_NEXT;
        }
        enum ml_unwind_outcome outcome = step(in);
        ml_unwind_note(walk, &walk->at, in->recipe);
        if (outcome != ML_UNWIND_NEXT) {
            return outcome;
        }
        if (!place_is_sane(in)) {
            return ML_UNWIND_LOST;
        }
        advance(in);
    }
    return ML_UNWIND_LOST;
}

__attribute__((noinline)) enum ml_unwind_outcome ml_unwind_full(struct ml_unwind_walk *walk) {
    struct interpreter in = {
        .walk = walk,
        .now = &walk->thread->registers[0],
        .next = &walk->thread->registers[1],
        .floor = (uintptr_t)__builtin_frame_address(0) - ML_ARCH_PAGE_BYTES,
        .now_pc = PC_EXACT,
        .own = true,
    };
    bool other_stack;
    in.now->known = ML_ARCH_CALLEE_SAVED | UINT32_C(1) << ML_ARCH_SP | UINT32_C(1) << ML_ARCH_RA;
    ml_arch_capture(in.now->values);
    walk->range =
        ml_unwind_range_enter(&walk->thread->ranges, in.now->values[ML_ARCH_SP], &other_stack);
    if (!leave_own_frames(&in)) {
        start_at_entry(&in);
    }
    in.own = false;
    in.now_pc = PC_ON_STACK;
    in.floor = walk->entry->sp;
    return walk_by_registers(&in);
}
