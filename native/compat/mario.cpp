#include "compat/mario.hpp"

#include <algorithm>

#include "smb/memory.hpp"

namespace wz::compat {
namespace {

using namespace smb;

/// Longest scene that is skipped, in frames: some of the game's take a minute, none five.
constexpr int kLongestScene = 20000;
constexpr u8 kStart = 8;

/// Digits as the original joins them: a byte above 9 takes two or three places.
i64 joined(const u8* ram, int addr, int count) {
    i64 v = 0;
    for (int i = 0; i < count; ++i)
        v = v * (ram[addr + i] < 10 ? 10 : ram[addr + i] < 100 ? 100 : 1000) + ram[addr + i];
    return v;
}
i64 clock_of(const u8* ram) { return joined(ram, at::kTime, 3); }
i64 x_of(const u8* ram) { return ram[at::kPageX] * 256 + ram[at::kPixelX]; }

/// Counts the frames of a scene.
struct Patience {
    int left = kLongestScene;
    void spend() {
        if (--left < 0)
            throw StuckError(
                "The game waits for something that does not come, as after the last castle: "
                "gym-super-mario-bros would "
                "hang here. Reset the environment.");
    }
};

}  // namespace

Info info_of(const u8* r) {
    Info info;
    info[kCoins] = joined(r, at::kCoins, 2);
    info[kFlagGet] = flag_get(r);
    info[kLife] = r[at::kLives];
    info[kScore] = joined(r, at::kScore, 6);
    info[kStageField] = r[at::kStage] + 1;
    info[kStatus] = r[at::kStatus];
    info[kTime] = clock_of(r);
    info[kWorldField] = r[at::kWorld] + 1;
    info[kXPos] = x_of(r);
    info[kYPos] = y_pos(r);
    return info;
}

Player::Player(std::shared_ptr<const Game> game, bool has_wram, Screen screen) {
    console_.cartridge = game->cartridge.get();
    console_.game = std::move(game);
    console_.has_wram = has_wram;
    console_.screen = screen;
    compat::reset(console_);
}

void Player::frame(u8 buttons) {
    console_.pads[0].buttons = buttons;
    compat::step(console_);
}

void Player::backup() {
    saved_ = console_.state;
    saved_screen_.assign(console_.screen.pixels, console_.screen.pixels + console_.screen.size());
}

void Player::restore() {
    console_.state = saved_;
    if (!saved_screen_.empty())
        std::memcpy(console_.screen.pixels, saved_screen_.data(), saved_screen_.size());
}

void Player::save(std::vector<u8>& out) const {
    auto put = [&out](const void* from, std::size_t n) {
        const u8* bytes = static_cast<const u8*>(from);
        out.insert(out.end(), bytes, bytes + n);
    };
    put(&console_.state, sizeof(State));
    put(console_.pads, sizeof console_.pads);
    put(&last, sizeof last);
    put(console_.screen.pixels, console_.screen.size());
    put(&saved_, sizeof(State));
    put(saved_screen_.data(), saved_screen_.size());
}

bool Player::load(const u8* from, std::size_t size) {
    const std::size_t screen = console_.screen.size();
    const std::size_t least = 2 * sizeof(State) + sizeof console_.pads + sizeof last + screen;
    if (size != least && size != least + screen) return false;
    auto take = [&from](void* to, std::size_t n) {
        std::memcpy(to, from, n);
        from += n;
    };
    take(&console_.state, sizeof(State));
    take(console_.pads, sizeof console_.pads);
    take(&last, sizeof last);
    take(console_.screen.pixels, screen);
    take(&saved_, sizeof(State));
    saved_screen_.assign(from, from + (size - least));
    return true;
}

void Player::begin_like(const Player& other) {
    console_.state = other.saved_;
    std::memcpy(console_.screen.pixels, other.saved_screen_.data(), other.saved_screen_.size());
    if (console_.shown) console_.shown->forget();
    mark();
}

void Player::mark() { last = {clock_of(ram()), x_of(ram())}; }

void Player::skip_start_screen(const Target& target) {
    u8* r = console_.state.shell.ram;
    Patience patience;
    frame(kStart);
    frame(0);
    while (clock_of(r) == 0) {
        frame(kStart);
        if (target.single()) {
            r[at::kWorld] = static_cast<u8>(target.world);
            r[at::kStage] = static_cast<u8>(target.stage);
            r[at::kArea] = static_cast<u8>(target.area);
        }
        frame(0);
        r[at::kPreLevelTimer] = 0;
        patience.spend();
    }
    last.time = clock_of(r);
    while (clock_of(r) >= last.time) {
        last.time = clock_of(r);
        frame(kStart);
        frame(0);
        patience.spend();
    }
}

void Player::skip_scenes(bool single) {
    u8* r = console_.state.shell.ram;
    Patience patience;
    if (dying(r)) {
        r[at::kPlayerState] = kDead;
        frame(0);
    }
    if (!single && world_over(r)) {
        const i64 time = clock_of(r);
        while (clock_of(r) == time) {
            frame(0);
            patience.spend();
        }
    }
    if (r[at::kAreaChangeTimer] > 1 && r[at::kAreaChangeTimer] < 255) r[at::kAreaChangeTimer] = 1;
    while (busy(r) || world_over(r)) {
        r[at::kPreLevelTimer] = 0;
        frame(0);
        patience.spend();
    }
}

Outcome Player::play(bool single) {
    frame();
    const u8* r = ram();
    const Last now = {clock_of(r), x_of(r)};
    const i64 moved = now.x - last.x, ticked = now.time - last.time;
    last = now;
    Outcome out;
    const bool lost = dying(r) || dead(r);
    const i64 reward = (moved < -5 || moved > 5 ? 0 : moved) + (ticked > 0 ? 0 : ticked) - (lost ? 25 : 0);
    out.reward = static_cast<double>(std::clamp<i64>(reward, -15, 15));
    out.info = info_of(r);
    out.done = single ? lost || flag_get(r) : game_over(r);
    if (!out.done) skip_scenes(single);
    return out;
}

Players::Players(std::shared_ptr<const Game> game, bool has_wram, std::vector<Target> targets,
                 int environments, int threads, bool owned, const Arrays& arrays)
    : targets_(std::move(targets)),
      start_of_(static_cast<std::size_t>(environments)),
      owned_(owned),
      unkept_(owned ? 0 : static_cast<std::size_t>(environments), Shown(false)),
      arrays_(arrays),
      team_(threads, {}) {
    const std::size_t size = Screen{nullptr, true}.size();
    origin_screens_.resize(size * targets_.size());
    for (std::size_t i = 0; i < targets_.size(); ++i)
        origins_.push_back(
            std::make_unique<Player>(game, has_wram, Screen{origin_screens_.data() + i * size, true}));
    for (std::size_t i = 0; i < static_cast<std::size_t>(environments); ++i)
        players_.push_back(std::make_unique<Player>(game, has_wram, Screen{nullptr, true}));
    const std::function<void(int)> prepare = [this](int i) {
        origins_[static_cast<std::size_t>(i)]->skip_start_screen(targets_[static_cast<std::size_t>(i)]);
        origins_[static_cast<std::size_t>(i)]->backup();
    };
    const WorkError error = team_.run(static_cast<int>(origins_.size()), prepare);
    if (error.index >= 0) throw StuckError(error.message);
}

void Players::run(const std::function<void(int)>& item) {
    const WorkError error = team_.run(environments(), item);
    if (error.index >= 0)
        throw StuckError("Environment " + std::to_string(error.index) + ": " + error.message);
}

void Players::report(std::size_t i, const Outcome& out) {
    for (std::size_t f = 0; f < kFields; ++f) arrays_.info[f * players_.size() + i] = out.info[f];
    arrays_.reward[i] = out.reward;
    arrays_.done[i] = out.done;
}

void Players::prepare(u8* observations) const {
    if (owned_)
        for (std::size_t i = 0; i < players_.size(); ++i)
            new (observations + frames_size() + i * sizeof(Shown)) Shown;
}

Shown* Players::shown(std::size_t i, u8* observations) {
    return owned_ ? std::launder(reinterpret_cast<Shown*>(observations + frames_size())) + i : &unkept_[i];
}

Player& Players::on(std::size_t i, u8* observations) {
    Player& p = *players_[i];
    p.draw_to(observations + i * p.console().screen.size(), shown(i, observations));
    return p;
}

void Players::begin(std::size_t i, u8* observations) {
    start_of_[i] = arrays_.start[i];
    Player& p = on(i, observations);
    p.begin_like(*origins_.at(static_cast<std::size_t>(start_of_[i])));
    report(i, {0, false, info_of(p.ram())});
}

void Players::reset(const u8* mask, u8* observations) {
    run([&](int index) {
        const auto i = static_cast<std::size_t>(index);
        if (mask[i])
            begin(i, observations);
        else  // somebody may have copied a frame there
            shown(i, observations)->forget();
    });
}

void Players::step(const u8* buttons, u8* observations) {
    run([&](int index) {
        const auto i = static_cast<std::size_t>(index);
        if (arrays_.done[i]) return begin(i, observations);
        Player& p = on(i, observations);
        p.console().pads[0].buttons = buttons[i];
        report(i, p.play(targets_[static_cast<std::size_t>(start_of_[i])].single()));
    });
}

}  // namespace wz::compat
