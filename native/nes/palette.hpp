#pragma once
#include "nes/types.hpp"

namespace wz {

struct Rgb {
    u8 r, g, b;
};

/// The picture unit's 64 colours as nes-py shows them, so that what was learnt on one looks the same on the
/// other.
inline constexpr u32 kRgbPalette[64] = {
    0x7C7C7C, 0x0000FC, 0x0000BC, 0x4428BC, 0x940084, 0xA80020, 0xA81000, 0x881400, 0x503000, 0x007800,
    0x006800, 0x005800, 0x004058, 0x000000, 0x000000, 0x000000, 0xBCBCBC, 0x0078F8, 0x0058F8, 0x6844FC,
    0xD800CC, 0xE40058, 0xF83800, 0xE45C10, 0xAC7C00, 0x00B800, 0x00A800, 0x00A844, 0x008888, 0x000000,
    0x000000, 0x000000, 0xF8F8F8, 0x3CBCFC, 0x6888FC, 0x9878F8, 0xF878F8, 0xF85898, 0xF87858, 0xFCA044,
    0xF8B800, 0xB8F818, 0x58D854, 0x58F898, 0x00E8D8, 0x787878, 0x000000, 0x000000, 0xFCFCFC, 0xA4E4FC,
    0xB8B8F8, 0xD8B8F8, 0xF8B8F8, 0xF8A4C0, 0xF0D0B0, 0xFCE0A8, 0xF8D878, 0xD8F878, 0xB8F8B8, 0xB8F8D8,
    0x00FCFC, 0xF8D8F8, 0x000000, 0x000000};

/// A colour under the emphasis bits (red, green, blue): the channels not emphasised are dimmed.
constexpr Rgb colour(int index, int emphasis) {
    const u32 v = kRgbPalette[index & 63];
    auto dim = [](u32 channel, bool dimmed) {
        return static_cast<u8>(dimmed ? channel * 191 / 256 : channel);
    };
    return {dim(v >> 16 & 255, emphasis & 6), dim(v >> 8 & 255, emphasis & 5), dim(v & 255, emphasis & 3)};
}

/// Luma with the weights and rounding that image libraries use (ITU-R BT.601).
constexpr u8 luma(Rgb c) { return static_cast<u8>((c.r * 4899 + c.g * 9617 + c.b * 1868 + 8192) >> 14); }

}  // namespace wz
