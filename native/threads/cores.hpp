#pragma once
#include <chrono>
#include <thread>
#include <vector>

/// Where threads run, and what they get of a core that other programs want too. On Linux; elsewhere nothing
/// is known, and nothing happens.
namespace wz::cores {

using Thread = std::thread::native_handle_type;

/// Cores this process may use, beginning behind the one that the caller is on, so that threads pinned in this
/// order reach the caller's core last.
std::vector<int> after_callers();
/// The core that the caller is on.
int here();
/// Lets a thread run on these cores only: a hint, refusal costs speed only.
void keep_on(Thread thread, const std::vector<int>& cores);
/// The calling thread asks for short turns: when it wakes for a job, it does not wait until another program's
/// turn of some milliseconds is over. Its share of the core stays the same. (Linux 6.12 and newer.)
void take_short_turns();
/// Processor time of the calling thread.
std::chrono::nanoseconds time_used();
/// Whether a thread that has work waits for a core: looks for a moment whether its clock stands still.
bool waits_for_core(Thread thread);

/// Threads that have been pushed off their cores in the midst of their work, and run on the caller's until
/// this goes out of scope. The system itself moves such a thread only after milliseconds.
class Fetched {
  public:
    ~Fetched();
    Fetched() = default;
    Fetched(const Fetched&) = delete;
    Fetched& operator=(const Fetched&) = delete;

    void fetch(Thread thread, int from);

  private:
    struct Kept {
        Thread thread;
        int from;
        std::vector<int> allowed;
    };
    std::vector<Kept> kept_;
};

}  // namespace wz::cores
