#include "pool/pool.hpp"

#include <algorithm>

namespace wz {

namespace {

PoolConfig checked(PoolConfig config) {
    check(config);
    return config;
}

}  // namespace

/// One call at a time: a second one from another thread is refused instead of mixing with the first.
class Pool::Turn {
  public:
    explicit Turn(Pool& pool, bool with_step_under_way = false) : busy_(pool.busy_) {
        if (busy_.exchange(true))
            throw PoolError("Two threads use the environments at once: give each thread its own.");
        if (pool.pending_ && !with_step_under_way) {
            busy_ = false;
            throw PoolError("A step is under way: call recv first.");
        }
    }
    ~Turn() { busy_ = false; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

  private:
    std::atomic<bool>& busy_;
};

Pool::Pool(std::shared_ptr<const Cartridge> cartridge, PoolConfig config)
    : cartridge_(std::move(cartridge)),
      config_(checked(std::move(config))),
      resizer_(config_.height, config_.width, config_.top, config_.palette),
      queued_(static_cast<std::size_t>(config_.environments)),
      actions_(static_cast<std::size_t>(config_.environments)),
      team_(config_.threads, {.pin = config_.pin}) {
    for (std::size_t i = 0; i < config_.stages.size(); ++i)
        starts_.push_back(start_of(config_.stages[i], memory_of(i)));
    set_stage_weights(std::vector<double>(config_.stages.size(), 1.0));
    for (int i = 0; i < config_.environments; ++i)
        slots_.push_back(std::make_unique<Slot>(cartridge_, config_.slot, resizer_));
}

void Pool::set_stage_weights(std::vector<double> weights) {
    const Turn turn(*this);
    double sum = 0;
    for (double& w : weights) {
        if (!(w >= 0 && w <= 1e300)) throw PoolError("Stage weights are numbers that are not negative.");
        w = sum += w;
    }
    if (weights.size() != config_.stages.size() || !(sum > 0) || sum > 1e300)
        throw PoolError("Give one weight for each of the " + std::to_string(config_.stages.size()) +
                        " stages, not all of them zero.");
    for (double& w : weights) w /= sum;
    cumulative_ = std::move(weights);
}

std::shared_ptr<const smb::Start> Pool::start_of(smb::Stage stage, const std::vector<u8>& memory) const {
    try {
        return smb::prepare(*cartridge_, stage, config_.slot.region, config_.lost_levels, memory);
    } catch (const smb::GameError&) {
        if (!config_.slot.levels) throw;
        throw PoolError("The level in the place of stage " + std::to_string(stage.world) + "-" +
                        std::to_string(stage.stage) +
                        " does not start: the game never gives the player control in it.");
    }
}

const std::vector<u8>& Pool::memory_of(std::size_t which) const {
    static const std::vector<u8> none;
    return config_.memories.empty() ? none : config_.memories[which];
}

int Pool::index_of(smb::Stage& stage, const Machine& machine, int saved) const {
    const smb::Stage game{0, 0}, here{machine.ram[smb::at::kWorld] + 1, machine.ram[smb::at::kStage] + 1};
    for (const smb::Stage wanted : {stage, stage.whole_game() ? here : game})
        for (std::size_t i = 0; i < config_.stages.size(); ++i) {
            const auto& memory = memory_of(i);
            if (config_.stages[i] == wanted && std::equal(memory.begin(), memory.end(), machine.wram)) {
                stage = wanted;
                return static_cast<int>(i);
            }
        }
    // An environment may still be in a level that another has replaced.
    const bool replaced = config_.slot.levels && saved < static_cast<int>(config_.stages.size());
    return replaced ? saved : -1;
}

int Pool::add_stage(smb::Stage stage, std::vector<u8> memory) {
    const Turn turn(*this);
    for (std::size_t i = 0; i < config_.stages.size(); ++i)
        if (config_.stages[i] == stage && memory_of(i) == memory) return static_cast<int>(i);
    PoolConfig with = config_;
    with.stages.push_back(stage);
    if (!memory.empty() || !with.memories.empty()) with.memories.push_back(std::move(memory));
    check(with);
    auto start = start_of(stage, with.memories.empty() ? std::vector<u8>{} : with.memories.back());
    starts_.push_back(std::move(start));
    config_.stages = std::move(with.stages);
    config_.memories = std::move(with.memories);
    cumulative_.push_back(cumulative_.back());
    return static_cast<int>(config_.stages.size()) - 1;
}

void Pool::set_stage(int which, smb::Stage stage, std::vector<u8> memory) {
    const Turn turn(*this);
    const auto at = static_cast<std::size_t>(which);
    if (which < 0 || at >= config_.memories.size())
        throw PoolError("There is no stage " + std::to_string(which) + " with memory of its own.");
    PoolConfig with{.stages = {stage}, .memories = {std::move(memory)}, .slot = config_.slot};
    check(with);
    starts_[at] = start_of(stage, with.memories[0]);
    config_.stages[at] = stage;
    config_.memories[at] = std::move(with.memories[0]);
}

Slot& Pool::slot_at(int index) {
    if (index < 0 || index >= environments())
        throw PoolError("There is no environment " + std::to_string(index) + " among " +
                        std::to_string(environments()) + ".");
    return slot(index);
}

void Pool::queue_start(int index, std::vector<u8> snapshot) {
    const Turn turn(*this);
    slot_at(index);
    queued_[static_cast<std::size_t>(index)] = std::move(snapshot);
}

void Pool::copy_ram(u8* out) {
    const Turn turn(*this);
    for (const auto& s : slots_) {
        std::memcpy(out, s->machine().ram, sizeof(Machine::ram));
        out += sizeof(Machine::ram);
    }
}

void Pool::draw(int index, Frame& out) {
    const Turn turn(*this);
    slot_at(index).draw(out);
}

void Pool::observe(int index, u8* out) {
    const Turn turn(*this);
    slot_at(index).observe(out);
}

std::vector<u8> Pool::snapshot(int index, int frames) {
    const Turn turn(*this);
    if (frames < 1 || frames > config_.slot.frame_stack)
        throw PoolError("A snapshot holds between one and all of the stacked frames.");
    return slot_at(index).save(frames);
}

void Pool::restore(int index, const std::vector<u8>& snapshot) {
    const Turn turn(*this);
    slot_at(index).load(snapshot, lookup_);
}

void Pool::begin_episode(int index) {
    Slot& s = slot(index);
    // Drawn even when there is one stage or a queued start, so that the streams do not depend on it.
    const double u = s.random().uniform();
    auto& queued = queued_[static_cast<std::size_t>(index)];
    if (!queued.empty()) {
        const std::vector<u8> blob = std::move(queued);
        queued.clear();
        return s.begin(blob, lookup_);
    }
    const auto at = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, u) - cumulative_.begin();
    const auto chosen = static_cast<std::size_t>(at);
    s.begin(starts_[chosen], config_.stages[chosen], static_cast<int>(chosen));
}

void Pool::emit(int index) {
    const Slot& s = slot(index);
    const auto i = static_cast<std::size_t>(index);
    s.observe(to_.observations + i * s.observation_size());
    s.report(to_.telemetry + i, static_cast<std::size_t>(environments()));
    to_.terminated[i] = s.episode().terminated();
    to_.truncated[i] = s.episode().truncated();
    if (to_.packer) to_.packer->drawn(index, to_.observations);
}

void Pool::step_one(int index) {
    Slot& s = slot(index);
    const auto i = static_cast<std::size_t>(index);
    if (s.over()) {
        if (config_.autoreset == Autoreset::Disabled)
            throw PoolError("its episode is over: reset it before the next step");
        begin_episode(index);
        return emit(index);
    }
    s.step(static_cast<int>(actions_[i]));
    if (!s.over() || config_.autoreset != Autoreset::SameStep) return emit(index);
    s.observe(to_.final_observations + i * s.observation_size());
    s.report(to_.final_telemetry + i, static_cast<std::size_t>(environments()));
    const u8 terminated = s.episode().terminated(), truncated = s.episode().truncated();
    begin_episode(index);
    emit(index);
    to_.terminated[i] = terminated;
    to_.truncated[i] = truncated;
}

void Pool::raise(const WorkError& e) {
    if (e.index >= 0) {
        const bool stopped = !e.message.empty() && e.message.back() == '.';
        throw PoolError("Environment " + std::to_string(e.index) + ": " + e.message + (stopped ? "" : "."));
    }
}

void Pool::write_to(const Results& to) {
    to_ = to;
    if (to_.packer) to_.packer->begin();
}

void Pool::prepare_step(const i64* actions, const Results& to) {
    if (!begun_) throw PoolError("Call reset before the first step.");
    const i64 count = static_cast<i64>(config_.slot.actions.size());
    for (int i = 0; i < environments(); ++i)
        if (actions[i] < 0 || actions[i] >= count)
            throw PoolError("Environment " + std::to_string(i) + ": action " + std::to_string(actions[i]) +
                            " is not one of the actions 0 to " + std::to_string(count - 1) + ".");
    std::copy(actions, actions + environments(), actions_.begin());
    write_to(to);
}

void Pool::reset(const u8* mask, const u64* seeds, const std::vector<u8>* snapshot, const Results& to) {
    const Turn turn(*this);
    if (mask && !begun_)
        throw PoolError("The first reset must be of every environment: leave out reset_mask.");
    write_to(to);
    const auto item = [&](int i) {
        const auto at = static_cast<std::size_t>(i);
        if (!mask || mask[i]) {
            if (seeds) slots_[at]->seed(seeds[at]);
            if (snapshot) queued_[at] = *snapshot;
            begin_episode(i);
        }
        emit(i);
    };
    raise(team_.run(environments(), item));
    begun_ = true;
}

void Pool::send(const i64* actions, const Results& to) {
    const Turn turn(*this);
    prepare_step(actions, to);
    team_.start(environments(), step_item_);
    pending_ = true;
}

void Pool::receive() {
    const Turn turn(*this, true);
    if (!pending_) throw PoolError("There is nothing to receive: call send first.");
    if (team_.forked()) {
        // The threads that had begun the step are the parent's; what they left here is half a step.
        pending_ = begun_ = false;
        throw PoolError("The process was forked while a step was under way: reset the environments first.");
    }
    const WorkError e = team_.finish();
    pending_ = false;
    raise(e);
}

void Pool::step(const i64* actions, const Results& to) {
    const Turn turn(*this);
    prepare_step(actions, to);
    raise(team_.run(environments(), step_item_));
}

}  // namespace wz
