#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "pool/slot.hpp"
#include "pool/team.hpp"

namespace wz {

/// When an environment whose episode is over begins the next one (names as in Gymnasium).
enum class Autoreset : u8 { NextStep, SameStep, Disabled };

/// A call that does not fit the pool's state. The message is a sentence for the user.
struct PoolError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct PoolConfig {
    int environments = 1, threads = 1;
    int height = 84, width = 84, top = 0;
    Palette palette = Palette::NesPy;
    Autoreset autoreset = Autoreset::NextStep;
    Region region = Region::Ntsc;
    bool lost_levels = false, pin = true;
    std::vector<smb::Stage> stages;
    SlotConfig slot;
};

/// Where the results of a step go: memory of the caller's, valid until the step is received.
struct Results {
    u8* observations;  ///< [environments][observation]
    i32* telemetry;    ///< [smb::kFieldCount][environments]
    u8 *terminated, *truncated;
    u8* final_observations;  ///< like observations; written where an episode ended in SameStep mode
    i32* final_telemetry;    ///< likewise
};

/// N environments on M threads.
class Pool {
  public:
    Pool(std::shared_ptr<const Cartridge> cartridge, PoolConfig config);

    /// Begins new episodes where `mask` is set (everywhere if null), each on a stage drawn by the weights, or
    /// from `snapshot` if it is not null. `seeds` (null to keep the streams) holds one number an environment.
    void reset(const u8* mask, const u64* seeds, const std::vector<u8>* snapshot, const Results& to);

    /// Starts a step and returns; `receive` waits for it. `actions` are copied.
    void send(const i64* actions, const Results& to);
    void receive();
    /// Both, with the caller as one of the threads.
    void step(const i64* actions, const Results& to);

    /// How likely each stage is to be drawn for the next episodes.
    void set_stage_weights(std::vector<double> weights);
    /// Makes another stage available, with weight zero; its index. One that is there already keeps its own.
    int add_stage(smb::Stage stage);
    /// The next episode of this environment begins from the snapshot.
    void queue_start(int index, std::vector<u8> snapshot);

    Slot& slot(int index);
    const PoolConfig& config() const { return config_; }
    int environments() const { return config_.environments; }
    std::size_t observation_size() const { return slots_[0]->observation_size(); }
    bool pending() const { return pending_; }
    /// Whether a call or a step is under way; then nothing else may look inside.
    bool busy() const { return pending_ || busy_; }

  private:
    void begin_episode(int index);
    void step_one(int index);
    void emit(int index);
    void prepare_step(const i64* actions, const Results& to);
    static void raise(const WorkError& e);

    std::shared_ptr<const Cartridge> cartridge_;
    PoolConfig config_;
    Resizer resizer_;
    std::vector<std::unique_ptr<smb::Start>> starts_;
    std::vector<std::unique_ptr<Slot>> slots_;
    std::vector<double> cumulative_;
    std::vector<std::vector<u8>> queued_;
    std::vector<i64> actions_;
    Results to_{};
    bool pending_ = false, begun_ = false;
    std::atomic<bool> busy_{false};
    std::function<void(int)> step_item_;
    Team team_;
};

}  // namespace wz
