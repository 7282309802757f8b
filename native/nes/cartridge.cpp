#include "nes/cartridge.hpp"

#include "nes/jit.hpp"

namespace wz {
namespace {

constexpr std::size_t kHeader = 16, kPrgBank = 0x4000, kChrBank = 0x2000, kTrainer = 512;
/// Mapper 0 needs 41 KB; anything far larger is not a cartridge image at all.
constexpr std::size_t kLargestImage = 8u << 20;

[[noreturn]] void fail(const std::string& what) { throw RomError(what); }

u64 fnv1a(std::span<const u8> bytes, u64 h = 0xcbf29ce484222325ull) {
    for (u8 b : bytes) h = (h ^ b) * 0x100000001b3ull;
    return h;
}

}  // namespace

void decode_tile(const u8* pattern, u8* pixels) {
    for (int row = 0; row < 8; ++row)
        for (int col = 0; col < 8; ++col)
            pixels[row * 8 + col] = static_cast<u8>(((pattern[row] >> (7 - col)) & 1) |
                                                    (((pattern[row + 8] >> (7 - col)) & 1) << 1));
}

std::shared_ptr<const Cartridge> Cartridge::parse(std::span<const u8> image) {
    if (image.empty()) fail("The ROM is empty: give the path of an .nes file.");
    if (image.size() > kLargestImage)
        fail("The ROM is " + std::to_string(image.size()) + " bytes, too large for a mapper-0 cartridge.");
    if (image.size() < kHeader || image[0] != 'N' || image[1] != 'E' || image[2] != 'S' || image[3] != 0x1A)
        fail("The ROM does not start with the iNES magic 'NES\\x1A': it is not an .nes file.");

    const u8 flags6 = image[6], flags7 = image[7];
    const bool nes20 = (flags7 & 0x0C) == 0x08;
    u32 mapper = static_cast<u32>(flags6 >> 4);
    std::size_t prg_banks = image[4], chr_banks = image[5];
    if (nes20) {
        mapper |= (flags7 & 0xF0u) | (static_cast<u32>(image[8] & 0x0F) << 8);
        // A high nibble of 15 means an exponent-coded size, which no mapper-0 image needs.
        if ((image[9] & 0x0F) == 0x0F || (image[9] >> 4) == 0x0F)
            fail("The ROM's NES 2.0 header gives an exponent-coded size, which no mapper-0 cartridge has.");
        prg_banks |= static_cast<std::size_t>(image[9] & 0x0F) << 8;
        chr_banks |= static_cast<std::size_t>(image[9] >> 4) << 8;
    } else {
        // Old dumpers wrote their names over bytes 7-15; then the upper mapper nibble is noise.
        const bool dirty = image[12] || image[13] || image[14] || image[15];
        if (!dirty) mapper |= flags7 & 0xF0u;
    }
    if (mapper != 0)
        fail("The ROM uses mapper " + std::to_string(mapper) +
             ": only mapper 0 (NROM), as in Super Mario Bros, is supported.");
    if (prg_banks != 1 && prg_banks != 2)
        fail("The ROM declares " + std::to_string(prg_banks) +
             " program banks of 16 KB: a mapper-0 cartridge has one or two.");
    if (chr_banks > 1)
        fail("The ROM declares " + std::to_string(chr_banks) +
             " character banks of 8 KB: a mapper-0 cartridge has one, or none for character RAM.");

    const bool trainer = flags6 & 0x04;
    const std::size_t need = kHeader + (trainer ? kTrainer : 0) + prg_banks * kPrgBank + chr_banks * kChrBank;
    if (image.size() < need)
        fail("The ROM is cut short: its header promises " + std::to_string(need) + " bytes and it has " +
             std::to_string(image.size()) + ".");

    auto cart = std::make_shared<Cartridge>();
    const u8* at = image.data() + kHeader;
    if (trainer) {
        std::memcpy(cart->trainer.data(), at, kTrainer);
        cart->has_trainer = true;
        at += kTrainer;
    }
    for (std::size_t bank = 0; bank < 2; ++bank)
        std::memcpy(cart->prg.data() + bank * kPrgBank, at + (bank % prg_banks) * kPrgBank, kPrgBank);
    at += prg_banks * kPrgBank;
    cart->chr_is_ram = chr_banks == 0;
    if (!cart->chr_is_ram) {
        std::memcpy(cart->chr.data(), at, kChrBank);
        for (int t = 0; t < 512; ++t) decode_tile(cart->chr.data() + t * 16, cart->tiles.data() + t * 64);
    }
    cart->mirroring = (flags6 & 0x08)   ? Mirroring::FourScreen
                      : (flags6 & 0x01) ? Mirroring::Vertical
                                        : Mirroring::Horizontal;
    switch (cart->mirroring) {
        case Mirroring::Horizontal:
            cart->nametable = {0, 0, 0x400, 0x400};
            break;
        case Mirroring::Vertical:
            cart->nametable = {0, 0x400, 0, 0x400};
            break;
        case Mirroring::FourScreen:
            cart->nametable = {0, 0x400, 0x800, 0xC00};
            break;
    }
    cart->hash = fnv1a(cart->chr, fnv1a(cart->prg));
    cart->translation = jit::translate(*cart);
    return cart;
}

}  // namespace wz
