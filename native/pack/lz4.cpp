#include "pack/lz4.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace wz::lz4 {
namespace {

constexpr std::size_t kLeastMatch = 4, kFarthest = 65535;
/// A block ends in literals: the last match begins this far from its end, and ends this far from it.
constexpr std::size_t kNoMatchFrom = 12, kNoMatchTo = 5;
constexpr u8 kLong = 15, kMore = 255;  ///< a length of 15 goes on in further bytes, as long as they are 255
constexpr int kHashBits = 12, kChunk = 16;
constexpr unsigned kPatience =
    6;  ///< after 2^6 positions without a match, look at every other one, and so on

template <class T>
T read(const u8* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

u32 slot(u32 four_bytes) { return (four_bytes * 2654435761u) >> (32 - kHashBits); }

/// How many bytes from `a` and from `b` on are the same, before `end` of a.
std::size_t common(const u8* a, const u8* b, const u8* end) {
    const u8* const from = a;
    if constexpr (std::endian::native == std::endian::little) {
        while (end - a >= 8) {
            if (const u64 differs = read<u64>(a) ^ read<u64>(b))
                return static_cast<std::size_t>(a - from) +
                       static_cast<std::size_t>(std::countr_zero(differs) / 8);
            a += 8, b += 8;
        }
    }
    while (a < end && *a == *b) ++a, ++b;
    return static_cast<std::size_t>(a - from);
}

u8* write_rest(u8* out, std::size_t length) {
    for (; length >= kMore; length -= kMore) *out++ = kMore;
    *out++ = static_cast<u8>(length);
    return out;
}

/// Literals, and after them `length` bytes from `distance` back; the last literals of a block have no match.
u8* write(u8* out, const u8* literals, std::size_t count, std::size_t distance, std::size_t length) {
    const std::size_t beyond = length ? length - kLeastMatch : 0;
    *out++ = static_cast<u8>(std::min<std::size_t>(count, kLong) << 4 | std::min<std::size_t>(beyond, kLong));
    if (count >= kLong) out = write_rest(out, count - kLong);
    std::copy_n(literals, count, out);
    out += count;
    if (!length) return out;
    *out++ = static_cast<u8>(distance);
    *out++ = static_cast<u8>(distance >> 8);
    return beyond >= kLong ? write_rest(out, beyond - kLong) : out;
}

/// `count` bytes again from `distance` back, which may be nearer than that.
void repeat(u8* out, std::size_t distance, std::size_t count) {
    const u8* const from = out - distance;
    if (distance == 1) {
        std::memset(out, *from, count);
        return;
    }
    for (std::size_t done = 0; done < count;) {
        const std::size_t part = std::min(distance + done, count - done);
        std::memcpy(out + done, from, part);
        done += part;
    }
}

/// The rest of a length; false if the input ends within it.
bool read_rest(const u8*& in, const u8* end, std::size_t& length) {
    u8 byte = kMore;
    while (byte == kMore) {
        if (in == end) return false;
        length += byte = *in++;
    }
    return true;
}

}  // namespace

std::size_t compress(const u8* in, std::size_t size, u8* out) {
    u8* const begin = out;
    const u8 *literals = in, *const end = in + size;
    if (size > kNoMatchFrom) {
        u32 seen[1 << kHashBits] = {};  // where bytes with this hash were seen last
        const u8 *const last_start = end - kNoMatchFrom, *const last_end = end - kNoMatchTo;
        unsigned misses = 0;
        for (const u8* p = in + 1; p <= last_start;) {
            const u32 four = read<u32>(p);
            u32& entry = seen[slot(four)];
            const u8* earlier = in + entry;
            entry = static_cast<u32>(p - in);
            if (read<u32>(earlier) != four || static_cast<std::size_t>(p - earlier) > kFarthest) {
                p += 1 + (misses++ >> kPatience);
                continue;
            }
            while (p > literals && earlier > in && p[-1] == earlier[-1]) --p, --earlier;
            const std::size_t length = kLeastMatch + common(p + kLeastMatch, earlier + kLeastMatch, last_end);
            out = write(out, literals, static_cast<std::size_t>(p - literals),
                        static_cast<std::size_t>(p - earlier), length);
            literals = p += length;
            misses = 0;
            if (p <= last_start) seen[slot(read<u32>(p - 2))] = static_cast<u32>(p - 2 - in);
        }
    }
    return static_cast<std::size_t>(write(out, literals, static_cast<std::size_t>(end - literals), 0, 0) -
                                    begin);
}

bool decompress(const u8* in, std::size_t in_size, u8* out, std::size_t out_size) {
    const u8 *const begin = out, *const in_end = in + in_size, *const out_end = out + out_size;
    while (in < in_end) {
        const u8 token = *in++;
        std::size_t count = token >> 4;
        if (count == kLong && !read_rest(in, in_end, count)) return false;
        if (count > static_cast<std::size_t>(in_end - in) || count > static_cast<std::size_t>(out_end - out))
            return false;
        if (count <= kChunk && in_end - in >= kChunk && out_end - out >= kChunk)
            std::memcpy(out, in, kChunk);  // with bytes that are written again: sooner done than counted
        else
            std::copy_n(in, count, out);
        in += count, out += count;
        if (in == in_end) return out == out_end;
        if (in_end - in < 2) return false;
        const std::size_t distance = in[0] | static_cast<std::size_t>(in[1]) << 8;
        in += 2;
        std::size_t length = token & kLong;
        if (length == kLong && !read_rest(in, in_end, length)) return false;
        length += kLeastMatch;
        if (!distance || distance > static_cast<std::size_t>(out - begin) ||
            length > static_cast<std::size_t>(out_end - out))
            return false;
        if (distance >= kChunk && length + kChunk <= static_cast<std::size_t>(out_end - out))
            for (std::size_t done = 0; done < length; done += kChunk)
                std::memcpy(out + done, out + done - distance, kChunk);
        else
            repeat(out, distance, length);
        out += length;
    }
    return false;
}

}  // namespace wz::lz4
