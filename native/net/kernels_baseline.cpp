// What every processor of this architecture has: SSE2 on x86-64, NEON on aarch64.

#include "net/kernels_impl.hpp"

namespace warpzone::net {

extern const Kernels kBaselineKernels;
const Kernels kBaselineKernels = make_kernels(
#if defined(__ARM_NEON)
    "neon"
#else
    "baseline"
#endif
);

}  // namespace warpzone::net
