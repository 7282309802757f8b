#pragma once
#include "smb/memory.hpp"

namespace wz::smb {

/// Progress through the rooms of an episode. Ground counts once: going back and coming again earns nothing.
struct Journey {
    /// Rooms that are remembered. The longest stages have six; a whole game has more than this, and forgets
    /// the room that it entered first.
    static constexpr int kRooms = 64;
    struct Room {
        u32 name;
        i32 furthest;
    };
    Room room[kRooms] = {};  ///< room number i of the episode at i % kRooms
    i32 rooms = 0;           ///< different rooms entered
    int remembered() const { return rooms < kRooms ? rooms : kRooms; }
    i32 progress = 0, x_max = 0;
    i32 since_progress = 0;  ///< decisions without any
    i32 wrong_turns = 0;     ///< of a maze, by the game's own judgement

    /// `x` is the player's position: usually x_pos(ram), unless an emulator tells it in another way.
    void begin(const u8* ram, i32 x);
    void look(const u8* ram, i32 x, bool stood_only);

    static constexpr u32 kNowhere = ~0u;
    u32 last_room = kNowhere;  ///< at the last look; nowhere while the player was not in control
    i32 last_x = 0, last_passed = 0, last_right = 0;

  private:
    void look_for_wrong_turn(const u8* ram, u32 here, i32 x);
};

}  // namespace wz::smb
