#include "tests/client/unwind/plugin.h"

/* Larger frames: a recipe of plugin_a.c is wrong here, at the same address. */
__attribute__((visibility("default"))) long
ml_plugin_run(ml_plugin_probe *probe, void *context, long depth) {
    __asm__ volatile("subq $0x200, %%rsp\n\t"
                     ".cfi_adjust_cfa_offset 0x200\n\t"
                     "movq %0, %%rdi\n\t"
                     "call *%1\n\t"
                     "addq $0x200, %%rsp\n\t"
                     ".cfi_adjust_cfa_offset -0x200"
                     :
                     : "r"(context), "r"(probe)
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    return depth;
}
