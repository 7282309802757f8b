// Memory for translated code: enough pieces on large pages, and a translator that runs out of heap.
#include "nes/jit_memory.hpp"

#include <cstdlib>
#include <new>

#include "nes/jit_backend.hpp"
#include "tests/expect.hpp"
#include "tests/jit_random_program.hpp"

namespace {

std::atomic<int> allocations_left{-1};  // fewer than none: no limit

void* allocate(std::size_t size) {
    if (allocations_left >= 0 && allocations_left-- == 0) {
        allocations_left = 0;
        throw std::bad_alloc();
    }
    if (void* p = std::malloc(size ? size : 1)) return p;
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

using namespace wz;
using test::Random;

void pieces_on_large_pages() {
    for (std::size_t page : {std::size_t{0}, std::size_t{1} << 14, std::size_t{1} << 16}) {
        jit::CodeMemory memory(page);
        const u8 code[] = {0xC3};
        int pieces = 0;
        while (pieces < 1000 && memory.append(code)) ++pieces;
        EXPECT(pieces == 1000);
        // Within reach of a branch on every processor.
        EXPECT(memory.next() < 128u << 20);
    }
}

void play(Machine& m, const Cartridge& cart, bool translate, bool starved) {
    Random r(5);
    power_on(m, cart, Region::Ntsc);
    for (u8& b : m.ram) b = r.byte();
    for (int i = 0; i < 60; ++i) {
        m.jammed = 0;
        m.pc = static_cast<u16>(0x8000 | r.next());
        // Each frame gets a little further before the heap is empty.
        if (starved) allocations_left = i < 40 ? i : -1;
        run_frame(m, cart, r.byte(), 0, nullptr, {true, translate});
        allocations_left = -1;
    }
}

void translator_without_heap() {
    Random r(3);
    const auto cart = cartridge_of(test::structured_program(r), r);
    if (!cart->translation) return;
    static Machine starved, interpreted;
    play(starved, *cart, true, true);
    play(interpreted, *cart, false, false);
    EXPECT(std::memcmp(&starved, &interpreted, sizeof starved) == 0);
}

}  // namespace

int main() {
#if WZ_JIT
    pieces_on_large_pages();
    translator_without_heap();
#endif
    return test::result("jit_memory");
}
