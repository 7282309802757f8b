#include "pool/slot.hpp"

#include <algorithm>

#include "nes/snapshot.hpp"

namespace wz {

void Journey::begin(const u8* ram) {
    *this = {};
    room[0] = smb::room(ram);
    furthest[0] = smb::x_pos(ram);
    rooms = 1;
    x_max = std::max(0, furthest[0]);
    look_for_wrong_turn(ram, room[0], furthest[0]);
}

void Journey::look(const u8* ram, bool stood_only) {
    const u32 here = smb::room(ram);
    const i32 x = smb::x_pos(ram);
    x_max = std::max(x_max, x);
    look_for_wrong_turn(ram, here, x);
    // Between two rooms the position is still that of the old one.
    if (ram[smb::at::kPlayerState] != smb::kNormal || smb::in_warp_zone(ram)) return;
    if (stood_only && !smb::stands(ram)) return;
    int i = 0;
    while (i < rooms && room[i] != here) ++i;
    if (i == rooms) {
        if (rooms == kRooms) return;
        room[rooms] = here;
        furthest[rooms++] = x;
        since_progress = 0;
    } else if (x > furthest[i]) {
        progress += x - furthest[i];
        furthest[i] = x;
        since_progress = 0;
    }
}

void Journey::look_for_wrong_turn(const u8* ram, u32 here, i32 x) {
    constexpr i32 kPage = 256;  // nobody walks that far in a frame
    const i32 passed = ram[smb::at::kLoopPartsPassed], right = ram[smb::at::kLoopPartsRight];
    const bool plays = ram[smb::at::kPlayerState] == smb::kNormal;
    if (plays && here == last_room) {
        const bool sent_back = x < last_x - kPage;
        const bool passed_wrongly = passed > last_passed && right == last_right;
        wrong_turns += sent_back || passed_wrongly;
    }
    last_room = plays ? here : kNowhere;
    last_x = x, last_passed = passed, last_right = right;
}

Slot::Slot(std::shared_ptr<const Cartridge> cartridge, const SlotConfig& config, const Resizer& resizer)
    : cartridge_(std::move(cartridge)),
      config_(&config),
      resizer_(&resizer),
      plane_(config.channels.size() * static_cast<std::size_t>(resizer.height() * resizer.width())),
      stack_(plane_ * static_cast<std::size_t>(config.frame_stack)) {
    power_on(machine_, *cartridge_, Region::Ntsc);
    before_ = machine_;
}

Slot::Canvas& Slot::canvas() {
    thread_local const std::unique_ptr<Canvas> mine = std::make_unique<Canvas>();
    return *mine;
}

void Slot::play(u8 buttons, Frame* out) {
    Episode& e = episode_;
    if (config_->sticky > 0 && e.random.uniform() < config_->sticky) buttons = e.held;
    e.held = buttons;
    run_frame(machine_, *cartridge_, buttons, 0, out);
    ++e.frames;
    if (machine_.jammed)
        throw smb::GameError("the game crashed: its processor met an instruction that stops it");
}

void Slot::see(const Canvas& on) {
    newest_ = (newest_ + 1) % config_->frame_stack;
    u8* to = stack_.data() + plane_ * static_cast<std::size_t>(newest_);
    const std::size_t one = static_cast<std::size_t>(resizer_->height() * resizer_->width());
    for (Channel channel : config_->channels) {
        (*resizer_)(on.newest, on.have_previous ? &on.previous : nullptr, channel, to);
        to += one;
    }
}

void Slot::fill_stack(const Canvas& on) {
    see(on);
    for (int i = 0; i < config_->frame_stack; ++i)
        if (i != newest_)
            std::memcpy(stack_.data() + plane_ * static_cast<std::size_t>(i),
                        stack_.data() + plane_ * static_cast<std::size_t>(newest_), plane_);
}

void Slot::keep_before(Scene scene, u8 buttons, int count) {
    copy_machine(before_, machine_, *cartridge_);
    episode_before_ = episode_;
    scene_ = scene;
    scene_buttons_ = buttons;
    scene_frames_ = count;
}

void Slot::begin(const smb::Start& start, smb::Stage stage, int stage_index) {
    copy_machine(machine_, start.machine, *cartridge_);
    const Random random = episode_.random;
    episode_ = {};
    episode_.random = random;
    start_ = &start;
    stage_ = stage;
    stage_index_ = stage_index;
    from_snapshot_ = 0;
    const int idle = config_->noop_max > 0 ? episode_.random.below(config_->noop_max + 1) : 0;
    keep_before(idle ? Scene::Idle : Scene::Start, 0, idle);
    Canvas& on = canvas();
    on.have_previous = false;
    if (idle == 0) std::memcpy(static_cast<void*>(&on.newest), &start.frame, sizeof(Frame));
    for (int i = 1; i <= idle; ++i) {
        run_frame(machine_, *cartridge_, 0, 0, i == idle ? &on.newest : nullptr);
        ++episode_.frames;
    }
    episode_.journey.begin(machine_.ram);
    fill_stack(on);
}

void Slot::begin(const std::vector<u8>& snapshot, int stage_index) {
    load(snapshot);
    stage_index_ = stage_index;
    const Random random = episode_.random;
    const Journey journey = episode_.journey;
    episode_ = {};
    episode_.random = random;
    // Ground covered before the snapshot stays covered: where a maze leads back, it must not be paid again.
    episode_.journey = journey;
    episode_.journey.since_progress = 0;
    from_snapshot_ = 1;
}

int Slot::hold(u8 buttons, int count, int draw_last, Canvas& on) {
    Episode& e = episode_;
    on.have_previous = false;
    for (int i = 0; i < count; ++i) {
        // The last frame goes to `newest`, the one before it, where both are wanted, to `previous`.
        const bool last = i + 1 == count, draw = count - i <= draw_last;
        Frame* out = !draw ? nullptr : last ? &on.newest : &on.previous;
        on.have_previous = last && draw_last > 1 && count > 1;
        play(buttons, out);
        e.end = smb::episode_end(machine_.ram, stage_);
        e.flag = smb::flag_get(machine_.ram);
        e.journey.look(machine_.ram, config_->ground_stood);
        if (over()) return i + 1;
        e.frames += smb::skip_scenes(machine_, *cartridge_, stage_.whole_game(), out);
    }
    return count;
}

void Slot::step(int action) {
    const u8 buttons = config_->actions[static_cast<std::size_t>(action)];
    const int count = config_->frame_skip, draw_last = config_->max_pool ? 2 : 1;
    Canvas& on = canvas();
    keep_before(Scene::Held, buttons, count);
    if (const int played = hold(buttons, count, draw_last, on); played < count) {
        // The episode ended on a frame that was not drawn: play these frames once more, up to it, and look.
        copy_machine(machine_, before_, *cartridge_);
        episode_ = episode_before_;
        scene_frames_ = played;
        hold(buttons, played, draw_last, on);
    }
    Episode& e = episode_;
    ++e.steps;
    ++e.journey.since_progress;
    if (!over()) {
        if (config_->step_limit > 0 && e.steps >= config_->step_limit) e.end = smb::End::StepLimit;
        if (config_->stall_limit > 0 && e.journey.since_progress >= config_->stall_limit)
            e.end = smb::End::Stalled;
    }
    see(on);
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
            Canvas& on = canvas();
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

void Slot::report(i32* out, std::size_t stride) const {
    const u8* r = machine_.ram;
    auto put = [&](Field f, i32 v) { out[static_cast<std::size_t>(f) * stride] = v; };
    put(kXPos, smb::x_pos(r));
    put(kYPos, smb::y_pos(r));
    put(kTime, smb::time_left(r));
    put(kScore, smb::digits(r, smb::at::kScore, 6));
    put(kCoins, smb::digits(r, smb::at::kCoins, 2));
    put(kLife, r[smb::at::kLives]);
    put(kWorld, r[smb::at::kWorld] + 1);
    put(kStage, r[smb::at::kStage] + 1);
    put(kArea, r[smb::at::kArea] + 1);
    put(kStatus, r[smb::at::kStatus]);
    put(kFlagGet, episode_.flag);
    put(kPlayerState, r[smb::at::kPlayerState]);
    put(kYViewport, r[smb::at::kViewportY]);
    put(kLoopCommand, r[smb::at::kLoopCommand]);
    put(kLoopPartsRight, r[smb::at::kLoopPartsRight]);
    put(kLoopPartsPassed, r[smb::at::kLoopPartsPassed]);
    put(kProgress, episode_.journey.progress);
    put(kXMax, episode_.journey.x_max);
    put(kEnd, static_cast<i32>(episode_.end));
    put(kSteps, episode_.steps);
    put(kFrames, episode_.frames);
    put(kStageIndex, stage_index_);
    put(kRoomsSeen, episode_.journey.rooms);
    put(kFromSnapshot, from_snapshot_);
    put(kWrongTurns, episode_.journey.wrong_turns);
}

namespace {
constexpr u32 kSlotKind = 2;

template <class Visitor, class Rooms, class Numbers>
void visit_episode(Visitor& v, Rooms& j, Numbers& n) {
    v(j.room), v(j.furthest), v(j.rooms), v(j.progress), v(j.x_max), v(j.since_progress);
    v(j.wrong_turns), v(j.last_room), v(j.last_x), v(j.last_passed), v(j.last_right);
    for (auto& x : n) v(x);
}
}  // namespace

std::vector<u8> Slot::save(int frames) const {
    Writer w;
    write_machine(w, machine_, *cartridge_);
    const Episode& e = episode_;
    const i32 numbers[] = {stage_.world, stage_.stage,   stage_index_, e.steps,
                           e.frames,     from_snapshot_, e.held,       static_cast<i32>(e.end),
                           e.flag};
    visit_episode(w, e.journey, numbers);
    w(e.random.state);
    w(static_cast<u32>(plane_));
    w(static_cast<u32>(frames));
    for (int i = config_->frame_stack - frames + 1; i <= config_->frame_stack; ++i)
        w.bytes(stack_.data() + plane_ * static_cast<std::size_t>((newest_ + i) % config_->frame_stack),
                plane_);
    return seal(w, *cartridge_, kSlotKind);
}

void Slot::load(const std::vector<u8>& blob) {
    Reader r = open(blob, *cartridge_, kSlotKind);
    auto machine = std::make_unique<Machine>();
    read_machine(r, *machine, *cartridge_);
    Journey journey;
    i32 n[9];
    visit_episode(r, journey, n);
    u64 random;
    u32 plane, frames;
    r(random), r(plane), r(frames);
    if (journey.rooms < 0 || journey.rooms > Journey::kRooms || n[0] < 0 || n[0] > 255 || n[1] < 0 ||
        n[1] > 255 || n[7] < 0 || n[7] > static_cast<i32>(smb::End::StepLimit))
        throw SnapshotError("The snapshot is damaged: its episode is in no possible state.");
    if (plane != plane_)
        throw SnapshotError("The snapshot's pictures have another size or colour than this environment's.");
    if (frames < 1 || frames > static_cast<u32>(config_->frame_stack) ||
        r.left() != std::size_t{frames} * plane_)
        throw SnapshotError("The snapshot holds another number of stacked frames than this environment.");
    // The newest picture stands for the older ones that were not kept.
    newest_ = config_->frame_stack - 1;
    const int missing = config_->frame_stack - static_cast<int>(frames);
    r.bytes(stack_.data() + plane_ * static_cast<std::size_t>(missing), std::size_t{frames} * plane_);
    for (int i = 0; i < missing; ++i)
        std::memcpy(stack_.data() + plane_ * static_cast<std::size_t>(i),
                    stack_.data() + plane_ * static_cast<std::size_t>(missing), plane_);
    machine_ = *machine;
    stage_ = {n[0], n[1]};
    stage_index_ = n[2], from_snapshot_ = n[5];
    episode_ = {
        Random{random}, journey, n[3], n[4], static_cast<u8>(n[6]), n[8] != 0, static_cast<smb::End>(n[7])};
    scene_ = Scene::Restored;
}

}  // namespace wz
