#include "pool/slot.hpp"

#include <algorithm>
#include <utility>

namespace wz {
namespace {

/// `to = from` for two machines of one episode: what a level has at $6000 is in both of them already.
void copy_in_episode(Machine& to, const Machine& from, const Cartridge& c) {
    const bool same = to.wram_used == smb::kGiven && from.wram_used == smb::kGiven;
    if (!same || c.chr_is_ram || c.mirroring == Mirroring::FourScreen) return copy_machine(to, from, c);
    std::memcpy(static_cast<void*>(&to), &from, offsetof(Machine, ppu) + offsetof(Ppu, vram) + 0x800);
}

/// Frames by which random numbers may be later: nine minutes, all of them have been there by then.
constexpr int kClockFrames = 1 << 15;

}  // namespace

Slot::Slot(std::shared_ptr<const Cartridge> cartridge, const SlotConfig& config, const Resizer& resizer)
    : cartridge_(std::move(cartridge)),
      config_(&config),
      resizer_(&resizer),
      plane_(config.channels.size() * static_cast<std::size_t>(resizer.height() * resizer.width())),
      stack_(plane_ * static_cast<std::size_t>(config.frame_stack)) {
    power_on(machine_, *cartridge_, config.region);
    before_ = machine_;
}

Slot::Canvas& Slot::canvas(bool coloured) const {
    thread_local const std::unique_ptr<Canvas> mine = std::make_unique<Canvas>();
    // With several channels each of them is looked up from the colour.
    const bool one = config_->channels.size() == 1 && !coloured;
    mine->newest.encoding = mine->previous.encoding =
        one ? resizer_->encoding(config_->channels[0]) : nullptr;
    mine->newest.reader = one && resizer_->can_while_drawn() ? &mine->shrink : nullptr;
    mine->have_previous = false;
    return *mine;
}

u8* Slot::next_plane() {
    return stack_.data() + plane_ * static_cast<std::size_t>((newest_ + 1) % config_->frame_stack);
}

void Slot::play(u8 buttons, Frame* out) {
    Episode& e = episode_;
    if (config_->sticky > 0 && e.random.uniform() < config_->sticky) buttons = e.held;
    e.held = buttons;
    run_frame(machine_, *cartridge_, buttons, 0, out);
    ++e.frames;
    if (machine_.jammed && !config_->levels)
        throw smb::GameError("the game crashed: its processor met an instruction that stops it");
}

void Slot::see(const Frame& frame, const Frame* previous) {
    u8* to = next_plane();
    newest_ = (newest_ + 1) % config_->frame_stack;
    if (!frame.reader) {
        for (Channel channel : config_->channels) {
            (*resizer_)(frame, previous, channel, to);
            to += resizer_->height() * resizer_->width();
        }
    }
    if (config_->show_buttons) draw_buttons();
}

void Slot::draw_buttons() {
    const int height = resizer_->height(), width = resizer_->width();
    const int rows = std::min(height, std::max(2, height / 16));
    u8* row = stack_.data() + plane_ * static_cast<std::size_t>(newest_);
    for (std::size_t channel = 0; channel < config_->channels.size(); ++channel) {
        for (int button = 0; button < 8; ++button) {
            const int first = button * width / 8, end = (button + 1) * width / 8;
            std::fill(row + first, row + end, episode_.held >> button & 1 ? u8{255} : u8{0});
        }
        for (int i = 1; i < rows; ++i) std::copy_n(row, width, row + i * width);
        row += height * width;
    }
}

void Slot::fill_stack(const Frame& frame) {
    see(frame, nullptr);
    for (int i = 0; i < config_->frame_stack; ++i)
        if (i != newest_)
            std::memcpy(stack_.data() + plane_ * static_cast<std::size_t>(i),
                        stack_.data() + plane_ * static_cast<std::size_t>(newest_), plane_);
}

void Slot::keep_before(Scene scene, u8 buttons, int count) {
    if (scene == Scene::Held)
        copy_in_episode(before_, machine_, *cartridge_);
    else
        copy_machine(before_, machine_, *cartridge_);
    episode_before_ = episode_;
    scene_ = scene;
    scene_buttons_ = buttons;
    scene_frames_ = count;
}

void Slot::begin(std::shared_ptr<const smb::Start> start, smb::Stage stage, int stage_index) {
    start_ = std::move(start);
    copy_machine(machine_, start_->machine, *cartridge_);
    const Random random = episode_.random;
    episode_ = {};
    episode_.random = random;
    episode_.stage_index = stage_index;
    stage_ = stage;
    const bool random_start = draws_random_start();
    if (random_start) {
        // Where the first enemies are depends on it: it is turned before the stage is set up.
        copy_machine(machine_, start_->opened, *cartridge_);
        // The slow timer decides how long the stage takes to be set up, and in the game it is always as long.
        u8& slow = machine_.ram[smb::at::kInterval];
        const u8 opened = slow;
        turn_clock();
        const u8 turned = std::exchange(slow, opened);
        smb::set_up(machine_, *cartridge_);
        slow = turned;
        machine_.ram[smb::at::kFrameCounter] = start_->count;
        // A new game gives the hidden 1-up block of a world's first stage away; later it must be earned.
        if (stage.stage == 1 && episode_.random.below(2)) machine_.ram[smb::at::kOneUpBlock] = 0;
    }
    const int idle = config_->noop_max > 0 ? episode_.random.below(config_->noop_max + 1) : 0;
    const int frames = idle + random_start;  // of a random start, the first frame is not played yet
    keep_before(frames ? Scene::Idle : Scene::Start, 0, frames);
    Canvas& on = canvas();
    on.shrink.to(*resizer_, nullptr, next_plane());
    for (int i = 1; i <= frames; ++i)
        run_frame(machine_, *cartridge_, 0, 0, i == frames ? &on.newest : nullptr);
    episode_.frames = idle;
    episode_.journey.begin(machine_.ram, smb::x_pos(machine_.ram));
    fill_stack(frames ? on.newest : start_->frame);
}

void Slot::begin(const std::vector<u8>& snapshot, const StageLookup& lookup) {
    const Random random = episode_.random;
    load(snapshot, lookup);
    const smb::Journey journey = episode_.journey;
    const i32 stage_index = episode_.stage_index;
    episode_ = {};
    episode_.random = random;
    episode_.stage_index = stage_index;
    episode_.from_snapshot = 1;
    // Ground covered before the snapshot stays covered: where a maze leads back, it must not be paid again.
    episode_.journey = journey;
    episode_.journey.since_progress = 0;
    if (draws_random_start()) turn_clock();
}

bool Slot::draws_random_start() {
    return config_->random_start > 0 && episode_.random.uniform() < config_->random_start;
}

void Slot::turn_clock() { smb::pass_time(machine_, episode_.random.below(kClockFrames)); }

int Slot::hold(u8 buttons, int count, int draw_last, Canvas& on) {
    Episode& e = episode_;
    on.have_previous = false;
    for (int i = 0; i < count; ++i) {
        // The last frame goes to `newest`, the one before it, where both are wanted, to `previous`.
        const bool last = i + 1 == count, draw = count - i <= draw_last;
        Frame* out = !draw ? nullptr : last ? &on.newest : &on.previous;
        on.have_previous = last && draw_last > 1 && count > 1;
        if (last) on.shrink.to(*resizer_, on.have_previous ? &on.previous : nullptr, next_plane());
        play(buttons, out);
        e.look(machine_.ram, smb::x_pos(machine_.ram), stage_, config_->ground_stood);
        if (over()) return i + 1;
        const int scenes = smb::skip_scenes(machine_, *cartridge_, stage_.whole_game(), out);
        e.frames += scenes;
        // A level that stops the game's processor, or never gives the player control again.
        if (config_->levels && (machine_.jammed || scenes >= smb::kLongestScene)) {
            e.end = smb::End::Stalled;
            return i + 1;
        }
    }
    return count;
}

void Slot::step(int action) {
    const u8 buttons = config_->actions[static_cast<std::size_t>(action)];
    const int noise = config_->frame_skip_noise, draw_last = config_->max_pool ? 2 : 1;
    const int count = config_->frame_skip + (noise ? episode_.random.below(2 * noise + 1) - noise : 0);
    Canvas& on = canvas();
    keep_before(Scene::Held, buttons, count);
    if (const int played = hold(buttons, count, draw_last, on); played < count) {
        // The episode ended on a frame that was not drawn: play these frames once more, up to it, and look.
        copy_in_episode(machine_, before_, *cartridge_);
        episode_ = episode_before_;
        scene_frames_ = played;
        hold(buttons, played, draw_last, on);
    }
    episode_.count_decision(config_->step_limit, config_->stall_limit);
    see(on.newest, on.have_previous ? &on.previous : nullptr);
}

void Slot::draw(Frame& out) {
    if (scene_ == Scene::Start) {
        std::memcpy(static_cast<void*>(&out), &start_->frame, sizeof out);
        return;
    }
    const auto now = std::make_unique<Machine>(machine_);
    const Episode episode = episode_;
    if (scene_ == Scene::Restored) {
        // A snapshot holds no screen; the next frame is the nearest there is.
        run_frame(machine_, *cartridge_, 0, 0, &out);
    } else {
        machine_ = before_;
        episode_ = episode_before_;
        if (scene_ == Scene::Idle) {
            for (int i = 1; i <= scene_frames_; ++i)
                run_frame(machine_, *cartridge_, 0, 0, i == scene_frames_ ? &out : nullptr);
        } else {
            Canvas& on = canvas(true);
            hold(scene_buttons_, scene_frames_, 1, on);
            std::memcpy(static_cast<void*>(&out), &on.newest, sizeof out);
        }
    }
    machine_ = *now;
    episode_ = episode;
}

void Slot::observe(u8* out) const {
    for (int i = 1; i <= config_->frame_stack; ++i) {
        const int at = (newest_ + i) % config_->frame_stack;
        std::memcpy(out, stack_.data() + plane_ * static_cast<std::size_t>(at), plane_);
        out += plane_;
    }
}

}  // namespace wz
