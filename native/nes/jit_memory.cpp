#include "nes/jit_memory.hpp"

#include <algorithm>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace wz::jit {

#if defined(__linux__)

CodeMemory::CodeMemory(std::size_t page)
    : page_(page ? page : static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
      // Super Mario Bros fills 500 pieces and 2 MB. All of it must be within reach of a branch (128 MB).
      capacity_(std::clamp(page_ * 1024, std::size_t{8} << 20, std::size_t{64} << 20)) {
    void* at = mmap(nullptr, capacity_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) base_ = static_cast<u8*>(at);
}

CodeMemory::~CodeMemory() {
    if (base_) munmap(base_, capacity_);
}

bool CodeMemory::append(std::span<const u8> code) {
    const std::size_t size = (code.size() + page_ - 1) / page_ * page_;
    if (!base_ || used_ + size > capacity_) return false;
    u8* const to = base_ + used_;
    if (mprotect(to, size, PROT_READ | PROT_WRITE) != 0) return false;
    std::memcpy(to, code.data(), code.size());
    if (mprotect(to, size, PROT_READ | PROT_EXEC) != 0) return false;
    __builtin___clear_cache(reinterpret_cast<char*>(to), reinterpret_cast<char*>(to + size));
    used_ += static_cast<u32>(size);
    return true;
}

#else

CodeMemory::CodeMemory(std::size_t) : page_(1), capacity_(0) {}
CodeMemory::~CodeMemory() = default;
bool CodeMemory::append(std::span<const u8>) { return false; }

#endif

}  // namespace wz::jit
