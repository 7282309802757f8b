#pragma once
#include <cstddef>
#include <cstring>
#include <vector>

#include "nes/types.hpp"

namespace wz::test {

inline constexpr std::size_t kSnapshotHeader = 36;

/// Puts a changed body under a checksum that fits, so that the loader must judge the values themselves.
inline void reseal(std::vector<u8>& blob) {
    if (blob.size() < kSnapshotHeader) return;
    u64 sum = 0xcbf29ce484222325ull;
    for (std::size_t i = kSnapshotHeader; i < blob.size(); ++i) sum = (sum ^ blob[i]) * 0x100000001b3ull;
    const u64 size = blob.size() - kSnapshotHeader;
    std::memcpy(blob.data() + 20, &size, 8);
    std::memcpy(blob.data() + 28, &sum, 8);
}

}  // namespace wz::test
