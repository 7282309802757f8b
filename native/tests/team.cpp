// The thread pool: every item once, errors, late and slow threads, threads that can't be started, forks.
#include "threads/team.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>

#include "tests/expect.hpp"

namespace {

using wz::Team;
using wz::ThreadError;
using wz::WorkError;
using namespace std::chrono_literals;

constexpr Team::Options kOften = {.pin = true};

void every_item_is_done_once() {
    for (int threads : {1, 2, 3, 8})
        for (int count : {0, 1, 2, 7, 100}) {
            Team team(threads, kOften);
            for (int round = 0; round < 40; ++round) {
                std::vector<std::atomic<int>> done(static_cast<std::size_t>(count) + 1);
                std::atomic<int> odd_worker = 0;
                const bool started = round % 3 == 2;
                auto task = [&](int item, int worker) {
                    ++done[static_cast<std::size_t>(item)];
                    if (worker < 0 || worker > threads || (started && worker == 0)) ++odd_worker;
                };
                WorkError error;
                if (started) {
                    team.start(count, task);
                    error = team.finish();
                } else {
                    error = team.run(count, task);
                }
                EXPECT(error.index == -1);
                EXPECT(odd_worker == 0);
                for (int i = 0; i < count; ++i) EXPECT(done[static_cast<std::size_t>(i)] == 1);
            }
        }
}

void the_first_error_is_told() {
    Team team(3, kOften);
    for (int round = 0; round < 50; ++round) {
        auto task = [](int item, int) {
            if (item % 10 == 7) throw std::runtime_error("item " + std::to_string(item));
        };
        const WorkError error = team.run(60, task);
        EXPECT(error.index == 7 && error.message == "item 7");
    }
}

/// While one thread is at a long item the others do all the rest, its share too.
void a_slow_thread_holds_nobody_up() {
    Team team(2, kOften);
    for (bool started : {false, true}) {
        std::atomic<int> others = 0;
        std::atomic<bool> in_time = false;
        auto task = [&](int item, int) {
            if (item != 0) {
                ++others;
                return;
            }
            for (int i = 0; i < 2000 && others < 9; ++i) std::this_thread::sleep_for(1ms);
            in_time = others == 9;
        };
        if (started)
            team.start(10, task), team.finish();
        else
            team.run(10, task);
        EXPECT(in_time);
    }
}

/// The threads of this process but its first one: the state of each, S while it sleeps.
std::string others() {
    std::string states;
    const std::string mine = std::to_string(getpid());
    std::error_code gone;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
        if (task.path().filename() == mine) continue;
        std::ifstream stat(task.path() / "stat");
        std::string text;
        // After the name, which is in brackets.
        if (std::getline(stat, text) && text.rfind(") ") != std::string::npos)
            states += text[text.rfind(") ") + 2];
    }
    return states;
}
int threads_of_this_process() { return 1 + static_cast<int>(others().size()); }

/// One that would only stand in for the caller is not there before it is wanted, and rests while the caller
/// works.
void no_thread_without_a_share(int before) {
    // The system may list a thread for a moment after it was joined.
    while (threads_of_this_process() != before) std::this_thread::sleep_for(1ms);
    Team team(3, kOften);
    std::mutex lock;
    std::set<int> seen;
    auto task = [&](int, int worker) {
        std::lock_guard hold(lock);
        seen.insert(worker);
        std::this_thread::sleep_for(100us);
    };
    EXPECT(threads_of_this_process() == before);
    team.run(30, task);
    EXPECT(threads_of_this_process() == before + 2);
    EXPECT(!seen.contains(3));
    team.start(30, task);
    team.finish();
    EXPECT(threads_of_this_process() == before + 3);
    // The last thread may not even have begun: then it would do so in the middle of what follows.
    while (others().find_first_not_of('S') != std::string::npos) std::this_thread::sleep_for(1ms);
    seen.clear();
    for (int i = 0; i < 20; ++i) team.run(30, task);
    EXPECT(!seen.contains(3));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
void refused_threads_are_told_each_time() {}  // sanitizers need the address space themselves
#else
long pages_in_use() {
    long pages = 0;
    if (FILE* f = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(f, "%ld", &pages) != 1) pages = 0;
        std::fclose(f);
    }
    return pages;
}

void refused_threads_are_told_each_time() {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        rlimit old{};
        getrlimit(RLIMIT_AS, &old);
        rlimit tight = old;
        // Room for two stacks of threads, not for sixteen.
        tight.rlim_cur = static_cast<rlim_t>(pages_in_use() * sysconf(_SC_PAGESIZE)) + (20u << 20);
        int sum = 0;
        auto task = [&](int, int) {};
        Team team(16, kOften);
        setrlimit(RLIMIT_AS, &tight);
        for (int i = 0; i < 3; ++i) {
            try {
                i == 1 ? team.start(64, task) : void(team.run(64, task));
            } catch (const ThreadError&) {
                ++sum;
            }
        }
        setrlimit(RLIMIT_AS, &old);
        _exit(sum == 3 && team.run(64, task).index == -1 ? 0 : 1);
    }
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

#ifdef __linux__
/// Beside programs that keep every core busy, threads are pushed off their cores again and again, and moved
/// to the caller's and back: each item is still done once, and in the end the threads may run where they
/// might.
void busy_cores_change_nothing() {
    std::vector<pid_t> busy;
    for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            for (volatile unsigned turns = 0;;) turns = turns + 1;
        }
        busy.push_back(child);
    }
    cpu_set_t mine;
    sched_getaffinity(0, sizeof mine, &mine);
    const int cores = std::max(CPU_COUNT(&mine), 2);
    for (const Team::Options options : {Team::Options{}, kOften})
        for (const int threads : {2, cores}) {
            Team team(threads, options);
            for (int round = 0; round < 60; ++round) {
                std::atomic<int> done = 0;
                auto task = [&](int, int) {
                    for (const auto until = std::chrono::steady_clock::now() + 50us;
                         std::chrono::steady_clock::now() < until;)
                        continue;
                    ++done;
                };
                EXPECT(team.run(20, task).index == -1);
                EXPECT(done == 20);
            }
            if (options.pin) continue;
            std::atomic<int> elsewhere = 0;
            auto look = [&](int) {
                cpu_set_t set;
                sched_getaffinity(0, sizeof set, &set);
                elsewhere += !CPU_EQUAL(&set, &mine);
            };
            team.start(20, look);
            team.finish();
            EXPECT(elsewhere == 0);
        }
    for (const pid_t child : busy) {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    }
}
#else
void busy_cores_change_nothing() {}
#endif

#if !defined(__SANITIZE_THREAD__)  // it does not follow threads made in a child of a process with threads
void a_forked_child_has_its_own_threads() {
    Team team(3, kOften);
    std::atomic<int> sum = 0;
    auto task = [&](int item, int) { sum += item; };
    team.run(50, task);
    for (bool uses : {true, false}) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            {
                Team* mine = &team;
                sum = 0;
                if (uses) mine->start(50, task), mine->finish(), mine->run(50, task);
                mine->~Team();
            }
            _exit(uses ? sum != 2 * 1225 : 0);
        }
        int status = 0;
        EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}
#else
void a_forked_child_has_its_own_threads() {}
#endif

}  // namespace

int main() {
    const int threads_at_first = threads_of_this_process();  // a sanitizer has its own
    refused_threads_are_told_each_time();
    every_item_is_done_once();
    the_first_error_is_told();
    a_slow_thread_holds_nobody_up();
    no_thread_without_a_share(threads_at_first);
    a_forked_child_has_its_own_threads();
    busy_cores_change_nothing();
    return wz::test::result("team");
}
