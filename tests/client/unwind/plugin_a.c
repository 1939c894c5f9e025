#include "tests/client/unwind/plugin.h"

/* Small frames. plugin_b.c is as long, instruction by instruction, with other frames. */
__attribute__((visibility("default"))) long
ml_plugin_run(ml_plugin_probe *probe, void *context, long depth) {
    __asm__ volatile("subq $0x100, %%rsp\n\t"
                     ".cfi_adjust_cfa_offset 0x100\n\t"
                     "movq %0, %%rdi\n\t"
                     "call *%1\n\t"
                     "addq $0x100, %%rsp\n\t"
                     ".cfi_adjust_cfa_offset -0x100"
                     :
                     : "r"(context), "r"(probe)
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    return depth;
}
