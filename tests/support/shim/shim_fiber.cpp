// Fibers: see shim_fiber.h. swapcontext asks the kernel for the signal mask each time; on x86-64 a
// dozen instructions do instead. QG_SHIM_UCONTEXT takes swapcontext there too.
#include "shim_fiber.h"

#include "shim_asan.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#if !defined(__x86_64__) && !defined(QG_SHIM_UCONTEXT)
#define QG_SHIM_UCONTEXT
#endif
#ifdef QG_SHIM_UCONTEXT
#include <ucontext.h>
#endif

namespace shim {

#ifdef SHIM_ASAN
static const size_t stack_bytes = 256 << 10;
#else
static const size_t stack_bytes = 64 << 10;
#endif

#ifdef QG_SHIM_UCONTEXT
typedef ucontext_t Context;
#else
typedef void *Context; // the stack pointer; the registers lie on the stack
#endif

struct Fiber {
    Context context;
    char *stack;
    void (*work)();
    void *fake_stack; // ASan's
};

// Never freed, as the fibers are not.
static std::vector<Fiber *> &idle = *new std::vector<Fiber *>();
static Fiber *running;
static Context caller;
#ifdef SHIM_ASAN
static void *caller_fake_stack;
static const void *caller_bottom;
static size_t caller_bytes;
#endif

#ifndef QG_SHIM_UCONTEXT
// Saves the registers that a call preserves and the stack pointer, and takes up the other's. A jump
// at the end, since a processor predicts that a ret goes back to where this call came from.
extern "C" void shim_switch(Context *save, Context load);
__asm__(".text\n"
        ".p2align 4\n"
        ".globl shim_switch\n"
        ".hidden shim_switch\n"
        ".type shim_switch, @function\n"
        "shim_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    popq %rcx\n"
        "    jmpq *%rcx\n"
        ".size shim_switch, .-shim_switch\n");
#endif

static void switch_context(Context *save, Context *load) {
#ifdef QG_SHIM_UCONTEXT
    swapcontext(save, load);
#else
    shim_switch(save, *load);
#endif
}

// Where a switch into the fiber arrived.
static void arrived() {
#ifdef SHIM_ASAN
    __sanitizer_finish_switch_fiber(running->fake_stack, &caller_bottom, &caller_bytes);
#endif
}

static void fiber_main() {
    arrived();
    for (;;) {
        running->work();
        fiber_leave();
    }
}

static void prepare(Fiber *fiber) {
#ifdef SHIM_ASAN
    __asan_unpoison_memory_region(fiber->stack, stack_bytes);
    fiber->fake_stack = nullptr;
#endif
#ifdef QG_SHIM_UCONTEXT
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = stack_bytes;
    fiber->context.uc_link = nullptr;
    makecontext(&fiber->context, fiber_main, 0);
#else
    // Six registers, the address that the switch returns to, and a null return address for it.
    uintptr_t *top = reinterpret_cast<uintptr_t *>(fiber->stack + stack_bytes) - 8;
    for (int i = 0; i < 8; i++)
        top[i] = 0;
    top[6] = reinterpret_cast<uintptr_t>(fiber_main);
    fiber->context = top;
#endif
}

// A stack with a page below it that nothing may touch, so that an overflow is a crash at once.
static char *new_stack() {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void *map = mmap(nullptr, page + stack_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED || mprotect(map, page, PROT_NONE) != 0) {
        std::perror("shim: stack of a fiber");
        std::abort();
    }
    return static_cast<char *>(map) + page;
}

// The pool is never freed: its size is that of the largest CTA.
Fiber *fiber_take(void (*work)()) {
    if (idle.empty()) {
        Fiber *fiber = new Fiber();
        fiber->stack = new_stack();
        prepare(fiber);
        idle.push_back(fiber);
    }
    Fiber *fiber = idle.back();
    idle.pop_back();
    fiber->work = work;
    return fiber;
}

void fiber_give(Fiber *fiber) { idle.push_back(fiber); }

void fiber_abandon(Fiber *fiber) {
    prepare(fiber);
    fiber_give(fiber);
}

void fiber_enter(Fiber *fiber) {
    running = fiber;
#ifdef SHIM_ASAN
    __sanitizer_start_switch_fiber(&caller_fake_stack, fiber->stack, stack_bytes);
#endif
    switch_context(&caller, &fiber->context);
#ifdef SHIM_ASAN
    __sanitizer_finish_switch_fiber(caller_fake_stack, nullptr, nullptr);
#endif
}

void fiber_leave() {
    Fiber *fiber = running;
#ifdef SHIM_ASAN
    __sanitizer_start_switch_fiber(&fiber->fake_stack, caller_bottom, caller_bytes);
#endif
    switch_context(&fiber->context, &caller);
    arrived();
}

} // namespace shim
