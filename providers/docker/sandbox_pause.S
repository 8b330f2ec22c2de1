# The sandbox's only process: holds the network namespace of a pod, reaps what is handed to it, ends on SIGTERM.
#
# x86_64 Linux, no libc. Process 1 ignores signals without a handler, so the three that matter are blocked and taken
# from the queue one by one. make_sandbox_pause.sh turns this file into sandbox_pause.inc.

    .set SYS_rt_sigprocmask, 14
    .set SYS_wait4, 61
    .set SYS_exit_group, 231
    .set SYS_rt_sigtimedwait, 128
    .set SIGNAL_MASK, (1 << (2 - 1)) | (1 << (15 - 1)) | (1 << (17 - 1))    # SIGINT, SIGTERM, SIGCHLD

    .text
    .globl _start
_start:
    push  $SIGNAL_MASK
    mov   %rsp, %rbx

    xor   %edi, %edi                # SIG_BLOCK
    mov   %rbx, %rsi
    xor   %edx, %edx
    push  $8                        # sizeof(kernel sigset_t)
    pop   %r10
    mov   $SYS_rt_sigprocmask, %eax
    syscall

wait_for_signal:
    mov   %rbx, %rdi
    xor   %esi, %esi                # no siginfo
    xor   %edx, %edx                # no time limit
    push  $8
    pop   %r10
    mov   $SYS_rt_sigtimedwait, %eax
    syscall
    cmp   $2, %eax
    je    leave
    cmp   $15, %eax
    je    leave

reap:
    or    $-1, %edi                 # any child
    movslq %edi, %rdi
    xor   %esi, %esi
    push  $1                        # WNOHANG
    pop   %rdx
    xor   %r10d, %r10d
    mov   $SYS_wait4, %eax
    syscall
    test  %eax, %eax
    jg    reap
    jmp   wait_for_signal

leave:
    xor   %edi, %edi
    mov   $SYS_exit_group, %eax
    syscall
