#include "client/unwind/internal.h"

/* Code without a table is assumed to keep frame pointers: rbp points at the caller's rbp, the
 * return address lies above it. */
static uint64_t frame_pointer_recipe(uint32_t module_id) {
    return ml_recipe_make(ML_RECIPE_FP, 2, 2, module_id);
}

uint64_t ml_unwind_rule_without_row(
    const struct ml_unwind_thread *thread, uintptr_t pc, uint32_t module_id
) {
    return ml_cfi_starts_function(&thread->image.cfi, pc)
               ? ml_recipe_make(ML_RECIPE_END, 0, 0, module_id)
               : frame_pointer_recipe(module_id);
}

static bool is_word_offset(uint64_t value, uint64_t max_words) {
    return value % ML_ARCH_WORD_BYTES == 0 && value / ML_ARCH_WORD_BYTES <= max_words;
}

uint64_t ml_unwind_rule_of_row(const struct ml_cfi_scratch *scratch, uint32_t module_id) {
    const struct ml_cfi_row *row = &scratch->row;
    const struct ml_cfi_rule *ra = &row->registers[ML_ARCH_RA];
    const struct ml_cfi_rule *fp = &row->registers[ML_ARCH_FP];
    uint64_t cold = ml_recipe_make(ML_RECIPE_COLD, 0, 0, module_id);
    if (scratch->signal_frame) {
        return cold;
    }
    if (ra->kind == ML_CFI_UNDEFINED) {
        return ml_recipe_make(ML_RECIPE_END, 0, 0, module_id);
    }
    bool by_sp = row->cfa_register == ML_ARCH_SP;
    if (row->cfa.kind != ML_CFI_OFFSET || (!by_sp && row->cfa_register != ML_ARCH_FP) ||
        !is_word_offset(row->cfa.value, ML_RECIPE_CFA_WORDS_MAX) || row->cfa.value == 0 ||
        ra->kind != ML_CFI_OFFSET || ra->value != (uint64_t)-ML_ARCH_WORD_BYTES ||
        row->registers[ML_ARCH_SP].kind != ML_CFI_UNSPECIFIED) {
        return cold;
    }
    uint64_t fp_below = 0;
    if (fp->kind == ML_CFI_OFFSET) {
        fp_below = 0 - fp->value;
        if (!is_word_offset(fp_below, ML_RECIPE_FP_WORDS_MAX) || fp_below <= ML_ARCH_WORD_BYTES) {
            return cold;
        }
    } else if (fp->kind != ML_CFI_UNSPECIFIED && fp->kind != ML_CFI_SAME) {
        return cold;
    }
    return ml_recipe_make(
        by_sp ? ML_RECIPE_SP : ML_RECIPE_FP,
        row->cfa.value / ML_ARCH_WORD_BYTES,
        fp_below / ML_ARCH_WORD_BYTES,
        module_id
    );
}

uint64_t ml_unwind_rule(struct ml_unwind_walk *walk) {
    struct ml_image *image = &walk->thread->image;
    if (!ml_image_find(walk->at.pc - 1, image)) {
        /* Never cached: a module may replace generated code later, without a dlclose that tells of
         * it. */
        return ml_unwind_rule_generated(walk->thread, walk->at.pc);
    }
    uint32_t module_id = ml_modules_id(&walk->process->modules, image, walk->seen);
    uint64_t recipe = ml_cfi_find_row(&image->cfi, walk->at.pc - 1, &walk->thread->scratch)
                          ? ml_unwind_rule_of_row(&walk->thread->scratch, module_id)
                          : ml_unwind_rule_without_row(walk->thread, walk->at.pc, module_id);
    if (walk->reuse) {
        ml_recipes_put(
            &walk->process->recipes,
            walk->at.pc,
            walk->unloads >> ML_UNWIND_GENERATION_SHIFT,
            recipe
        );
    }
    return recipe;
}
