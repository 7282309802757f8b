#pragma once
#include <initializer_list>
#include <memory>
#include <vector>

#include "nes/machine.hpp"

namespace wz::test {

/// xorshift64*: the same numbers everywhere.
class Random {
  public:
    explicit Random(u64 seed) : state_(seed * 0x9E3779B97F4A7C15ull + 0x1234567) {}
    u32 next() {
        state_ ^= state_ >> 12, state_ ^= state_ << 25, state_ ^= state_ >> 27;
        return static_cast<u32>(state_ * 0x2545F4914F6CDD1Dull >> 32);
    }
    u32 below(u32 n) { return static_cast<u32>(u64{next()} * n >> 32); }
    u8 byte() { return static_cast<u8>(next()); }
    bool chance(u32 percent) { return below(100) < percent; }

  private:
    u64 state_;
};

inline constexpr std::size_t kPrgSize = 0x8000;

inline u8 one_of(Random& r, std::initializer_list<u8> list) {
    return list.begin()[r.below(static_cast<u32>(list.size()))];
}

/// Writes instructions as no programmer would have, but which mostly keep going: loops, calls, waits,
/// pointers, and operands at every kind of address and around every boundary.
class ProgramWriter {
  public:
    explicit ProgramWriter(Random& r) : r_(r), prg_(kPrgSize, 0xEA) {}

    std::vector<u8> write() {
        while (at_ < kPrgSize - 0x40) instruction();
        // The end of memory, where instructions wrap around, and vectors.
        for (std::size_t i = kPrgSize - 0x10; i < kPrgSize; ++i) prg_[i] = r_.byte();
        for (std::size_t vector : {0x7FFA, 0x7FFC, 0x7FFE}) {
            const u16 to = some_instruction();
            prg_[vector] = static_cast<u8>(to), prg_[vector + 1] = static_cast<u8>(to >> 8);
        }
        return prg_;
    }

  private:
    void put(std::initializer_list<u32> bytes) {
        starts_.push_back(static_cast<u16>(0x8000 + at_));
        for (u32 b : bytes) prg_[at_++] = static_cast<u8>(b);
    }
    void put_word(u8 opcode, u16 word) { put({opcode, word & 0xFFu, static_cast<u32>(word >> 8)}); }

    u16 some_instruction() {
        if (starts_.empty() || r_.chance(2)) return static_cast<u16>(0x8000 + r_.below(kPrgSize));
        return starts_[r_.below(static_cast<u32>(starts_.size()))];
    }
    /// Zero-page bytes 0-31 serve as pointers and get values that lead somewhere.
    u8 zero_page() { return r_.chance(50) ? static_cast<u8>(r_.below(32)) : r_.byte(); }

    u16 address() {
        switch (r_.below(12)) {
            case 0:
                return static_cast<u16>(0x8000 + r_.below(kPrgSize));
            case 1:
                return static_cast<u16>(0x2000 + r_.below(8));
            case 2:
                return static_cast<u16>(0x4000 + r_.below(0x20));
            case 3:
                return static_cast<u16>(r_.below(0x2000));
            case 4:
                return static_cast<u16>(0x6000 + r_.below(0x2000));
            case 5: {
                const u16 edges[] = {0x00FF, 0x01FF, 0x06FF, 0x0700, 0x0701, 0x07FF, 0x1EFF, 0x1F00,
                                     0x1F01, 0x1FFF, 0x2000, 0x3FF8, 0x4014, 0x4016, 0x5FFF, 0x7EFF,
                                     0x7F01, 0x7FFF, 0x8000, 0xFE80, 0xFEFF, 0xFF00, 0xFF01, 0xFFFF};
                return edges[r_.below(std::size(edges))];
            }
            default:
                return static_cast<u16>(r_.below(0x800));
        }
    }

    void branch() {
        const u8 opcode = static_cast<u8>(0x10 + 0x20 * r_.below(8));
        if (r_.chance(60))
            put({opcode, r_.below(24)});
        else
            put({opcode, 0x100 - r_.below(r_.chance(80) ? 24 : 128)});
    }

    void wait() {
        switch (r_.below(7)) {
            case 0:
                put_word(0xAD, 0x2002), put({0x29, one_of(r_, {0x40, 0x80, 0x20, 0xE0})});
                put({one_of(r_, {0xD0, 0xF0}), 0xF9});
                break;
            case 1:
                put_word(one_of(r_, {0xAD, 0x2C}), 0x2002), put({one_of(r_, {0x10, 0x30, 0x50, 0x70}), 0xFB});
                break;
            case 2:
                if (r_.chance(10)) put_word(0x4C, static_cast<u16>(0x8000 + at_));
                break;
            case 3:
                put({0xCA}), put({0xD0, 0xFD});
                break;
            case 4:
                put({0x88}), put({0xD0, 0xFD});
                break;
            case 5:
                put({0xA2, r_.byte()}), put({0xCA}), put({0xD0, 0xFD});
                break;
            default:
                put({0xA0, r_.below(20)}), put({0x88}), put({0xD0, 0xFD});
                break;
        }
    }

