// Progress through many rooms, as in a whole game, on a made-up RAM.
#include "smb/journey.hpp"

#include "smb/game.hpp"
#include "tests/expect.hpp"

namespace {

using namespace wz;

struct Player {
    u8 ram[0x800] = {};
    smb::Journey journey;

    Player() { ram[smb::at::kPlayerState] = smb::kNormal; }
    void go(int world, int stage, int area, int x) {
        ram[smb::at::kWorld] = static_cast<u8>(world);
        ram[smb::at::kStage] = static_cast<u8>(stage);
        ram[smb::at::kAreaNumber] = static_cast<u8>(area);
        ram[smb::at::kPageX] = static_cast<u8>(x >> 8);
        ram[smb::at::kPixelX] = static_cast<u8>(x);
    }
    void look() {
        ++journey.since_progress;
        journey.look(ram, smb::x_pos(ram), false);
    }
};

/// Every room of a long game counts, not only the first ones.
void progress_never_stops() {
    Player p;
    p.go(0, 0, 0, 40);
    p.journey.begin(p.ram, smb::x_pos(p.ram));
    int rooms = 0, expected = 0;
    for (int world = 0; world < 13; ++world)
        for (int stage = 0; stage < 4; ++stage)
            for (int area = 0; area < 3; ++area, ++rooms)
                for (int x = 40; x <= 540; x += 100) {
                    p.go(world, stage, area, x);
                    p.look();
                    EXPECT(p.journey.since_progress == (rooms == 0 && x == 40));
                    expected += x > 40 ? 100 : 0;
                    EXPECT(p.journey.progress == expected);
                    EXPECT(p.journey.rooms == rooms + 1);
                }
}

/// Going back earns nothing, however many rooms of the same stages there are.
void ground_counts_once() {
    Player p;
    p.go(0, 0, 0, 0);
    p.journey.begin(p.ram, smb::x_pos(p.ram));
    for (int round = 0; round < 3; ++round)
        for (int area = 0; area < smb::Journey::kRooms; ++area)
            for (int x : {0, 300}) {
                p.go(0, 0, area, x);
                p.look();
            }
    EXPECT(p.journey.rooms == smb::Journey::kRooms);
    EXPECT(p.journey.progress == 300 * smb::Journey::kRooms);
}

/// The whole game ends with the axe of its last castle, or with the last life; a single stage ends sooner.
void the_last_axe_ends_the_game() {
    u8 ram[0x800] = {};
    const smb::Stage game{0, 0}, last{8, 4};
    ram[smb::at::kLives] = 2;
    ram[smb::at::kMode] = smb::kModeVictory;
    for (int world = 0; world < 8; ++world) {
        ram[smb::at::kWorld] = static_cast<u8>(world);
        EXPECT(smb::episode_end(ram, game) == (world == 7 ? smb::End::Axe : smb::End::None));
    }
    ram[smb::at::kStage] = 3;
    EXPECT(smb::episode_end(ram, last) == smb::End::Axe);
    ram[smb::at::kLives] = 0xFF;
    EXPECT(smb::episode_end(ram, game) == smb::End::GameOver);
}

}  // namespace

int main() {
    progress_never_stops();
    ground_counts_once();
    the_last_axe_ends_the_game();
    return test::result("journey");
}
