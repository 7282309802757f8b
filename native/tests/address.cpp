// Many steps of the PPU's address register at once against one by one.
#include "nes/ppu_address.hpp"
#include "tests/expect.hpp"

using namespace wz;

int main() {
    for (int v = 0; v < 0x8000; ++v) {
        u16 down = static_cast<u16>(v), right = down, left = down;
        for (int n = 0; n <= 64; ++n, right = ppu::next_column(right), left = ppu::previous_column(left)) {
            EXPECT(ppu::columns_right(static_cast<u16>(v), n) == right);
            EXPECT(ppu::columns_right(static_cast<u16>(v), -n) == left);
        }
        for (int n = 0; n <= 261; ++n, down = ppu::next_row(down))
            EXPECT(ppu::rows_down(static_cast<u16>(v), n) == down);
    }
    // A walk in two parts, split anywhere, ends where one in single dots ends.
    for (int from = 0; from < kDotsPerLine; ++from)
        for (int to = from + 1; to <= kDotsPerLine; to += 7) {
            Ppu at_once, dot_by_dot;
            at_once.v = dot_by_dot.v = static_cast<u16>((from * 131 + to * 17) & 0x7FFF);
            at_once.t = dot_by_dot.t = static_cast<u16>((from * 29 + to) & 0x7FFF);
            ppu::walk_address(at_once, from, to, to & 1);
            for (int dot = from; dot < to; ++dot) ppu::walk_address(dot_by_dot, dot, dot + 1, to & 1);
            EXPECT(at_once.v == dot_by_dot.v);
        }
    return test::result("address");
}
