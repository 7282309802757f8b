#include "net/kernels.hpp"

#include <stdexcept>

namespace warpzone::net {

extern const Kernels kBaselineKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

std::vector<const Kernels*> available_kernels() {
    std::vector<const Kernels*> found;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        found.push_back(&kAvx512Kernels);
    if (avx2) found.push_back(&kAvx2Kernels);
#endif
    found.push_back(&kBaselineKernels);
    return found;
}

const Kernels& find_kernels(const std::string& name) {
    std::string names;
    for (const Kernels* kernels : available_kernels()) {
        if (name.empty() || name == kernels->name) return *kernels;
        names += std::string(names.empty() ? "" : ", ") + kernels->name;
    }
    throw std::invalid_argument("no kernels named '" + name + "' on this processor; there are: " + names);
}

}  // namespace warpzone::net
