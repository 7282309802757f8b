#pragma once
#include <atomic>
#include <climits>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace wz {

/// A number that threads sleep on until it changes. Like std::atomic's wait, but without the calls of
/// sched_yield that libstdc++ makes before it sleeps: beside other programs each gives away part of the share
/// of the core that is due to the thread.
template <class T>
class Signal {
  public:
    Signal() = default;
    Signal(T value) : value_(value) {}

    T load() const { return value_.load(std::memory_order_acquire); }
    /// Without waking anybody.
    void store(T value) { value_.store(value); }
    T fetch_add(T change) { return value_.fetch_add(change); }
    void wake_all() {
#ifdef __linux__
        if (sleepers_.load()) syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
#else
        value_.notify_all();
#endif
    }
    /// Returns at the latest when the value is no longer `old` and somebody has called wake_all.
    void sleep_while(T old) {
#ifdef __linux__
        sleepers_.fetch_add(1);
        syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, old, nullptr, nullptr, 0);
        sleepers_.fetch_sub(1);
#else
        value_.wait(old);
#endif
    }

  private:
    static_assert(sizeof(std::atomic<T>) == 4 && std::atomic<T>::is_always_lock_free);
    std::atomic<T> value_{};
    std::atomic<int> sleepers_{0};
};

}  // namespace wz
