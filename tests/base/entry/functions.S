/* Functions with entries of every kind, which patched_test.c patches and runs. Each takes two integers, in %rdi and %rsi, and
 * returns one; each begins at a multiple of 16, and its padding is written out. Room: tests.
 *
 * The table has each one's address, size and name. They stand on pages of their own, since who patches a page may not
 * stand on it. */

    .macro function name
    .section patched, "ax", @progbits
    .balign 16, 0xcc
    .type \name, @function
\name:
    .endm

    .macro finish name
    .size \name, . - \name
    .section patched_names, "a", @progbits
9:  .asciz "\name"
    .section patched_table, "aw", @progbits
    .quad \name
    .quad 8f - \name
    .quad 9b
    .section patched, "ax", @progbits
8:
    .endm

    .section patched, "ax", @progbits
    .balign 4096

/* ---- what compilers write */

    function frame_pointer
    push %rbp
    mov %rsp, %rbp
    lea (%rdi, %rsi, 2), %rax
    pop %rbp
    ret
    finish frame_pointer

    function saves_registers
    push %r15
    push %r14
    push %rbx
    mov %rdi, %r15
    mov %rsi, %rbx
    lea 7(%r15, %rbx), %rax
    pop %rbx
    pop %r14
    pop %r15
    ret
    finish saves_registers

    function large_frame
    sub $0x1008, %rsp
    mov %rdi, (%rsp)
    mov (%rsp), %rax
    add $0x1008, %rsp
    ret
    finish large_frame

    function long_constant
    movabs $0x123456789abcdef0, %rax
    add %rdi, %rax
    ret
    finish long_constant

    function thread_local_word
    mov %fs:0, %rax
    xor %fs:0, %rax
    add %rdi, %rax
    ret
    finish thread_local_word

    function keeps_endbr64
    endbr64
    push %rbx
    mov %rdi, %rbx
    lea (%rbx, %rsi, 4), %rax
    pop %rbx
    ret
    finish keeps_endbr64

/* ---- operands that are relative to the instruction */

    function loads_relative
    mov patched_word(%rip), %rax
    add %rdi, %rax
    ret
    finish loads_relative

    function second_loads_relative
    push %rbx
    mov patched_word(%rip), %rbx
    lea (%rbx, %rdi), %rax
    pop %rbx
    ret
    finish second_loads_relative

    function compares_relative
    cmpl $77, patched_word(%rip)
    sete %al
    movzbl %al, %eax
    add %rdi, %rax
    ret
    finish compares_relative

    function stores_relative
    movl $77, patched_word+8(%rip)
    movslq patched_word+8(%rip), %rax
    add %rdi, %rax
    ret
    finish stores_relative

    function vector_relative
    movdqu patched_word(%rip), %xmm0
    movq %xmm0, %rax
    add %rdi, %rax
    ret
    finish vector_relative

    function address_of_itself
    lea address_of_itself(%rip), %rax
    lea frame_pointer(%rip), %rcx
    sub %rcx, %rax
    ret
    finish address_of_itself

/* ---- branches among the first instructions */

    function branches_short
    test %rdi, %rdi
    je 1f
    lea 1(%rdi), %rax
    ret
1:  mov $77, %eax
    ret
    finish branches_short

    function branches_long
    cmp %rsi, %rdi
    .byte 0x0f, 0x8d /* jge, in its long form */
    .long 1f - . - 4
    lea 1(%rdi), %rax
    ret
1:  mov $78, %eax
    ret
    finish branches_long

    .macro condition cc
    function branches_on_\cc
    cmp %rsi, %rdi
    j\cc 1f
    lea 2(%rdi), %rax
    ret
1:  lea 1000(%rsi), %rax
    ret
    finish branches_on_\cc
    .endm
    .irp cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
    condition \cc
    .endr

    function branches_twice
    jo 1f
    jno 1f
    ud2
1:  lea 3(%rdi), %rax
    ret
    finish branches_twice

    function skips_a_lock
    test %edi, %edi
    je 1f
    .byte 0xf0
1:  incl patched_word+16(%rip)
    mov %rdi, %rax
    ret
    finish skips_a_lock

    function loops_in_its_first_bytes
    dec %rdi
    jns loops_in_its_first_bytes
    mov %rdi, %rax
    ret
    finish loops_in_its_first_bytes

    function loops_behind_endbr64
    endbr64
    dec %rdi
    jns loops_behind_endbr64
    mov %rdi, %rax
    ret
    finish loops_behind_endbr64

    function loops_behind_the_moved_bytes
    xor %eax, %eax
    mov %rdi, %rcx
1:  add %rsi, %rax
    dec %rcx
    jns 1b
    ret
    finish loops_behind_the_moved_bytes

/* ---- functions that are one jump */

    function jumps_on
    .byte 0xe9
    .long frame_pointer - . - 4
    finish jumps_on

    function jumps_on_short
    jmp 1f
    .balign 16, 0x90
1:  lea 5(%rdi), %rax
    ret
    finish jumps_on_short

    function jumps_through_a_pointer
    jmp *patched_pointer(%rip)
    finish jumps_through_a_pointer

    function jumps_on_behind_endbr64
    endbr64
    .byte 0xe9
    .long frame_pointer - . - 4
    finish jumps_on_behind_endbr64

/* ---- functions that are shorter than the jump, with padding */

    function short_before_nops
    mov %edi, %eax
    ret
    finish short_before_nops
    .nops 13

    function short_before_breakpoints
    mov %esi, %eax
    ret
    finish short_before_breakpoints
    .fill 13, 1, 0xcc

/* ---- calls among the first bytes: what they return to is where it was */

    function passes_on
    sub $8, %rsp
    call frame_pointer
    add $8, %rsp
    ret
    finish passes_on

    function calls_first
    call frame_pointer
    lea 3(%rax), %rax
    ret
    finish calls_first

    function calls_by_memory
    push %rbx
    call *patched_pointer(%rip)
    pop %rbx
    ret
    finish calls_by_memory

    function asks_where_it_is
    call 1f
2:  lea 2b(%rip), %rcx
    sub %rcx, %rax
    ret
1:  mov (%rsp), %rax
    ret
    finish asks_where_it_is

/* ---- what goes on behind the first bytes */

    function calls_itself
    push %rbx
    mov %rdi, %rbx
    xor %eax, %eax
    test $7, %bl
    je 1f
    lea -1(%rbx), %rdi
    call calls_itself
1:  lea 1(%rax), %rax
    pop %rbx
    ret
    finish calls_itself

    function has_a_cold_part
    test %rdi, %rdi
    js 2f
    lea 9(%rdi), %rax
1:  ret
    finish has_a_cold_part
    .balign 16, 0xcc
2:  mov $99, %eax
    jmp 1b

    .balign 4096, 0xcc

    .section .data.rel.local, "aw", @progbits
    .balign 8
patched_pointer:
    .quad frame_pointer

    .data
    .globl patched_word
    .hidden patched_word
    .balign 16
patched_word:
    .quad 77, 0, 0

    .section .note.GNU-stack, "", @progbits
