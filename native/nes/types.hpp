#pragma once
#include <cstdint>
#include <cstring>

namespace wz {

using u8 = std::uint8_t;
using i8 = std::int8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

/// A point in time that never comes.
inline constexpr i64 kNever = INT64_MAX / 4;

inline u64 load64(const u8* p) {
    u64 v;
    std::memcpy(&v, p, 8);
    return v;
}
inline void store64(u8* p, u64 v) { std::memcpy(p, &v, 8); }

/// The byte `b` in all eight bytes of a word.
constexpr u64 splat(u8 b) { return 0x0101010101010101ull * b; }

}  // namespace wz
