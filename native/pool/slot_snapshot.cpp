#include "nes/snapshot.hpp"
#include "pool/slot.hpp"

namespace wz {
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
    const i32 numbers[] = {stage_.world,    stage_.stage, e.stage_index,           e.steps, e.frames,
                           e.from_snapshot, e.held,       static_cast<i32>(e.end), e.flag};
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
    Episode e;
    i32 n[9];
    visit_episode(r, e.journey, n);
    u32 plane, frames;
    r(e.random.state), r(plane), r(frames);
    if (e.journey.rooms < 0 || e.journey.rooms > smb::Journey::kRooms || n[0] < 0 || n[0] > 255 || n[1] < 0 ||
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
    e.stage_index = n[2], e.steps = n[3], e.frames = n[4], e.from_snapshot = n[5];
    e.held = static_cast<u8>(n[6]), e.end = static_cast<smb::End>(n[7]), e.flag = n[8] != 0;
    episode_ = e;
    scene_ = Scene::Restored;
}

}  // namespace wz
