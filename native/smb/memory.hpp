#pragma once
#include "nes/machine.hpp"

/// What the RAM of Super Mario Bros means. The addresses are the same in every known dump, and in the Lost
/// Levels.
namespace wz::smb {

namespace at {
inline constexpr u16 kFrameCounter = 0x0009, kPlayerState = 0x000E, kEnemyType = 0x0016, kFloatState = 0x001D,
                     kPageX = 0x006D, kPixelX = 0x0086, kViewportY = 0x00B5, kPixelY = 0x03B8,
                     kWarpZone = 0x06D6, kLoopPartsRight = 0x06D9, kLoopPartsPassed = 0x06DA,
                     kAreaChangeTimer = 0x06DE, kSwimming = 0x0704, kLoopCommand = 0x0745, kAreaType = 0x074E,
                     kAreaNumber = 0x074F, kStatus = 0x0756, kLives = 0x075A, kStage = 0x075C,
                     kOneUpBlock = 0x075D, kWorld = 0x075F, kArea = 0x0760, kMode = 0x0770, kTask = 0x0772,
                     kInterval = 0x077F, kPreLevelTimer = 0x07A0, kRandom = 0x07A7, kScore = 0x07DE,
                     kCoins = 0x07ED, kTime = 0x07F8;
}

enum PlayerState : u8 { kDead = 0x06, kEntering = 0x07, kNormal = 0x08, kDying = 0x0B };
inline constexpr u8 kBowser = 0x2D, kFlagpole = 0x31, kModeTitle = 0, kModeVictory = 2, kPlaying = 3,
                    kLastWorld = 7;

inline int digits(const u8* ram, u16 addr, int count) {
    int v = 0;
    for (int i = 0; i < count; ++i) v = v * 10 + ram[addr + i];
    return v;
}
/// The page is signed: where a maze sends the player back four pages, he may come to stand before page 0.
inline int x_pos(const u8* r) { return static_cast<i8>(r[at::kPageX]) * 256 + r[at::kPixelX]; }
inline int y_pos(const u8* r) { return (r[at::kViewportY] < 1 ? 510 : 255) - r[at::kPixelY]; }
inline int time_left(const u8* r) { return digits(r, at::kTime, 3); }

inline bool dying(const u8* r) { return r[at::kPlayerState] == kDying || r[at::kViewportY] > 1; }
inline bool dead(const u8* r) { return r[at::kPlayerState] == kDead; }
inline bool game_over(const u8* r) { return r[at::kLives] == 0xFF; }
inline bool world_over(const u8* r) { return r[at::kMode] == kModeVictory; }
/// Sliding down the flagpole, or past Bowser; a vine looks the same but for the enemy beside it.
inline bool stage_over(const u8* r) {
    for (int i = 0; i < 5; ++i)
        if (r[at::kEnemyType + i] == kBowser || r[at::kEnemyType + i] == kFlagpole)
            return r[at::kFloatState] == 3;
    return false;
}
inline bool flag_get(const u8* r) { return world_over(r) || stage_over(r); }
/// The player can't act: walking in by himself, in a pipe, on a vine, between lives.
inline bool busy(const u8* r) { return r[at::kPlayerState] <= 5 || r[at::kPlayerState] == kEntering; }

/// Stands on something, hangs on a vine or a pole, or swims: not in mid-jump, and not falling.
inline bool stands(const u8* r) {
    return r[at::kFloatState] == 0 || r[at::kFloatState] == 3 || r[at::kSwimming] != 0;
}
/// Where pipes lead to other worlds: beyond the stage, not a part of it.
inline bool in_warp_zone(const u8* r) { return r[at::kWarpZone] != 0; }

/// One number for the room the player is in, so that a position is compared only with positions in the same
/// one. By type and number of the area that was loaded: the pointer beside them ($0750) is where the next
/// pipe leads, and changes while the player walks towards it.
inline u32 room(const u8* r) {
    return static_cast<u32>(r[at::kWorld]) << 24 | static_cast<u32>(r[at::kStage]) << 16 |
           static_cast<u32>(r[at::kAreaType]) << 8 | r[at::kAreaNumber];
}

}  // namespace wz::smb
