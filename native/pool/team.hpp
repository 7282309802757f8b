#pragma once
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace wz {

/// An error in one item of a job, with the item's index.
struct WorkError {
    int index = -1;
    std::string message;
};

/// A fixed team of threads that works through jobs of `count` independent items. One job at a time: `start`,
/// then `finish`. Survives fork: a child process starts its own threads on its first job.
class Team {
  public:
    /// `pin`: if the team is to have most of the cores and leaves one for its caller, keep each thread on one
    /// of its own, away from the core of the thread that makes the team.
    Team(int threads, bool pin);
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    using Item = std::function<void(int)>;

    /// Begins a job on the team's threads and returns at once. `item` must stay valid until `finish` returns.
    void start(int count, const Item& item);
    /// Waits for the job. Returns the error with the lowest index, or one with index -1.
    WorkError finish();
    /// The whole job, the caller being one of the threads.
    WorkError run(int count, const Item& item);

    int threads() const { return threads_; }
    /// Whether this is a child of the process whose threads they are.
    bool forked() const;

  private:
    void ensure_alive();
    void spawn();
    void loop(int which, unsigned seen);
    void work(int which);
    void begin(int count, const Item& item, int helpers);

    /// The items that one thread does unless others are done sooner.
    struct alignas(64) Share {
        std::atomic<int> next{0};
        int end = 0;
    };

    const int threads_;
    const bool pin_;
    std::vector<Share> shares_;
    std::vector<int> cores_;
    int pid_ = 0;
    std::vector<std::thread> team_;

    /// The job's number times `next_job`, and how many of the team's threads work on it.
    static constexpr unsigned next_job = 1024;
    std::atomic<unsigned> generation_{0};
    std::atomic<int> unfinished_{0};
    std::atomic<bool> stop_{false};
    std::atomic<bool> often_{false};  ///< the last job followed closely on the one before
    std::chrono::steady_clock::time_point finished_{};
    const Item* item_ = nullptr;
    std::mutex error_lock_;
    WorkError error_;
};

}  // namespace wz
