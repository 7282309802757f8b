#include "net/kernels.hpp"

#include <stdexcept>

#include "simd/sets.hpp"

namespace warpzone::net {

extern const Kernels kBaselineKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

std::vector<const Kernels*> available_kernels() {
    std::vector<const Kernels*> found;
    for (const std::string& set : wz::simd::instruction_sets()) {
#if defined(__x86_64__)
        if (set == "avx512") found.push_back(&kAvx512Kernels);
        if (set == "avx2") found.push_back(&kAvx2Kernels);
#endif
        if (set == kBaselineKernels.name) found.push_back(&kBaselineKernels);
    }
    return found;
}

const Kernels& find_kernels(const std::string& name) {
    std::string wanted = name.empty() ? wz::simd::chosen_set() : name;
    if (wanted == "dotprod") wanted = kBaselineKernels.name;  // it multiplies floats
    std::string names;
    for (const Kernels* kernels : available_kernels()) {
        if (wanted == kernels->name) return *kernels;
        names += std::string(names.empty() ? "" : ", ") + kernels->name;
    }
    throw std::invalid_argument("no kernels named '" + name + "' on this processor; there are: " + names);
}

}  // namespace warpzone::net