    void make_pointer() {
        const u8 zp = static_cast<u8>(r_.below(32));
        const u8 page = r_.chance(45)   ? static_cast<u8>(r_.below(8))
                        : r_.chance(70) ? r_.byte() | 0x80
                                        : r_.byte();
        put({0xA9, page}), put({0x85, static_cast<u32>(zp + 1)});
        if (r_.chance(50)) put({0xA9, r_.byte()}), put({0x85, zp});
    }

    void jump() {
        switch (r_.below(8)) {
            case 0:
            case 1:
                put_word(0x4C, some_instruction());
                break;
            case 2:
            case 3:
            case 4:
                put_word(0x20, some_instruction());
                break;
            case 5:
                put({0x60});
                break;
            case 6: {
                const u16 to = some_instruction();
                put({0xA9, to & 0xFFu}), put({0x85, 0x40}), put({0xA9, static_cast<u32>(to >> 8)}),
                    put({0x85, 0x41});
                put_word(0x6C, r_.chance(90) ? 0x0040 : address());
                break;
            }
            default:
                put({one_of(r_, {0x40, 0x00, 0x28, 0x08, 0x58, 0x78})});
                break;
        }
    }

    void instruction() {
        const u32 kind = r_.below(100);
        if (kind < 14) return branch();
        if (kind < 17) return wait();
        if (kind < 20) return make_pointer();
        if (kind < 25) return jump();
        if (kind < 27) return put({r_.byte(), r_.byte(), r_.byte()});  // anything at all
        if (kind < 45)
            return put({one_of(r_, {0xAA, 0x8A, 0xA8, 0x98, 0xBA, 0xE8, 0xC8, 0xCA, 0x88, 0x18, 0x38, 0xB8,
                                    0xD8, 0xF8, 0xEA, 0x48, 0x68, 0x0A, 0x4A, 0x2A, 0x6A, 0x18, 0x38})});
        if (kind == 45) return put({0xA2, 0xF0 + r_.below(16)}), put({0x9A});
        if (kind < 60)
            return put({one_of(r_, {0xA9, 0x09, 0x29, 0x49, 0x69, 0xE9, 0xC9, 0xA2, 0xA0, 0xE0, 0xC0}),
                        r_.chance(50) ? r_.below(4) : r_.byte()});
        if (kind < 80)
            return put(
                {one_of(r_, {0xA5, 0xB5, 0x05, 0x15, 0x25, 0x35, 0x45, 0x55, 0x65, 0x75, 0xE5, 0xF5, 0xC5,
                             0xD5, 0xA6, 0xB6, 0xA4, 0xB4, 0xE4, 0xC4, 0x24, 0x85, 0x95, 0x86, 0x96, 0x84,
                             0x94, 0x06, 0x16, 0x46, 0x56, 0x26, 0x36, 0x66, 0x76, 0xE6, 0xF6, 0xC6, 0xD6,
                             0xB1, 0x11, 0x31, 0x51, 0x71, 0xF1, 0xD1, 0x91, 0x91, 0xB1, 0xA1, 0x81}),
                 zero_page()});
        put_word(one_of(r_, {0xAD, 0xBD, 0xB9, 0x0D, 0x1D, 0x19, 0x2D, 0x3D, 0x39, 0x4D, 0x5D, 0x59,
                             0x6D, 0x7D, 0x79, 0xED, 0xFD, 0xF9, 0xCD, 0xDD, 0xD9, 0xAE, 0xBE, 0xAC,
                             0xBC, 0xEC, 0xCC, 0x2C, 0x8D, 0x9D, 0x99, 0x8E, 0x8C, 0x8D, 0x9D, 0x99,
                             0x0E, 0x1E, 0x4E, 0x5E, 0x2E, 0x3E, 0x6E, 0x7E, 0xEE, 0xFE, 0xCE, 0xDE}),
                 address());
    }

    Random& r_;
    std::vector<u8> prg_;
    std::vector<u16> starts_;
    std::size_t at_ = 0;
};

/// Bytes that are any instruction, official or not.
inline std::vector<u8> byte_soup(Random& r) {
    std::vector<u8> prg(kPrgSize);
    for (u8& b : prg) b = r.byte();
    for (std::size_t vector : {0x7FFB, 0x7FFD, 0x7FFF}) prg[vector] |= 0x80;
    return prg;
}

inline std::vector<u8> structured_program(Random& r) { return ProgramWriter(r).write(); }

/// Wraps 32 KB of program, with its vectors, and random patterns into a cartridge.
inline std::shared_ptr<const Cartridge> cartridge_of(const std::vector<u8>& prg, Random& r) {
    std::vector<u8> image = {'N', 'E', 'S', 0x1A, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    image.insert(image.end(), prg.begin(), prg.end());
    for (int i = 0; i < 0x2000; ++i) image.push_back(r.byte());
    return Cartridge::parse(image);
}

}  // namespace wz::test
