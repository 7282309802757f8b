#include "nes/jit_memory.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace wz::jit {

#if defined(__linux__)

CodeMemory::CodeMemory(std::size_t capacity)
    : capacity_(capacity), page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    void* at = mmap(nullptr, capacity, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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

CodeMemory::CodeMemory(std::size_t capacity) : capacity_(capacity), page_(1) {}
CodeMemory::~CodeMemory() = default;
bool CodeMemory::append(std::span<const u8>) { return false; }

#endif

}  // namespace wz::jit
