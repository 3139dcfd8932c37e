// Fibers: stacks that the calling thread runs on in turn. Internal to the shim.
#ifndef SHIM_FIBER_H
#define SHIM_FIBER_H

namespace shim {

struct Fiber;

// A fiber that will call work() again and again, once for each time that fiber_leave_done() was
// answered by a new fiber_enter(). Its stack comes from a pool and goes back with fiber_give.
Fiber *fiber_take(void (*work)());
void fiber_give(Fiber *fiber);

// Forgets what the fiber was doing and gives it back.
void fiber_abandon(Fiber *fiber);

// From the caller's stack: goes on with the fiber until it leaves.
void fiber_enter(Fiber *fiber);

// From the stack of the fiber that runs: back to whoever entered it.
void fiber_leave();

} // namespace shim

#endif
