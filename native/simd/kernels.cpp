#include "simd/kernels.hpp"

#include <cstring>

#include "simd/sets.hpp"

namespace wz::simd {

extern const Kernels kBaseline;
#if defined(__x86_64__)
extern const Kernels kAvx2, kAvx512;
#elif defined(__aarch64__)
extern const Kernels kDotProduct;
#endif

const Kernels* find_kernels(const char* set) {
    for (const std::string& known : instruction_sets()) {
        if (known != set) continue;
#if defined(__x86_64__)
        if (known == "avx512") return &kAvx512;
        if (known == "avx2") return &kAvx2;
#elif defined(__aarch64__)
        if (known == "dotprod") return &kDotProduct;
#endif
        return &kBaseline;
    }
    return nullptr;
}

const Kernels& kernels() {
    static const Kernels& chosen = *find_kernels(chosen_set().c_str());
    return chosen;
}

}  // namespace wz::simd
