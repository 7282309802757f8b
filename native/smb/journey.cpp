#include "smb/journey.hpp"

#include <algorithm>

namespace wz::smb {

void Journey::begin(const u8* ram, i32 x) {
    *this = {};
    room[0] = {smb::room(ram), x};
    rooms = 1;
    x_max = std::max(0, room[0].furthest);
    look_for_wrong_turn(ram, room[0].name, room[0].furthest);
}

void Journey::look(const u8* ram, i32 x, bool stood_only) {
    const u32 here = smb::room(ram);
    x_max = std::max(x_max, x);
    look_for_wrong_turn(ram, here, x);
    // Between two rooms the position is still that of the old one.
    if (ram[at::kPlayerState] != kNormal || in_warp_zone(ram)) return;
    if (stood_only && !stands(ram)) return;
    // The newest first: it is nearly always the one.
    for (int i = rooms - 1; i >= rooms - remembered(); --i) {
        Room& known = room[i % kRooms];
        if (known.name != here) continue;
        if (x > known.furthest) {
            progress += x - known.furthest;
            known.furthest = x;
            since_progress = 0;
        }
        return;
    }
    room[rooms++ % kRooms] = {here, x};
    since_progress = 0;
}

void Journey::look_for_wrong_turn(const u8* ram, u32 here, i32 x) {
    constexpr i32 kPage = 256;  // nobody walks that far in a frame
    const i32 passed = ram[at::kLoopPartsPassed], right = ram[at::kLoopPartsRight];
    const bool plays = ram[at::kPlayerState] == kNormal;
    if (plays && here == last_room) {
        const bool sent_back = x < last_x - kPage;
        const bool passed_wrongly = passed > last_passed && right == last_right;
        wrong_turns += sent_back || passed_wrongly;
    }
    last_room = plays ? here : kNowhere;
    last_x = x, last_passed = passed, last_right = right;
}

}  // namespace wz::smb
