#include "simd/pack_impl.hpp"
#include "simd/paint_impl.hpp"

namespace wz::simd {

extern const Kernels kAvx2;
const Kernels kAvx2 = {draw_tiles, map_bytes,        shrink,     brighter,
                       paint,      paint_background, pack_frame, unpack_frame};

}  // namespace wz::simd
