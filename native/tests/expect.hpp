#pragma once
#include <atomic>
#include <cstdio>

namespace wz::test {

inline std::atomic<int> failures{0};

/// The exit status of a test program, which it also prints.
inline int result(const char* name) {
    std::printf("%s: %d failures\n", name, failures.load());
    return failures != 0;
}

}  // namespace wz::test

#define EXPECT(holds)                                                       \
    do {                                                                    \
        if (!(holds) && ++wz::test::failures <= 10)                         \
            std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #holds); \
    } while (0)
