#include "nes/jit.hpp"

#include "nes/cpu.hpp"
#include "nes/jit_backend.hpp"

#if WZ_JIT

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <new>
#include <thread>

#include "nes/idle.hpp"
#include "nes/jit_context.hpp"
#include "nes/jit_memory.hpp"

namespace wz::jit {
namespace {

constexpr int kLongestTrace = 24;
constexpr int kLoosePieces = 16;  ///< so many, and more as there is more code, before they are packed

/// A lock that a forked child can take although a thread which it does not have held it.
class ForkSafeLock {
  public:
    void lock() {
        const pid_t me = getpid();
        for (;;) {
            pid_t holder = 0;
            if (holder_.compare_exchange_weak(holder, me, std::memory_order_acquire)) return;
            if (holder != 0 && holder != me &&
                holder_.compare_exchange_strong(holder, me, std::memory_order_acquire))
                return;
            std::this_thread::yield();
        }
    }
    void unlock() { holder_.store(0, std::memory_order_release); }

  private:
    std::atomic<pid_t> holder_{0};
};

// ---- what translated code calls ----

u32 read(Context* c, u32 addr, u32, i64 cycle) {
    return bus::read_slow(*c->console, static_cast<u16>(addr), cycle);
}

u32 write(Context* c, u32 addr, u32 value, i64 cycle) {
    return static_cast<u32>(
        bus::write_slow(*c->console, static_cast<u16>(addr), static_cast<u8>(value), cycle));
}

u32 write_indexed(Context* c, u32 addr, u32 value, i64 cycle) {
    if (addr < 0x4020) read(c, addr, 0, cycle);
    return write(c, addr, value, cycle + 1);
}

u32 skip_polls(Context* c, u32 loop, u32 a, i64 clock) {
    const u32 turn = loop & 0xFFFF;
    const u8* code = c->prg + (loop >> 16 & 0x7FFF);
    return static_cast<u32>(turn * idle::skippable_polls(*c->console, code, static_cast<u8>(a), clock, turn));
}

// ---- between runs ----

void load_state(Context& c, const Machine& m) {
    c.remaining = m.limit - m.clock;
    c.limit = m.limit;
    c.a = m.a, c.x = m.x, c.y = m.y, c.s = m.s;
    c.nz = (m.p & cpu::kNegative ? 0x8000u : 0u) | (m.p & cpu::kZero ? 0u : 1u);
    c.carry = m.p & cpu::kCarry;
    c.overflow = (m.p & cpu::kOverflow) != 0;
}

void store_state(const Context& c, Machine& m) {
    m.clock = c.limit - c.remaining;
    m.pc = static_cast<u16>(c.pc);
    m.a = static_cast<u8>(c.a), m.x = static_cast<u8>(c.x), m.y = static_cast<u8>(c.y),
    m.s = static_cast<u8>(c.s);
    m.p = static_cast<u8>((m.p & (cpu::kInterrupt | cpu::kDecimal)) | cpu::kUnused | c.carry |
                          (c.overflow ? cpu::kOverflow : 0) | (c.nz & 0x8080 ? cpu::kNegative : 0) |
                          (c.nz & 0xFF ? 0 : cpu::kZero));
}

/// Does the one instruction at pc. True if the interpreter would leave after it, whatever the limit.
bool interpret_one(Console& k) {
    Machine& m = k.m;
    const u8 opcode = k.cart.prg[m.pc & 0x7FFF];
    const i64 limit = m.limit, only_one = m.clock + 1;
    m.limit = only_one;
    cpu::execute<true>(k);
    if (m.limit == only_one) m.limit = limit;
    if (m.jammed) cpu::execute<true>(k);
    switch (opcode) {
        case 0x00:  // BRK, PLP, RTI, CLI and SEI may let an interrupt in
        case 0x28:
        case 0x40:
        case 0x58:
        case 0x78:
            return true;
        default:
            return m.clock >= m.limit;
    }
}

}  // namespace

class Translation {
  public:
    explicit Translation(Rules rules) : rules_(rules), entries_(0x8000) {}

    bool start(const Prg& prg) {
        const std::vector<u8> code = emit_runtime(memory_.next(), runtime_);
        if (!memory_.append(code)) return false;
        for (auto& e : entries_) e.store(unknown(), std::memory_order_relaxed);
        for (u16 vector : {0xFFFA, 0xFFFC, 0xFFFE})
            extend(prg, static_cast<u16>(prg[vector & 0x7FFF] | prg[(vector + 1) & 0x7FFF] << 8));
        return true;
    }

    /// The code for `pc`, which is in PRG ROM; null when memory is full.
    const void* entry(const Prg& prg, u16 pc) {
        const void* at = entries_[pc & 0x7FFF].load(std::memory_order_acquire);
        if (at != unknown()) return at;
        extend(prg, pc);
        at = entries_[pc & 0x7FFF].load(std::memory_order_acquire);
        return at != unknown() ? at : nullptr;
    }

    void enter(Context& c, const void* at) const {
        reinterpret_cast<void (*)(Context*, const void*)>(
            reinterpret_cast<std::uintptr_t>(memory_.base() + runtime_.enter))(&c, at);
    }
    const void* entries() const { return entries_.data(); }

