#pragma once
#include <array>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "nes/types.hpp"

namespace wz {

namespace jit {
class Translation;
}

/// The image is not one this console can run. The message is a sentence for the user.
struct RomError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class Mirroring : u8 { Horizontal, Vertical, FourScreen };

/// What is inside the plastic: read-only, shared by every Machine that plays it. Mapper 0 (NROM) only.
struct Cartridge {
    std::array<u8, 0x8000> prg{};                  ///< $8000-$FFFF; a 16 KB image stands twice
    std::array<u8, 0x2000> chr{};                  ///< pattern tables; all zero when `chr_is_ram`
    alignas(64) std::array<u8, 512 * 64> tiles{};  ///< chr decoded: 512 tiles x 8 rows x 8 pixels of 0..3
    std::array<u8, 512> trainer{};                 ///< copied to $7000 at power-on when `has_trainer`
    std::array<u16, 4> nametable{};                ///< offset into VRAM of the four logical nametables
    bool chr_is_ram = false;
    bool has_trainer = false;
    Mirroring mirroring = Mirroring::Horizontal;
    /// `prg` as native code; null where only the interpreter runs. Copies share it, so their `prg` must not
    /// change.
    std::shared_ptr<jit::Translation> translation;
    u64 hash = 0;  ///< FNV-1a of PRG and CHR: tells snapshots of different games apart

    /// Parses an iNES or NES 2.0 image. Throws RomError.
    static std::shared_ptr<const Cartridge> parse(std::span<const u8> image);
};

/// Decodes one 16-byte pattern into 64 pixels of 0..3, row by row.
void decode_tile(const u8* pattern, u8* pixels);

}  // namespace wz
