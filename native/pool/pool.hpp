#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "pack/packer.hpp"
#include "pool/slot.hpp"
#include "threads/team.hpp"

namespace wz {

/// Where the results of a step go: memory of the caller's, valid until the step is received.
struct Results {
    u8* observations;  ///< [environments][observation]
    i32* telemetry;    ///< [smb::kFieldCount][environments]
    u8 *terminated, *truncated;
    u8* final_observations;         ///< like observations; written where an episode ended in SameStep mode
    i32* final_telemetry;           ///< likewise
    FramePacker* packer = nullptr;  ///< compresses the observations as they are drawn
};

/// N environments on M threads. One call at a time: a second one from another thread, or one that does not go
/// with a step under way, is refused with a PoolError.
class Pool {
  public:
    Pool(std::shared_ptr<const Cartridge> cartridge, PoolConfig config);

    /// Begins new episodes where `mask` is set (everywhere if null), each on a stage sampled by the weights,
    /// or from `snapshot` if it is not null. `seeds` (null to keep the streams) holds one number an
    /// environment.
    void reset(const u8* mask, const u64* seeds, const std::vector<u8>* snapshot, const Results& to);

    /// Starts a step and returns; `receive` waits for it. `actions` are copied.
    void send(const i64* actions, const Results& to);
    void receive();
    /// Both, with the caller as one of the threads.
    void step(const i64* actions, const Results& to);

    /// How likely each stage is to be sampled for the next episodes.
    void set_stage_weights(std::vector<double> weights);
    /// Makes another stage available, with weight zero; its index. One that is there already keeps its own.
    int add_stage(smb::Stage stage, std::vector<u8> memory = {});
    /// Puts another stage in the place of one: episodes that begin from now on play it.
    void set_stage(int which, smb::Stage stage, std::vector<u8> memory);
    /// The next episode of this environment begins from the snapshot.
    void queue_start(int index, std::vector<u8> snapshot);

    /// The RAM of every environment, [environments][2048].
    void copy_ram(u8* out);
    /// What environment `index` shows: its screen, its observation, its snapshot with the newest `frames` of
    /// the stack.
    void draw(int index, Frame& out);
    void observe(int index, u8* out);
    std::vector<u8> snapshot(int index, int frames);
    void restore(int index, const std::vector<u8>& snapshot);

    int environments() const { return config_.environments; }
    std::size_t observation_size() const { return slots_[0]->observation_size(); }
    bool pending() const { return pending_; }

  private:
    class Turn;
    void begin_episode(int index);
    void step_one(int index);
    void emit(int index);
    void write_to(const Results& to);
    void prepare_step(const i64* actions, const Results& to);
    Slot& slot(int index) { return *slots_[static_cast<std::size_t>(index)]; }
    Slot& slot_at(int index);  ///< checked
    static void raise(const WorkError& e);
    std::shared_ptr<const smb::Start> start_of(smb::Stage stage, const std::vector<u8>& memory) const;
    const std::vector<u8>& memory_of(std::size_t which) const;
    /// The stage that a console plays, by what it is and what is at $6000; -1 where it is none of these.
    int index_of(smb::Stage& stage, const Machine& machine, int saved) const;
    const StageLookup lookup_ = [this](smb::Stage& stage, const Machine& machine, int saved) {
        return index_of(stage, machine, saved);
    };

    std::shared_ptr<const Cartridge> cartridge_;
    PoolConfig config_;
    Resizer resizer_;
    std::vector<std::shared_ptr<const smb::Start>> starts_;
    std::vector<std::unique_ptr<Slot>> slots_;
    std::vector<double> cumulative_;
    std::vector<std::vector<u8>> queued_;
    std::vector<i64> actions_;
    Results to_{};
    bool begun_ = false;
    std::atomic<bool> busy_{false}, pending_{false};
    struct StepItem {
        Pool* pool;
        void operator()(int index) { pool->step_one(index); }
    } step_item_{this};
    Team team_;
};

}  // namespace wz