  private:
    using Entry = std::atomic<const void*>;
    static_assert(sizeof(Entry) == 8 && Entry::is_always_lock_free);

    const void* unknown() const { return memory_.base() + runtime_.unknown; }
    /// A block counts once its entry is there, so that a child forked in the midst of an addition does it
    /// again.
    bool known(u16 pc) const { return entries_[pc & 0x7FFF].load(std::memory_order_relaxed) != unknown(); }

    /// Translates `pc` and all that it leads to. Without memory to do so it is interpreted for now.
    void extend(const Prg& prg, u16 pc) {
        if (pc < 0x8000) return;
        const std::lock_guard hold(lock_);
        try {
            if (full_ || known(pc)) return;
            full_ = !add(prg, pc);
            if (++loose_ >= kLoosePieces + packed_ / 4) pack(prg);
        } catch (const std::bad_alloc&) {
        }
    }

    bool add(const Prg& prg, u16 pc) {
        std::vector<Trace> traces;
        std::vector<u8> queued(0x8000);
        auto want = [&](u16 to) {
            if (to < 0x8000 || known(to) || queued[to & 0x7FFF]) return;
            queued[to & 0x7FFF] = 1;
            traces.push_back(follow(prg, to, kLongestTrace, rules_));
        };
        want(pc);
        for (std::size_t i = 0; i < traces.size(); ++i) {
            std::vector<u16> leads_to;
            for (const Step& s : traces[i].steps)
                if (is_branch(s.op) && !s.inlined) leads_to.push_back(s.target);
            if (traces[i].ending == Trace::Ending::Jump) leads_to.push_back(traces[i].exit);
            for (u16 to : leads_to) want(to);
        }
        return place(prg, traces, blocks_);
    }

    /// Emits everything once more as one piece: each of the many small ones that grew with the game begins a
    /// page of its own, so that they compete for the same few places of the instruction cache and for its
    /// table of pages. Code that runs in the old ones stays valid.
    void pack(const Prg& prg) {
        packed_ += loose_;
        loose_ = 0;
        std::vector<Trace> traces;
        for (u32 pc = 0x8000; pc < 0x10000; ++pc)
            if (known(static_cast<u16>(pc)))
                traces.push_back(follow(prg, static_cast<u16>(pc), kLongestTrace, rules_));
        place(prg, traces, Blocks());
    }

    /// False where there is no room.
    bool place(const Prg& prg, const std::vector<Trace>& traces, const Blocks& others) {
        std::vector<Block> placed;
        const std::vector<u8> code = emit_traces(memory_.next(), runtime_, prg, traces, others, placed);
        if (!memory_.append(code)) return false;
        // Only now may others see it: the code is complete, and so is what it jumps to.
        for (std::size_t i = 0; i < traces.size(); ++i) blocks_.at(traces[i].entry) = placed[i];
        for (std::size_t i = 0; i < traces.size(); ++i)
            entries_[traces[i].entry & 0x7FFF].store(memory_.base() + placed[i].checked,
                                                     std::memory_order_release);
        return true;
    }

    const Rules rules_;
    CodeMemory memory_;
    Runtime runtime_;
    std::vector<Entry> entries_;
    ForkSafeLock lock_;
    // Under the lock:
    Blocks blocks_;
    bool full_ = false;
    int loose_ = 0, packed_ = 0;  ///< pieces by themselves, and those in the one that holds all before them
};

std::shared_ptr<Translation> translate(const Cartridge& cart, Rules rules) {
    auto t = std::make_shared<Translation>(rules);
    return t->start(cart.prg) ? t : nullptr;
}

const void* entry(Translation& t, const Cartridge& cart, u16 pc) { return t.entry(cart.prg, pc); }
const void* entries(const Translation& t) { return t.entries(); }
void enter(const Translation& t, Context& c, const void* code) { t.enter(c, code); }

void execute(Translation& t, Console& k) {
    Machine& m = k.m;
    Context c;
    c.ram = m.ram + kRamBias;
    c.prg = k.cart.prg.data();
    c.entries = t.entries();
    c.machine = &m;
    c.console = &k;
    c.read = read, c.write = write, c.write_indexed = write_indexed, c.skip_polls = skip_polls;
    while (!m.jammed && m.pc >= 0x8000) {
        const void* at = t.entry(k.cart.prg, m.pc);
        if (!at) break;
        load_state(c, m);
        t.enter(c, at);
        store_state(c, m);
        if (c.exit == Exit::NearLimit) break;
        if (c.exit == Exit::LimitMoved && m.clock >= m.limit) {
            m.tail = Tail::Normal;
            return;
        }
        if (c.exit == Exit::Interpret && m.pc >= 0x8000 && interpret_one(k)) return;
    }
    cpu::execute<true>(k);
}

}  // namespace wz::jit

#else

namespace wz::jit {

class Translation {};
std::shared_ptr<Translation> translate(const Cartridge&, Rules) { return nullptr; }
const void* entry(Translation&, const Cartridge&, u16) { return nullptr; }
const void* entries(const Translation&) { return nullptr; }
void enter(const Translation&, Context&, const void*) {}
void execute(Translation&, Console& k) { cpu::execute<true>(k); }

}  // namespace wz::jit

#endif
