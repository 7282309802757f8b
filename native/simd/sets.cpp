#include "simd/sets.hpp"

#include <algorithm>
#include <cstdlib>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace wz::simd {
namespace {

#if defined(__aarch64__)
/// Whether the processor adds up products of four bytes.
bool has_dot_products() {
#if defined(__linux__)
    constexpr unsigned long kAsimdDp = 1UL << 20;  // HWCAP_ASIMDDP, which old headers lack
    return (getauxval(AT_HWCAP) & kAsimdDp) != 0;
#elif defined(__APPLE__)
    int has = 0;
    std::size_t size = sizeof has;
    return sysctlbyname("hw.optional.arm.FEAT_DotProd", &has, &size, nullptr, 0) == 0 && has;
#else
    return false;
#endif
}
#endif

}  // namespace

std::vector<std::string> instruction_sets() {
    std::vector<std::string> found;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd"))
        found.push_back("avx512");
    if (avx2) found.push_back("avx2");
#endif
#if defined(__aarch64__)
    if (has_dot_products()) found.push_back("dotprod");
#endif
#if defined(__ARM_NEON)
    found.push_back("neon");
#else
    found.push_back("baseline");
#endif
    return found;
}

std::string chosen_set() {
    const std::vector<std::string> sets = instruction_sets();
    const char* name = std::getenv("WARPZONE_SIMD");
    if (!name || !*name) return sets.front();
    if (std::find(sets.begin(), sets.end(), name) != sets.end()) return name;
    std::string all;
    for (const std::string& set : sets) all += (all.empty() ? "" : ", ") + set;
    throw SetError(std::string("WARPZONE_SIMD is '") + name +
                   "', which this processor can't run: choose one of " + all + ", or leave it unset.");
}

}  // namespace wz::simd
