// x86-64-v3: AVX2 and FMA.

#include "net/kernels_impl.hpp"

namespace warpzone::net {

extern const Kernels kAvx2Kernels;
const Kernels kAvx2Kernels = make_kernels("avx2");

}  // namespace warpzone::net
