#pragma once
#include <span>
#include <string>
#include <vector>

#include "nes/types.hpp"
#include "threads/team.hpp"

namespace wz {

/// Compresses arrays for the network in pieces, on several threads: the size of each piece, four bytes, the
/// lowest first, then the pieces.
class Packer {
  public:
    explicit Packer(int threads);

    std::vector<u8> pack(std::span<const u8> bytes);
    /// Fills all of `out`. Throws std::invalid_argument if the packed bytes are not those of so many.
    void unpack(std::span<const u8> packed, std::span<u8> out);

  private:
    static int pieces_of(std::size_t size);

    Team team_;
    std::vector<u8> scratch_;
    std::vector<std::size_t> sizes_, starts_;
};

}  // namespace wz
