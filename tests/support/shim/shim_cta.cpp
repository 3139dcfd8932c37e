// Runs one CTA: its threads take turns as fibers, and the sets of threads that wait are bit masks,
// a word per warp.
#include "shim_fiber.h"
#include "shim_state.h"

namespace shim {

static const unsigned max_warps = 32;

// Where a thread waits, and for what.
struct Thread {
    uint3 index;
    Fiber *fiber; // null before the first turn and after the end
    Warp_op op;
    int line, width;
    unsigned mask, operand;
    uint64_t value, result;
};

// Each existing lane is in one of the four sets, the lane that has its turn in none.
struct Warp {
    unsigned exist, ready, at_barrier, in_exchange, ended;
};

static const char *const op_names[] = {
    "__syncwarp",        "__shfl_sync",       "__shfl_up_sync",    "__shfl_down_sync",
    "__shfl_xor_sync",   "__ballot_sync",     "__any_sync",        "__all_sync",
    "__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync", "__reduce_and_sync",
    "__reduce_or_sync",  "__reduce_xor_sync",
};

Indices indices;

static const Launch *job;
static unsigned warp_count;
static Warp warps[max_warps];
static Thread threads[max_warps * 32];
static unsigned self; // the thread that has its turn
static bool faulty;
static Random dice;

static unsigned bit(unsigned lane) { return 1u << lane; }
static Warp &own_warp() { return warps[self / 32]; }
static Thread *lanes_of(unsigned warp) { return threads + 32 * warp; }

// ---- Faults

static void report(unsigned thread, const std::string &what) {
    faulty = true;
    add_fault(format("kernel %s, CTA %s, thread %s: ", job->name, triple(indices.block).c_str(),
                     triple(threads[thread].index).c_str()) +
              what);
}

// Never taken up again: run_cta abandons the fiber. Nothing that owns memory may be left on its
// stack.
void fail(std::string what) {
    report(self, what);
    std::string().swap(what);
    for (;;)
        fiber_leave();
}

static std::string waits_at(const Thread &thread) {
    return format("waits at %s(0x%08x) of line %d", op_names[static_cast<int>(thread.op)],
                  thread.mask, thread.line);
}

static std::string state_of(unsigned warp, unsigned lane) {
    const Warp &w = warps[warp];
    const Thread &thread = lanes_of(warp)[lane];
    if (!(w.exist & bit(lane)))
        return "does not exist";
    if (w.ended & bit(lane))
        return "has ended";
    if (w.at_barrier & bit(lane))
        return format("waits at __syncthreads of line %d", thread.line);
    return waits_at(thread);
}

// ---- Stops, on the stack of the thread

static void wait_in(unsigned *set) {
    *set |= bit(self % 32);
    fiber_leave();
}

void barrier(int line) {
    threads[self].line = line;
    wait_in(&own_warp().at_barrier);
}

// The lane that a shuffle reads, as the PTX manual defines shfl: 5 bits of the operand, the lane's
// own value where the other is beyond its segment of width lanes.
static unsigned source_lane(const Thread &thread, unsigned lane) {
    unsigned segment = 32 - static_cast<unsigned>(thread.width); // bits that stay
    unsigned operand = thread.operand & 31;
    unsigned first = lane & segment, last = first | (31 & ~segment);
    switch (thread.op) {
    case Warp_op::idx: return first | (operand & ~segment);
    case Warp_op::up: return lane >= first + operand ? lane - operand : lane;
    case Warp_op::down: return lane + operand <= last ? lane + operand : lane;
    default: return (lane ^ operand) <= last ? lane ^ operand : lane;
    }
}

static bool is_shuffle(Warp_op op) { return op >= Warp_op::idx && op <= Warp_op::xor_; }

static uint64_t combine(Warp_op op, uint64_t a, uint64_t b) {
    switch (op) {
    case Warp_op::add: return (a + b) & 0xffffffff;
    case Warp_op::min: return a < b ? a : b;
    case Warp_op::max: return a < b ? b : a;
    case Warp_op::and_: return a & b;
    case Warp_op::all: return a & b;
    case Warp_op::xor_all: return a ^ b;
    default: return a | b;
    }
}

// What a vote or a reduction gives all lanes of the mask.
static uint64_t common_result(const Thread *lanes, Warp_op op, unsigned mask) {
    uint64_t result = 0;
    bool first = true;
    for (unsigned left = mask; left; left &= left - 1) {
        unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
        uint64_t value = op == Warp_op::ballot ? lanes[lane].value << lane : lanes[lane].value;
        result = first ? value : combine(op, result, value);
        first = false;
    }
    return result;
}

// Every lane of the mask gave its value: the results, and all of them are ready.
static void finish_exchange(Warp &warp, Thread *lanes, Warp_op op, unsigned mask) {
    bool shuffle = is_shuffle(op);
    uint64_t common = shuffle ? 0 : common_result(lanes, op, mask);
    for (unsigned left = mask; left; left &= left - 1) {
        unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
        lanes[lane].result = common;
        if (!shuffle)
            continue;
        unsigned source = source_lane(lanes[lane], lane);
        if (!(mask & bit(source)))
            report(self / 32 * 32 + lane,
                   format("%s of line %d reads lane %u, which is not in the mask 0x%08x",
                          op_names[static_cast<int>(op)], lanes[lane].line, source, mask));
        lanes[lane].result = lanes[source].value;
    }
    warp.in_exchange &= ~mask;
    warp.ready |= mask;
    counts.warp_stops++;
}

static bool all_agree(const Thread *lanes, Warp_op op, unsigned mask) {
    for (unsigned left = mask; left; left &= left - 1) {
        const Thread &thread = lanes[__builtin_ctz(left)];
        if (thread.op != op || thread.mask != mask)
            return false;
    }
    return true;
}

static void check_call(Warp_op op, unsigned mask, int width, int line) {
    const char *name = op_names[static_cast<int>(op)];
    if (!(mask & bit(self % 32)))
        fail(format("%s of line %d: lane %u is not in its mask 0x%08x", name, line, self % 32,
                    mask));
    if (width < 1 || width > 32 || (width & (width - 1)) != 0)
        fail(format("%s of line %d: width %d", name, line, width));
}

uint64_t exchange(Warp_op op, unsigned mask, uint64_t value, unsigned operand, int width,
                  int line) {
    check_call(op, mask, width, line);
    Thread &thread = threads[self];
    Warp &warp = own_warp();
    thread.op = op;
    thread.mask = mask;
    thread.value = value;
    thread.operand = operand;
    thread.width = width;
    thread.line = line;
    warp.in_exchange |= bit(self % 32);
    Thread *lanes = lanes_of(self / 32);
    if ((warp.in_exchange & mask) == mask && all_agree(lanes, op, mask))
        finish_exchange(warp, lanes, op, mask);
    fiber_leave();
    return thread.result;
}

unsigned live_lanes() { return own_warp().exist & ~own_warp().ended; }

// ---- Turns, on the stack of the caller

static void run_thread() {
    job->body();
    own_warp().ended |= bit(self % 32);
}

static void take_turn(unsigned thread) {
    Thread &t = threads[thread];
    Warp &warp = warps[thread / 32];
    warp.ready &= ~bit(thread % 32);
    if (!t.fiber)
        t.fiber = fiber_take(run_thread);
    self = thread;
    indices.thread = t.index;
    counts.turns++;
    fiber_enter(t.fiber);
    if (warp.ended & bit(thread % 32)) {
        fiber_give(t.fiber);
        t.fiber = nullptr;
    }
}

static void run_lanes_ascending(unsigned warp, unsigned lanes) {
    for (; lanes && !faulty; lanes &= lanes - 1)
        take_turn(32 * warp + static_cast<unsigned>(__builtin_ctz(lanes)));
}

static void run_lanes_descending(unsigned warp, unsigned lanes) {
    while (lanes && !faulty) {
        unsigned lane = 31 - static_cast<unsigned>(__builtin_clz(lanes));
        lanes &= ~bit(lane);
        take_turn(32 * warp + lane);
    }
}

static void run_lanes_shuffled(unsigned warp, unsigned lanes) {
    unsigned list[32], count = 0;
    for (; lanes; lanes &= lanes - 1)
        list[count++] = static_cast<unsigned>(__builtin_ctz(lanes));
    while (count && !faulty) {
        unsigned pick = dice.below(count);
        take_turn(32 * warp + list[pick]);
        list[pick] = list[--count];
    }
}

static void run_warps_in_order() {
    bool down = settings.order == QG_SHIM_DESCENDING;
    for (unsigned i = 0; i < warp_count; i++) {
        unsigned warp = down ? warp_count - 1 - i : i;
        while (warps[warp].ready && !faulty)
            (down ? run_lanes_descending : run_lanes_ascending)(warp, warps[warp].ready);
    }
}

// Draws a warp; then it gives all lanes that are ready a turn, or half of them, or runs on as far
// as the warp comes alone.
static void run_warps_shuffled() {
    unsigned list[max_warps], count = 0;
    for (unsigned warp = 0; warp < warp_count; warp++)
        if (warps[warp].ready)
            list[count++] = warp;
    while (count && !faulty) {
        unsigned pick = dice.below(count), kind = dice.below(3);
        Warp &warp = warps[list[pick]];
        do {
            unsigned some = kind == 0 ? static_cast<unsigned>(dice.next()) & warp.ready : 0;
            run_lanes_shuffled(list[pick], some ? some : warp.ready);
        } while (kind == 2 && warp.ready && !faulty);
        if (!warp.ready)
            list[pick] = list[--count];
    }
}

// ---- When no thread can run

// The first lane of those that waits in vain, and why.
static void report_stuck_warp(unsigned warp) {
    const Warp &w = warps[warp];
    const Thread *lanes = lanes_of(warp);
    for (unsigned left = w.in_exchange; left; left &= left - 1) {
        unsigned lane = static_cast<unsigned>(__builtin_ctz(left));
        for (unsigned others = lanes[lane].mask; others; others &= others - 1) {
            unsigned other = static_cast<unsigned>(__builtin_ctz(others));
            bool agrees = w.in_exchange & bit(other) && lanes[other].op == lanes[lane].op &&
                          lanes[other].mask == lanes[lane].mask;
            if (agrees)
                continue;
            report(32 * warp + lane, "lane " + format("%u ", lane) + waits_at(lanes[lane]) +
                                         format(", but lane %u ", other) + state_of(warp, other));
            return;
        }
    }
}

static int first_in(unsigned Warp::*set) {
    for (unsigned warp = 0; warp < warp_count; warp++)
        if (warps[warp].*set)
            return static_cast<int>(32 * warp) + __builtin_ctz(warps[warp].*set);
    return -1;
}

static void report_divergent_barrier() {
    int waiting = first_in(&Warp::at_barrier);
    int other = first_in(&Warp::ended);
    if (other < 0)
        other = first_in(&Warp::in_exchange);
    if (waiting < 0 || other < 0)
        return;
    unsigned warp = static_cast<unsigned>(other) / 32;
    report(static_cast<unsigned>(waiting),
           format("divergent barrier: waits at __syncthreads of line %d, but thread %s ",
                  threads[waiting].line, triple(threads[other].index).c_str()) +
               state_of(warp, static_cast<unsigned>(other) % 32));
}

static bool all_in(unsigned Warp::*set) {
    for (unsigned warp = 0; warp < warp_count; warp++)
        if (warps[warp].*set != warps[warp].exist)
            return false;
    return true;
}

// Every thread waits at a barrier: at the same one, or it is a fault.
static void pass_barrier() {
    for (unsigned warp = 0; warp < warp_count; warp++) {
        for (unsigned left = warps[warp].exist; left; left &= left - 1) {
            unsigned thread = 32 * warp + static_cast<unsigned>(__builtin_ctz(left));
            if (threads[thread].line != threads[0].line) {
                report(0, format("divergent barrier: waits at __syncthreads of line %d, but thread "
                                 "%s waits at that of line %d",
                                 threads[0].line, triple(threads[thread].index).c_str(),
                                 threads[thread].line));
                return;
            }
        }
        warps[warp].ready = warps[warp].exist;
        warps[warp].at_barrier = 0;
    }
    counts.barriers++;
}

// ---- A CTA

void begin_ctas(const Launch &of) {
    job = &of;
    dice.state = settings.seed;
    indices.block_dim = of.block;
    indices.grid_dim = of.grid;
    unsigned count = of.block.x * of.block.y * of.block.z;
    warp_count = (count + 31) / 32;
    for (unsigned i = 0; i < count; i++) {
        uint3 index = {i % of.block.x, i / of.block.x % of.block.y, i / of.block.x / of.block.y};
        threads[i] = {};
        threads[i].index = index;
    }
    for (unsigned warp = 0; warp < warp_count; warp++) {
        unsigned lanes = count - 32 * warp;
        warps[warp].exist = lanes >= 32 ? 0xffffffff : bit(lanes) - 1;
    }
    begin_shared(of.shared_bytes);
}

static void abandon_fibers() {
    for (unsigned thread = 0; thread < 32 * warp_count; thread++) {
        if (threads[thread].fiber)
            fiber_abandon(threads[thread].fiber);
        threads[thread].fiber = nullptr;
    }
}

static void run_until_ended() {
    while (!faulty && !all_in(&Warp::ended)) {
        if (settings.order == QG_SHIM_SHUFFLED)
            run_warps_shuffled();
        else
            run_warps_in_order();
        if (faulty || all_in(&Warp::ended))
            return;
        if (all_in(&Warp::at_barrier)) {
            pass_barrier();
            continue;
        }
        for (unsigned warp = 0; warp < warp_count; warp++)
            report_stuck_warp(warp);
        report_divergent_barrier();
    }
}

bool run_cta(uint3 block) {
    indices.block = block;
    faulty = false;
    for (unsigned warp = 0; warp < warp_count; warp++) {
        unsigned exist = warps[warp].exist;
        warps[warp] = {exist, exist, 0, 0, 0};
    }
    poison_shared();
    run_until_ended();
    if (faulty)
        abandon_fibers();
    std::string overwritten = check_shared();
    if (!overwritten.empty()) {
        faulty = true;
        add_fault(format("kernel %s, CTA %s: ", job->name, triple(block).c_str()) + overwritten);
    }
    counts.ctas++;
    return !faulty;
}

} // namespace shim
