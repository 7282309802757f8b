#include "nes/jit_memory.hpp"

#include <algorithm>

#if defined(__linux__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#endif
#if defined(__APPLE__)
#include <libkern/OSCacheControl.h>
#include <pthread.h>
#endif

namespace wz::jit {
namespace {

#if defined(__linux__)

void* reserve(std::size_t size) {
    return mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

bool put(u8* to, std::size_t pages, std::span<const u8> code) {
    if (mprotect(to, pages, PROT_READ | PROT_WRITE) != 0) return false;
    std::memcpy(to, code.data(), code.size());
    if (mprotect(to, pages, PROT_READ | PROT_EXEC) != 0) return false;
    __builtin___clear_cache(reinterpret_cast<char*>(to), reinterpret_cast<char*>(to + pages));
    return true;
}

#elif defined(__APPLE__)

// Never run by us. The system lets one mapping be written or executed, each thread by itself: what this
// thread may write, others go on executing.

void* reserve(std::size_t size) {
    return mmap(nullptr, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_JIT, -1,
                0);
}

bool put(u8* to, std::size_t, std::span<const u8> code) {
    if (__builtin_available(macOS 11.0, *)) pthread_jit_write_protect_np(0);
    std::memcpy(to, code.data(), code.size());
    if (__builtin_available(macOS 11.0, *)) pthread_jit_write_protect_np(1);
    sys_icache_invalidate(to, code.size());
    return true;
}

#endif

}  // namespace

#if defined(__linux__) || defined(__APPLE__)

CodeMemory::CodeMemory(std::size_t page)
    : page_(page ? page : static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
      // Super Mario Bros fills 500 pieces and 2 MB. All of it must be within reach of a branch (128 MB).
      capacity_(std::clamp(page_ * 1024, std::size_t{8} << 20, std::size_t{64} << 20)) {
    void* at = reserve(capacity_);
    if (at != MAP_FAILED) base_ = static_cast<u8*>(at);
}

CodeMemory::~CodeMemory() {
    if (base_) munmap(base_, capacity_);
}

bool CodeMemory::append(std::span<const u8> code) {
    const std::size_t size = (code.size() + page_ - 1) / page_ * page_;
    if (!base_ || used_ + size > capacity_) return false;
    if (!put(base_ + used_, size, code)) return false;
    used_ += static_cast<u32>(size);
    return true;
}

#else

CodeMemory::CodeMemory(std::size_t) : page_(1), capacity_(0) {}
CodeMemory::~CodeMemory() = default;
bool CodeMemory::append(std::span<const u8>) { return false; }

#endif

}  // namespace wz::jit
