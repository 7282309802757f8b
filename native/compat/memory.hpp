#pragma once
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "nes/types.hpp"

namespace wz::compat {

/// Blocks of memory of one size. One that is given back is handed out again, contents and all: the system
/// takes longer to map fresh pages than we do to write to them.
class Memory {
  public:
    static constexpr std::size_t kMostSpare = 8;  ///< beyond these, blocks go back to the system

    explicit Memory(std::size_t size) : size_(size) { spare_.reserve(kMostSpare); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
        for (u8* block : spare_) release(block);
    }

    u8* take() {
        {
            std::lock_guard hold(lock_);
            if (!spare_.empty()) {
                u8* const block = spare_.back();
                spare_.pop_back();
                return block;
            }
        }
        return static_cast<u8*>(::operator new(size_, kAlignment));
    }
    void give_back(u8* block) noexcept {
        {
            std::lock_guard hold(lock_);
            if (spare_.size() < kMostSpare) return spare_.push_back(block);
        }
        release(block);
    }

  private:
    static constexpr std::align_val_t kAlignment{64};  // so that no write meets two cache lines

    static void release(u8* block) noexcept { ::operator delete(block, kAlignment); }

    const std::size_t size_;
    std::mutex lock_;
    std::vector<u8*> spare_;
};

}  // namespace wz::compat
