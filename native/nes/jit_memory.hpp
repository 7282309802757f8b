#pragma once
#include <span>

#include "nes/types.hpp"

namespace wz::jit {

/// Memory for machine code that only grows. A page is written before anything in it runs and never again, so
/// no page is ever writable and executable at once (for a thread, on macOS), other threads may run what is
/// there, and a forked child has its own copy.
class CodeMemory {
  public:
    /// Reserves address space; nothing is used yet. Where the system refuses, `append` fails. `page` is a
    /// multiple of the system's pages (0: that size); each piece begins a new one.
    explicit CodeMemory(std::size_t page = 0);
    ~CodeMemory();
    CodeMemory(const CodeMemory&) = delete;
    CodeMemory& operator=(const CodeMemory&) = delete;

    const u8* base() const { return base_; }
    /// Where the next piece will go, from the base.
    u32 next() const { return used_; }
    /// Puts a piece there. False when it does not fit or the system refuses; then the place stays the next.
    bool append(std::span<const u8> code);

  private:
    u8* base_ = nullptr;
    std::size_t page_, capacity_;
    u32 used_ = 0;
};

}  // namespace wz::jit
