#include "threads/team.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>
#include <system_error>

namespace wz {
namespace {

using Clock = std::chrono::steady_clock;

inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Looks at `value` until it is no longer `old` or the time is up. Returns whether it changed.
template <class T>
bool look(const Signal<T>& value, T old, Clock::duration time) {
    if (time <= Clock::duration::zero()) return value.load() != old;
    const auto until = Clock::now() + time;
    do {
        for (int i = 0; i < 32; ++i) {
            if (value.load() != old) return true;
            pause();
        }
    } while (Clock::now() < until);
    return false;
}

}  // namespace

Team::Team(int threads, Options options)
    : threads_(std::max(threads, 1)),
      options_(options),
      shares_(std::make_unique<Share[]>(static_cast<std::size_t>(threads_))),
      workers_(std::make_unique<Worker[]>(static_cast<std::size_t>(threads_))),
      cores_(options.pin ? cores::after_callers() : std::vector<int>()) {}

Team::~Team() {
    if (pid_ != getpid()) {
        // In a forked child the threads do not exist; forget them instead of joining.
        new (&team_) std::vector<std::thread>();
        return;
    }
    stop_ = true;
    for (auto& jobs : jobs_) {
        jobs.fetch_add(1);
        jobs.wake_all();
    }
    for (auto& t : team_) t.join();
}

bool Team::forked() const { return pid_ != 0 && pid_ != getpid(); }

void Team::require_threads(int count) {
    if (const int me = getpid(); pid_ != me) {
        // The parent's threads, and a lock that one of them may have held.
        new (&team_) std::vector<std::thread>();
        new (&error_lock_) std::mutex();
        kept_off_ = {};
        pid_ = me;
    }
    while (static_cast<int>(team_.size()) < count) {
        const int which = static_cast<int>(team_.size()) + 1;
        try {
            team_.emplace_back([this, which] { loop(which); });
        } catch (const std::system_error& e) {
            throw ThreadError("The system refuses to start thread " + std::to_string(which) + " of " +
                              std::to_string(count) + " (" + e.code().message() +
                              "): use fewer threads or raise the limit on processes or memory.");
        }
    }
}

void Team::loop(int which) {
    cores::take_short_turns();
    // Sharing a core with others is worse than moving about. So pin only when a core is left for the caller,
    // who is not pinned, and when the team has most of them: a smaller one leaves room for other runs, which
    // would pin to the same cores.
    const int cores = static_cast<int>(cores_.size());
    if (threads_ < cores && 2 * threads_ > cores)
        cores::keep_on(pthread_self(), {cores_[static_cast<std::size_t>(which - 1)]});
    Worker& me = workers_[static_cast<std::size_t>(which - 1)];
    // The last thread rests while the caller works.
    Signal<unsigned>& jobs = jobs_[which == threads_];
    for (;;) {
        const unsigned seen = jobs.load();
        if (stop_) return;
        me.core.store(cores::here(), std::memory_order_release);
        work(which);
        me.core.store(-1, std::memory_order_release);
        const Time time = me.fetched.exchange(false)               ? Time{0}  // the caller's core
                          : often_.load(std::memory_order_relaxed) ? options_.look_if_often
                                                                   : options_.look;
        if (!look(jobs, seen, time)) jobs.sleep_while(seen);
    }
}

void Team::work(int which) {
    // First its own share, whose memory this core touched in the last job too; then what others have not
    // begun.
    for (int k = 0; k < threads_; ++k) {
        Share& share = shares_[static_cast<std::size_t>((which + k) % threads_)];
        int left = share.left.load(std::memory_order_acquire);
        while (left > 0) {
            if (!share.left.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel,
                                                  std::memory_order_acquire))
                continue;
            do_item(share.end - left, which);
            left = share.left.load(std::memory_order_acquire);
        }
    }
}

void Team::do_item(int item, int which) {
    try {
        call_(task_, item, which);
    } catch (const std::exception& e) {
        std::lock_guard hold(error_lock_);
        if (error_.index < 0 || item < error_.index) error_ = {item, e.what()};
    }
    if (unfinished_.fetch_add(-1) == 1) unfinished_.wake_all();
}

void Team::begin(int count, Call call, const void* task, int helpers) {
    if (count < 2 && helpers < threads_) helpers = 0;
    if (helpers > 0) require_threads(helpers);
    error_ = {};
    begun_ = Clock::now();
    often_ = begun_ - finished_ < options_.look_if_often;
    call_ = call;
    task_ = task;
    unfinished_.store(count);
    for (int k = 0; k < threads_; ++k) {
        Share& share = shares_[static_cast<std::size_t>(k)];
        const int from = static_cast<int>(std::int64_t{count} * k / threads_);
        share.end = static_cast<int>(std::int64_t{count} * (k + 1) / threads_);
        share.left.store(share.end - from, std::memory_order_release);
    }
    if (helpers == 0) return;
    if (has_all_cores()) keep_off_callers_core();
    for (int i = 0; i < (helpers == threads_ ? 2 : 1); ++i) {
        jobs_[i].fetch_add(1);
        jobs_[i].wake_all();
    }
}

WorkError Team::work_as_caller() {
    if (!has_all_cores() || begun_ < contested_until_) {
        work(0);
        return finish();
    }
    const auto used = cores::time_used();
    work(0);
    WorkError error = finish();
    callers_time_ += finished_ - begun_;
    callers_used_ += cores::time_used() - used;
    if (callers_time_ < std::chrono::milliseconds(40)) return error;
    if (callers_used_ < 0.75 * callers_time_) contested_until_ = finished_ + std::chrono::seconds(1);
    callers_time_ = callers_used_ = {};
    return error;
}

WorkError Team::finish() {
    int left = unfinished_.load();
    if (left <= threads_) {
        // The others are at their last items.
        const auto until = Clock::now() + options_.look_for_end;
        for (int i = 0; left != 0 && (i < 1000 || Clock::now() < until); ++i) {
            pause();
            left = unfinished_.load();
        }
    }
    if (left != 0) wait_for_end(left);
    finished_ = Clock::now();
    return error_;
}

void Team::wait_for_end(int left) {
    cores::Fetched fetched;
    for (std::size_t i = 0; left <= threads_ && i < team_.size() && unfinished_.load() != 0; ++i) {
        const int core = workers_[i].core.load(std::memory_order_acquire);
        if (core < 0 || !cores::waits_for_core(team_[i].native_handle())) continue;
        workers_[i].fetched = true;
        fetched.fetch(team_[i].native_handle(), core);
    }
    while ((left = unfinished_.load()) != 0) unfinished_.sleep_while(left);
}

void Team::keep_off_callers_core() {
    const KeptOff wanted{.core = begun_ < contested_until_ ? -1 : cores::here(), .threads = team_.size()};
    if (wanted == kept_off_) return;
    kept_off_ = wanted;
    std::vector<int> others = cores_;
    std::erase(others, wanted.core);
    // The last thread stands in for the caller.
    for (std::size_t i = 0; i < team_.size() && !others.empty(); ++i)
        if (static_cast<int>(i) + 1 != threads_) cores::keep_on(team_[i].native_handle(), others);
}

}  // namespace wz
