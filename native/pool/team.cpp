#include "pool/team.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>
#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

namespace wz {
namespace {

/// Cores this process may use, beginning behind the one that the caller is on, so that threads pinned in this
/// order reach the caller's core last.
std::vector<int> cores_after_callers() {
    std::vector<int> cores;
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
    std::vector<int> allowed;
    for (int i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, &set)) allowed.push_back(i);
    const int here = sched_getcpu();
    std::size_t at = 0;
    while (at < allowed.size() && allowed[at] != here) ++at;
    for (std::size_t i = 1; i <= allowed.size(); ++i) cores.push_back(allowed[(at + i) % allowed.size()]);
#endif
    return cores;
}

void pin_this_thread(int core) {
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // a hint: refusal costs speed only
#else
    (void)core;
#endif
}

using Clock = std::chrono::steady_clock;

/// Longest that a thread looks for new work before it sleeps. To wake a sleeping thread takes up to 100 us, a
/// caller that only reckons rewards comes back sooner; one that runs a network does not, and needs the core.
constexpr auto longest_look = std::chrono::microseconds(300);

inline void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// Looks at `value` until it differs from `old` or the time is up. Returns whether it differs.
template <class T>
bool look(const std::atomic<T>& value, T old, Clock::duration time) {
    const auto until = Clock::now() + time;
    do {
        for (int i = 0; i < 32; ++i) {
            if (value.load(std::memory_order_acquire) != old) return true;
            pause();
        }
    } while (Clock::now() < until);
    return false;
}

}  // namespace

Team::Team(int threads, bool pin)
    : threads_(std::min(threads, static_cast<int>(next_job) - 1)),
      pin_(pin),
      shares_(static_cast<std::size_t>(threads_)),
      cores_(pin ? cores_after_callers() : std::vector<int>()) {}

Team::~Team() {
    if (pid_ != getpid()) {
        // In a forked child the threads do not exist; forget them instead of joining.
        new (&team_) std::vector<std::thread>();
        return;
    }
    stop_ = true;
    generation_ += next_job;
    generation_.notify_all();
    for (auto& t : team_) t.join();
}

bool Team::forked() const { return pid_ != 0 && pid_ != getpid(); }

void Team::ensure_alive() {
    if (pid_ == getpid()) return;
    new (&team_) std::vector<std::thread>();
    pid_ = getpid();
    spawn();
}

void Team::spawn() {
    const unsigned seen = generation_.load();
    for (int i = 0; i < threads_; ++i) team_.emplace_back([this, i, seen] { loop(i, seen); });
}

void Team::loop(int which, unsigned seen) {
    // Sharing a core with others is worse than moving about. So pin only when a core is left for the caller,
    // who is not pinned, and when the team has most of them: a smaller one leaves room for other runs, which
    // would pin to the same cores.
    const int cores = static_cast<int>(cores_.size());
    if (pin_ && threads_ < cores && 2 * threads_ > cores)
        pin_this_thread(cores_[static_cast<std::size_t>(which) % cores_.size()]);
    for (;;) {
        if (!often_.load(std::memory_order_relaxed) || !look(generation_, seen, longest_look))
            generation_.wait(seen);
        seen = generation_.load();
        if (stop_) return;
        // The last thread rests when the caller works in its place. That is read with the job's number: a
        // thread that wakes late must not take the next job's word for it.
        if (which < static_cast<int>(seen % next_job)) work(which);
    }
}

void Team::work(int which) {
    // First its own share, whose memory this core touched in the last job too; then what others have not
    // begun.
    for (int k = 0; k < threads_; ++k) {
        Share& share = shares_[static_cast<std::size_t>((which + k) % threads_)];
        for (int i; (i = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;) {
            try {
                (*item_)(i);
            } catch (const std::exception& e) {
                std::lock_guard hold(error_lock_);
                if (error_.index < 0 || i < error_.index) error_ = {i, e.what()};
            }
        }
    }
    if (unfinished_.fetch_sub(1) == 1) unfinished_.notify_all();
}

void Team::begin(int count, const Item& item, int helpers) {
    ensure_alive();
    error_ = {};
    often_ = Clock::now() - finished_ < longest_look;
    item_ = &item;
    for (int k = 0; k < threads_; ++k) {
        Share& share = shares_[static_cast<std::size_t>(k)];
        share.next = static_cast<int>(std::int64_t{count} * k / threads_);
        share.end = static_cast<int>(std::int64_t{count} * (k + 1) / threads_);
    }
    unfinished_ = threads_;
    if (helpers == 0) return;
    const unsigned job = generation_.load() / next_job + 1;
    generation_ = job * next_job + static_cast<unsigned>(helpers);
    generation_.notify_all();
}

void Team::start(int count, const Item& item) { begin(count, item, threads_); }

WorkError Team::finish() {
    // The others are at their last items.
    if (int left = unfinished_.load(); left == 1) look(unfinished_, left, longest_look / 4);
    for (int left; (left = unfinished_.load()) != 0;) unfinished_.wait(left);
    finished_ = Clock::now();
    return error_;
}

WorkError Team::run(int count, const Item& item) {
    begin(count, item, threads_ - 1);
    work(threads_ - 1);
    return finish();
}

}  // namespace wz
