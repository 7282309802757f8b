#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace warpzone::net {

/// Runs independent items on a fixed set of threads, the caller being one of them.
///
/// A worker that is slow to wake is not waited for: it only finds that the others have taken its items.
/// Workers spin for a moment between calls, because a minibatch is several calls in a row, and then sleep.
class Workers {
  public:
    explicit Workers(int threads) {
        for (int worker = 1; worker < threads; ++worker)
            threads_.emplace_back([this, worker] { work(worker); });
    }

    ~Workers() {
        stopping_.store(true);
        generation_.fetch_add(1);
        generation_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    int count() const { return static_cast<int>(threads_.size()) + 1; }

    /// Calls task(item, worker) for every item in [0, items), in no particular order, worker in [0, count()),
    /// and returns when all are done. `task` must not throw. Not reentrant; one caller at a time.
    template <class Task>
    void run(int items, Task&& task) {
        if (threads_.empty() || items <= 1) {
            for (int item = 0; item < items; ++item) task(item, 0);
            return;
        }
        task_ = [](void* context, int item, int worker) { (*static_cast<Task*>(context))(item, worker); };
        context_ = &task;
        items_ = items;
        unfinished_.store(items, std::memory_order_relaxed);
        const std::uint64_t generation = generation_.load(std::memory_order_relaxed) + 1;
        tickets_.store(generation << 32 | static_cast<std::uint32_t>(items), std::memory_order_release);
        generation_.store(static_cast<std::uint32_t>(generation), std::memory_order_release);
        generation_.notify_all();
        while (take_one(0)) {
        }
        for (int spins = 0; unfinished_.load(std::memory_order_acquire) != 0; ++spins) {
            pause();
            if (spins > kSpinsBeforeYield) std::this_thread::yield();  // the others may need this very core
        }
    }

  private:
    static constexpr int kSpinsBeforeYield = 1000;

    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("isb");
#endif
    }

    /// Takes and runs one item of the current call; false if there are none left. The fields that describe
    /// the call are read only while holding one of its items, so a late worker never sees a half-written
    /// call.
    bool take_one(int worker) {
        std::uint64_t ticket = tickets_.load(std::memory_order_acquire);
        do {
            if (static_cast<std::uint32_t>(ticket) == 0) return false;
        } while (!tickets_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel));
        task_(context_, items_ - static_cast<int>(static_cast<std::uint32_t>(ticket)), worker);
        unfinished_.fetch_sub(1, std::memory_order_release);
        return true;
    }

    void work(int worker) {
        constexpr std::chrono::microseconds kSpin{40};
        while (!stopping_.load()) {
            const std::uint32_t seen = generation_.load(std::memory_order_acquire);
            while (take_one(worker)) {
            }
            const auto deadline = std::chrono::steady_clock::now() + kSpin;
            while (generation_.load(std::memory_order_acquire) == seen) {
                for (int i = 0; i < 16; ++i) pause();
                if (std::chrono::steady_clock::now() < deadline) continue;
                generation_.wait(seen, std::memory_order_acquire);
            }
        }
    }

    void (*task_)(void*, int, int) = nullptr;
    void* context_ = nullptr;
    int items_ = 0;
    /// The call's generation and, in the low half, the items nobody has taken yet.
    alignas(64) std::atomic<std::uint64_t> tickets_{0};
    alignas(64) std::atomic<int> unfinished_{0};
    alignas(64) std::atomic<std::uint32_t> generation_{0};
    std::atomic<bool> stopping_{false};
    std::vector<std::thread> threads_;
};

}  // namespace warpzone::net
