#include "pool/slot.hpp"

#include <algorithm>

#include "nes/snapshot.hpp"

namespace wz {

void Journey::begin(const u8* ram) {
    *this = {};
    look(ram);
}

void Journey::look(const u8* ram) {
    const u32 here = smb::room(ram);
    const i32 x = smb::x_pos(ram);
    x_max = std::max(x_max, x);
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

Slot::Slot(std::shared_ptr<const Cartridge> cartridge, const SlotConfig& config, const Resizer& resizer)
    : cartridge_(std::move(cartridge)), config_(&config), resizer_(&resizer),
      plane_(config.channels.size() * static_cast<std::size_t>(resizer.height() * resizer.width())),
      stack_(plane_ * static_cast<std::size_t>(config.frame_stack)) {
    std::memset(static_cast<void*>(&frame_), 0, sizeof frame_);
    if (config.max_pool) previous_ = std::make_unique<Frame>();
    power_on(machine_, *cartridge_, Region::Ntsc);
}

void Slot::play(u8 buttons, bool draw) {
    if (config_->sticky > 0 && random_.uniform() < config_->sticky) buttons = held_;
    held_ = buttons;
    run_frame(machine_, *cartridge_, buttons, 0, draw ? &frame_ : nullptr);
    ++frames_;
    if (machine_.jammed) throw smb::GameError("the game crashed: its processor met an instruction that stops it");
}

void Slot::see() {
    newest_ = (newest_ + 1) % config_->frame_stack;
    u8* to = stack_.data() + plane_ * static_cast<std::size_t>(newest_);
    const std::size_t one = static_cast<std::size_t>(resizer_->height() * resizer_->width());
    for (Channel channel : config_->channels) {
        (*resizer_)(frame_, have_previous_ ? previous_.get() : nullptr, channel, to);
        to += one;
    }
}

void Slot::fill_stack() {
    see();
    for (int i = 0; i < config_->frame_stack; ++i)
        if (i != newest_)
            std::memcpy(stack_.data() + plane_ * static_cast<std::size_t>(i),
                        stack_.data() + plane_ * static_cast<std::size_t>(newest_), plane_);
}

void Slot::begin(const smb::Start& start, smb::Stage stage, int stage_index) {
    machine_ = start.machine;
    stage_ = stage;
    stage_index_ = stage_index;
    steps_ = frames_ = from_snapshot_ = 0;
    held_ = 0;
    end_ = smb::End::None;
    flag_ = false;
    have_previous_ = false;
    const int idle = config_->noop_max > 0 ? random_.below(config_->noop_max + 1) : 0;
    if (idle == 0) std::memcpy(static_cast<void*>(&frame_), &start.frame, sizeof frame_);
    for (int i = 1; i <= idle; ++i) {
        run_frame(machine_, *cartridge_, 0, 0, i == idle ? &frame_ : nullptr);
        ++frames_;
    }
    journey_.begin(machine_.ram);
    fill_stack();
}

void Slot::begin(const std::vector<u8>& snapshot, int stage_index) {
    load(snapshot);
    stage_index_ = stage_index;
    steps_ = frames_ = 0;
    from_snapshot_ = 1;
    end_ = smb::End::None;
    flag_ = false;
    journey_.begin(machine_.ram);
}

int Slot::hold(u8 buttons, int count, int draw_last) {
    have_previous_ = false;
    for (int i = 0; i < count; ++i) {
        const bool draw = count - i <= draw_last;
        if (draw && i + 1 == count && draw_last > 1 && i > 0) {
            std::swap(*previous_, frame_);
            have_previous_ = true;
        }
        play(buttons, draw);
        end_ = smb::episode_end(machine_.ram, stage_);
        flag_ = smb::flag_get(machine_.ram);
        journey_.look(machine_.ram);
        if (over()) return i + 1;
        frames_ += smb::skip_scenes(machine_, *cartridge_, stage_.whole_game(), draw ? &frame_ : nullptr);
    }
    return count;
}

void Slot::step(int action) {
    const u8 buttons = config_->actions[static_cast<std::size_t>(action)];
    const int count = config_->frame_skip, draw_last = config_->max_pool ? 2 : 1;
    thread_local Machine before;
    if (count > 1) before = machine_;
    const Random random = random_;
    const Journey journey = journey_;
    const u8 held = held_;
    const i32 frames = frames_;
    if (const int played = hold(buttons, count, draw_last); played < count) {
        // The episode ended on a frame that was not drawn: play these frames once more, up to it, and look.
        machine_ = before;
        random_ = random;
        journey_ = journey;
        held_ = held;
        frames_ = frames;
        hold(buttons, played, draw_last);
    }
    ++steps_;
    ++journey_.since_progress;
    if (!over()) {
        if (config_->step_limit > 0 && steps_ >= config_->step_limit) end_ = smb::End::StepLimit;
        if (config_->stall_limit > 0 && journey_.since_progress >= config_->stall_limit) end_ = smb::End::Stalled;
    }
    see();
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
    put(kFlagGet, flag_);
    put(kPlayerState, r[smb::at::kPlayerState]);
    put(kYViewport, r[smb::at::kViewportY]);
    put(kLoopCommand, r[smb::at::kLoopCommand]);
    put(kLoopPartsRight, r[smb::at::kLoopPartsRight]);
    put(kLoopPartsPassed, r[smb::at::kLoopPartsPassed]);
    put(kProgress, journey_.progress);
    put(kXMax, journey_.x_max);
    put(kEnd, static_cast<i32>(end_));
    put(kSteps, steps_);
    put(kFrames, frames_);
    put(kStageIndex, stage_index_);
    put(kRoomsSeen, journey_.rooms);
    put(kFromSnapshot, from_snapshot_);
}

namespace {
constexpr u32 kSlotKind = 2;

template <class Visitor, class Rooms, class Numbers>
void visit_episode(Visitor& v, Rooms& j, Numbers& n) {
    v(j.room), v(j.furthest), v(j.rooms), v(j.progress), v(j.x_max), v(j.since_progress);
    for (auto& x : n) v(x);
}
}  // namespace

std::vector<u8> Slot::save(int frames) const {
    Writer w;
    write_machine(w, machine_, *cartridge_);
    const i32 numbers[] = {stage_.world, stage_.stage, stage_index_, steps_,   frames_,
                           from_snapshot_, held_,      static_cast<i32>(end_), flag_};
    visit_episode(w, journey_, numbers);
    w(random_.state);
    w(static_cast<u32>(plane_));
    w(static_cast<u32>(frames));
    for (int i = config_->frame_stack - frames + 1; i <= config_->frame_stack; ++i)
        w.bytes(stack_.data() + plane_ * static_cast<std::size_t>((newest_ + i) % config_->frame_stack), plane_);
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
    if (journey.rooms < 0 || journey.rooms > Journey::kRooms || n[0] < 0 || n[0] > 255 || n[1] < 0 || n[1] > 255 ||
        n[7] < 0 || n[7] > static_cast<i32>(smb::End::StepLimit))
        throw SnapshotError("The snapshot is damaged: its episode is in no possible state.");
    if (plane != plane_)
        throw SnapshotError("The snapshot's pictures have another size or colour than this environment's.");
    if (frames < 1 || frames > static_cast<u32>(config_->frame_stack) || r.left() != std::size_t{frames} * plane_)
        throw SnapshotError("The snapshot holds another number of stacked frames than this environment.");
    // The newest picture stands for the older ones that were not kept.
    newest_ = config_->frame_stack - 1;
    const int missing = config_->frame_stack - static_cast<int>(frames);
    r.bytes(stack_.data() + plane_ * static_cast<std::size_t>(missing), std::size_t{frames} * plane_);
    for (int i = 0; i < missing; ++i)
        std::memcpy(stack_.data() + plane_ * static_cast<std::size_t>(i),
                    stack_.data() + plane_ * static_cast<std::size_t>(missing), plane_);
    machine_ = *machine;
    journey_ = journey;
    stage_ = {n[0], n[1]};
    stage_index_ = n[2], steps_ = n[3], frames_ = n[4], from_snapshot_ = n[5];
    held_ = static_cast<u8>(n[6]);
    end_ = static_cast<smb::End>(n[7]);
    flag_ = n[8];
    random_.state = random;
}

}  // namespace wz
