#include "threads/cores.hpp"

#include <algorithm>
#include <cstdint>
#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#endif

namespace wz::cores {

#ifdef __linux__

namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::microseconds kMoment{20};

std::vector<int> allowed(pthread_t thread) {
    std::vector<int> found;
    cpu_set_t set;
    if (pthread_getaffinity_np(thread, sizeof set, &set) != 0) return found;
    for (int i = 0; i < CPU_SETSIZE; ++i)
        if (CPU_ISSET(i, &set)) found.push_back(i);
    return found;
}

nanoseconds read(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

}  // namespace

std::vector<int> after_callers() {
    std::vector<int> cores = allowed(pthread_self());
    const auto mine = std::find(cores.begin(), cores.end(), here());
    if (mine != cores.end()) std::rotate(cores.begin(), mine + 1, cores.end());
    return cores;
}

int here() { return sched_getcpu(); }

void keep_on(Thread thread, const std::vector<int>& cores) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : cores) CPU_SET(core, &set);
    pthread_setaffinity_np(thread, sizeof set, &set);
}

void take_short_turns() {
#ifdef SYS_sched_setattr
    struct {
        std::uint32_t size, policy;
        std::uint64_t flags;
        std::int32_t nice;
        std::uint32_t priority;
        std::uint64_t runtime_ns, deadline_ns, period_ns;
    } attributes{};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
    if (attributes.policy != SCHED_OTHER) return;
    attributes.size = sizeof attributes;
    attributes.runtime_ns = 100'000;  // the least there is
    syscall(SYS_sched_setattr, 0, &attributes, 0);
#endif
}

nanoseconds time_used() { return read(CLOCK_THREAD_CPUTIME_ID); }

bool waits_for_core(Thread thread) {
    using Clock = std::chrono::steady_clock;
    clockid_t clock;
    if (pthread_getcpuclockid(thread, &clock) != 0) return false;
    const nanoseconds before = read(clock);
    for (const auto until = Clock::now() + kMoment; Clock::now() < until;) continue;
    return read(clock) - before < kMoment / 2;
}

void Fetched::fetch(Thread thread, int from) {
    Kept kept{thread, from, allowed(thread)};
    if (kept.allowed.empty()) return;
    keep_on(thread, {here()});
    kept_.push_back(std::move(kept));
}

Fetched::~Fetched() {
    for (const Kept& k : kept_) {
        // First to where it was: it would stay here beside the caller.
        if (std::count(k.allowed.begin(), k.allowed.end(), k.from)) keep_on(k.thread, {k.from});
        keep_on(k.thread, k.allowed);
    }
}

#else

std::vector<int> after_callers() { return {}; }
int here() { return 0; }
void keep_on(Thread, const std::vector<int>&) {}
void take_short_turns() {}
std::chrono::nanoseconds time_used() { return {}; }
bool waits_for_core(Thread) { return false; }
void Fetched::fetch(Thread, int) {}
Fetched::~Fetched() = default;

#endif

}  // namespace wz::cores
