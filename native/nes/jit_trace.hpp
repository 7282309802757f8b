#pragma once
#include <span>
#include <vector>

#include "nes/jit_decode.hpp"

namespace wz::jit {

using Prg = std::array<u8, 0x8000>;

/// What an instruction's operand touches, as far as it is known before running.
enum class Access : u8 {
    None,      ///< no memory, or none that needs care
    Ram,       ///< $0000-$1FFF whatever the index is
    Rom,       ///< PRG ROM, without an index a constant; behind its end, the interpreter does the instruction
    Register,  ///< $2000-$7FFF: through the bus, which may move the limit
    RegisterIndexed,  ///< the same with an index; out of the page, the interpreter does the instruction
    Pointer           ///< anywhere; outside RAM and PRG ROM the interpreter does the instruction
};

/// Where the consoles that run traces differ: by default, the hardware's way.
struct Rules {
    u8 branch_crossing = 1;        ///< cycles that a taken branch into another page costs more
    bool modify_crossing = false;  ///< read-modify-write through an index pays for leaving the page
};

/// One instruction of a trace.
struct Step {
    u16 pc = 0;
    u16 operand = 0;
    u16 target = 0;  ///< of a branch or jump; of an Rts, where it goes back to if its Jsr is in the trace
    Op op = Op::Rare;
    Mode mode = Mode::Implied;
    Access access = Access::None;
    bool inlined =
        false;  ///< an Rts whose Jsr is in the trace; a branch whose outcome is known: go on at `target`
    u8 needed =
        kAllFlags;  ///< flags that somebody may look at after this instruction, before they are set anew
    u16 start = 0;  ///< cycles from the trace's head to here, if every page is crossed
    u16 end = 0;    ///< the same after it (of a branch: not taken)
    Rules rules;

    u16 next() const { return static_cast<u16>(pc + length(mode)); }
    /// Reads through an index take a cycle more when they leave the page; counted in `end`.
    bool pays_for_crossing() const;
    /// The index may lead from ROM over the end of memory.
    bool may_wrap() const { return access == Access::Rom && mode != Mode::Abs && operand > 0xFF00; }
    /// A taken branch costs one cycle, into another page more.
    int taken_cycles() const { return 3 + (((next() ^ target) & 0xFF00) ? rules.branch_crossing : 0); }
};

/// Straight-line code from one entry: branches leave it when taken; jumps, calls and returns are followed.
struct Trace {
    enum class Ending : u8 {
        Jump,       ///< goes on at `exit`
        Dynamic,    ///< the last step is an Rts or JmpIndirect
        Interpret,  ///< the interpreter does the instruction at `exit`
        Wait        ///< `exit` jumps to itself: nothing happens until the limit
    };
    u16 entry = 0, exit = 0;
    Ending ending = Ending::Jump;
    u8 live = kAllFlags;  ///< flags that must be right on entry
    u16 cost = 0;         ///< at most this many cycles pass before any exit
    std::vector<Step> steps;
};

/// Follows the program from `entry`, in PRG ROM, for at most `longest` instructions.
Trace follow(const Prg& prg, u16 entry, int longest, Rules rules);

/// The cycles of a turn if the taken branch closes a loop that only waits for the PPU status, else 0.
int poll_length(const Prg& prg, const Step& branch);

}  // namespace wz::jit
