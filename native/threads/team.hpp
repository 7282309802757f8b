#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "threads/cores.hpp"
#include "threads/sleep.hpp"

namespace wz {

/// An error in one item of a job, with the item's index.
struct WorkError {
    int index = -1;
    std::string message;
};

/// The system refuses to start a thread. The message is a sentence for the user.
struct ThreadError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A team of threads that works through jobs of independent items, one job at a time. Items are taken one by
/// one, and a job is over when its items are: a thread that is slow or late to wake holds up at most the item
/// it has begun. If another program has taken its core, it ends that item on the core of the caller, who
/// waits. Threads start with the first job that wants them. Survives fork: a child process starts its
/// own on its first job.
class Team {
  public:
    using Time = std::chrono::microseconds;
    /// To wake a sleeping thread takes up to 100 us, so threads look for work for a while before they sleep.
    /// A caller that only computes rewards comes back within that time; one that runs a network does not, and
    /// needs the core.
    struct Options {
        /// Keep each thread on a core of its own, away from the core of the thread that makes the team, if
        /// the team has most of the cores and leaves one for its caller. If it has all of them, keep the
        /// threads off the core that the caller is on, unless other programs want that core too.
        bool pin = false;
        Time look{0};             ///< after every job
        Time look_if_often{300};  ///< after a job that began no later than this behind the one before
        Time look_for_end{75};    ///< the caller, once all items are taken
    };

    Team(int threads, Options options);
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int threads() const { return threads_; }

    /// Calls task(item, worker), or task(item), for every item in [0, count) on the caller and threads() - 1
    /// others. Returns when all are done: the error with the lowest index, or one with index -1. `worker`
    /// tells them apart: 0 is the caller. Throws ThreadError before any item is begun.
    template <class Task>
    WorkError run(int count, Task& task) {
        begin(count, task, threads_ - 1);
        return work_as_caller();
    }
    /// Begins a job on threads() threads and returns at once. `task` must stay valid until `finish` returns;
    /// `worker` is 1 to threads().
    template <class Task>
    void start(int count, Task& task) {
        begin(count, task, threads_);
    }
    /// Waits for the job that `start` began.
    WorkError finish();

    /// Whether this is a child of the process whose threads they are.
    bool forked() const;

  private:
    using Call = void (*)(const void* task, int item, int worker);
    template <class Task>
    void begin(int count, Task& task, int helpers) {
        const Call call = [](const void* t, int item, int worker) {
            Task& does = *static_cast<Task*>(const_cast<void*>(t));
            if constexpr (std::is_invocable_v<Task&, int, int>)
                does(item, worker);
            else
                does(item);
        };
        begin(count, call, &task, helpers);
    }
    void begin(int count, Call call, const void* task, int helpers);
    void require_threads(int count);
    void loop(int which);
    void work(int which);
    void do_item(int item, int which);
    WorkError work_as_caller();
    void wait_for_end(int left);
    bool has_all_cores() const { return threads_ > 1 && threads_ == static_cast<int>(cores_.size()); }
    void keep_off_callers_core();

    /// The items that one thread does unless others are done sooner: `left` of them, before `end`. What
    /// describes a job is read only while holding one of its items, so that a late thread never sees a job
    /// half described.
    struct alignas(64) Share {
        std::atomic<int> left{0};
        int end = 0;
    };

    /// What the caller has to know of a thread that it waits for.
    struct alignas(64) Worker {
        std::atomic<int> core{-1};  ///< where it began to work; -1 while it does not
        std::atomic<bool> fetched{false};
    };
    /// The core that threads are kept off (-1: none), and how many of them know.
    struct KeptOff {
        int core = -1;
        std::size_t threads = 0;
        bool operator==(const KeptOff&) const = default;
    };

    const int threads_;
    const Options options_;
    const std::unique_ptr<Share[]> shares_;
    const std::unique_ptr<Worker[]> workers_;
    const std::vector<int> cores_;
    int pid_ = 0;
    std::vector<std::thread> team_;

    Call call_ = nullptr;
    const void* task_ = nullptr;
    /// Counts jobs: [0] those that everyone works on, [1] those in which a thread stands in for the caller.
    alignas(64) Signal<unsigned> jobs_[2];
    std::atomic<bool> stop_{false};
    std::atomic<bool> often_{false};
    alignas(64) Signal<int> unfinished_{0};  ///< items of this job
    using Clock = std::chrono::steady_clock;
    Clock::time_point begun_{}, finished_{};
    /// What the caller worked and got of its core, until that is judged. Where it got little, threads may run
    /// on its core for a while, and use what it gets of it.
    Clock::duration callers_time_{};
    std::chrono::nanoseconds callers_used_{};
    Clock::time_point contested_until_{};
    KeptOff kept_off_;
    std::mutex error_lock_;
    WorkError error_;
};

}  // namespace wz
