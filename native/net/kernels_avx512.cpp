// x86-64-v4: AVX-512.

#include "net/kernels_impl.hpp"

namespace warpzone::net {

extern const Kernels kAvx512Kernels;
const Kernels kAvx512Kernels = make_kernels("avx512");

}  // namespace warpzone::net
