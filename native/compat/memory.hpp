#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "nes/types.hpp"

namespace wz::compat {

/// Blocks of memory of one size. One that is given back is handed out again, contents and all: the system
/// takes longer to map fresh pages than we do to write to them, and what is there may need few changes.
class Memory {
  public:
    static constexpr std::size_t kMostSpare = 8;  ///< beyond these, blocks go back to the system

    /// `prepare` is called once with each new block.
    Memory(std::size_t size, std::function<void(u8*)> prepare) : size_(size), prepare_(std::move(prepare)) {
        spare_.reserve(kMostSpare);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() {
        for (u8* block : spare_) release(block);
    }

    u8* take() {
        std::lock_guard hold(lock_);
        taken_.push_back(nullptr);  // it stays so if there is no memory left
        u8*& block = taken_.back();
        if (spare_.empty()) {
            block = static_cast<u8*>(::operator new(size_, kAlignment));
            prepare_(block);
        } else {
            block = spare_.back();
            spare_.pop_back();
        }
        return block;
    }
    void give_back(u8* block) noexcept {
        std::lock_guard hold(lock_);
        // Most often the one before the last: it is looked for from there.
        taken_.erase(std::next(std::find(taken_.rbegin(), taken_.rend(), block)).base());
        if (spare_.size() < kMostSpare)
            spare_.push_back(block);
        else
            release(block);
    }
    /// Whether this is a block that was taken and not yet given back.
    bool has_taken(const u8* block) {
        std::lock_guard hold(lock_);
        return std::find(taken_.rbegin(), taken_.rend(), block) != taken_.rend();
    }

  private:
    static constexpr std::align_val_t kAlignment{64};  // so that no write meets two cache lines

    static void release(u8* block) noexcept { ::operator delete(block, kAlignment); }

    const std::size_t size_;
    const std::function<void(u8*)> prepare_;
    std::mutex lock_;
    std::vector<u8*> spare_, taken_;
};

}  // namespace wz::compat
