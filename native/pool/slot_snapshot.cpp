#include "nes/snapshot.hpp"
#include "pool/slot.hpp"

namespace wz {
namespace {

constexpr u32 kSlotKind = 2;
/// The first rooms of an episode have a fixed place; more of them come behind everything else.
constexpr int kFirstRooms = 16;
/// Far more than an episode can have of anything, far less than what overflows.
constexpr i32 kMost = 1 << 30;

/// Everything of an episode that has a fixed place. `J` and `Numbers` are const to write.
template <class Visitor, class J, class Numbers>
void visit_episode(Visitor& v, J& j, Numbers& numbers) {
    for (int i = 0; i < kFirstRooms; ++i) v(j.room[i].name);
    for (int i = 0; i < kFirstRooms; ++i) v(j.room[i].furthest);
    v(j.rooms), v(j.progress), v(j.x_max), v(j.since_progress);
    v(j.wrong_turns), v(j.last_room), v(j.last_x), v(j.last_passed), v(j.last_right);
    for (auto& x : numbers) v(x);
}

int later_rooms(const smb::Journey& j) { return std::max(j.remembered() - kFirstRooms, 0); }

bool possible(const smb::Journey& j) {
    auto within = [](i32 v, i32 least) { return v >= least && v <= kMost; };
    for (const auto& room : j.room)
        if (!within(room.furthest, -kMost)) return false;
    return within(j.rooms, 0) && within(j.progress, 0) && within(j.x_max, 0) && within(j.since_progress, 0) &&
           within(j.wrong_turns, 0) && within(j.last_x, -kMost) && within(j.last_passed, -kMost) &&
           within(j.last_right, -kMost);
}

}  // namespace

std::vector<u8> Slot::save(int frames) const {
    Writer w;
    write_machine(w, machine_, *cartridge_);
    const Episode& e = episode_;
    const i32 numbers[] = {stage_.world,    stage_.stage, e.stage_index,           e.steps, e.frames,
                           e.from_snapshot, e.held,       static_cast<i32>(e.end), e.flag};
    visit_episode(w, e.journey, numbers);
    w(e.random.state);
    w(static_cast<u32>(plane_));
    w(static_cast<u32>(frames));
    for (int i = config_->frame_stack - frames + 1; i <= config_->frame_stack; ++i)
        w.bytes(stack_.data() + plane_ * static_cast<std::size_t>((newest_ + i) % config_->frame_stack),
                plane_);
    for (int i = 0; i < later_rooms(e.journey); ++i) w(e.journey.room[kFirstRooms + i]);
    return seal(w, *cartridge_, kSlotKind);
}

void Slot::load(const std::vector<u8>& blob, const StageLookup& lookup) {
    Reader r = open(blob, *cartridge_, kSlotKind);
    auto machine = std::make_unique<Machine>();
    read_machine(r, *machine, *cartridge_);
    if (machine->region != config_->region)
        throw SnapshotError("The snapshot is of a console with another region's timing (NTSC or PAL).");
    Episode e;
    i32 n[9];
    visit_episode(r, e.journey, n);
    u32 plane, frames;
    r(e.random.state), r(plane), r(frames);
    auto number = [&](int i, i32 most) { return n[i] >= 0 && n[i] <= most; };
    if (!possible(e.journey) || !number(0, 255) || !number(1, 255) || !number(2, kMost) ||
        !number(3, kMost) || !number(4, kMost) || !number(5, 1) || !number(6, 255) ||
        !number(7, static_cast<i32>(smb::End::StepLimit)))
        throw SnapshotError("The snapshot is damaged: its episode is in no possible state.");
    const smb::Stage saved{n[0], n[1]};
    smb::Stage stage = saved;
    const int index = lookup(stage, *machine, n[2]);
    if (index < 0)
        throw SnapshotError("The snapshot is of " + smb::name(saved) +
                            ", which these environments do not have: add it to their stages.");
    if (plane != plane_)
        throw SnapshotError("The snapshot's pictures have another size or colour than this environment's.");
    const std::size_t later = static_cast<std::size_t>(later_rooms(e.journey));
    if (frames < 1 || frames > static_cast<u32>(config_->frame_stack) ||
        r.left() != std::size_t{frames} * plane_ + later * sizeof(smb::Journey::Room))
        throw SnapshotError("The snapshot holds another number of stacked frames than this environment.");
    std::vector<u8> stack(stack_.size());
    // The newest picture stands for the older ones that were not kept.
    const int missing = config_->frame_stack - static_cast<int>(frames);
    r.bytes(stack.data() + plane_ * static_cast<std::size_t>(missing), std::size_t{frames} * plane_);
    for (int i = 0; i < missing; ++i)
        std::memcpy(stack.data() + plane_ * static_cast<std::size_t>(i),
                    stack.data() + plane_ * static_cast<std::size_t>(missing), plane_);
    for (std::size_t i = 0; i < later; ++i) r(e.journey.room[kFirstRooms + i]);
    if (!possible(e.journey))
        throw SnapshotError("The snapshot is damaged: its episode is in no possible state.");
    if (stage != saved) {
        e.journey = {};
        e.journey.begin(machine->ram, smb::x_pos(machine->ram));
    }
    stack_ = std::move(stack);
    newest_ = config_->frame_stack - 1;
    machine_ = *machine;
    stage_ = stage;
    e.stage_index = index, e.steps = n[3], e.frames = n[4], e.from_snapshot = n[5];
    e.held = static_cast<u8>(n[6]), e.end = static_cast<smb::End>(n[7]), e.flag = n[8] != 0;
    episode_ = e;
    scene_ = Scene::Restored;
}

}  // namespace wz
