#include "simd/paint_impl.hpp"

namespace wz::simd {

extern const Kernels kDotProduct;
const Kernels kDotProduct = {draw_tiles, map_bytes, shrink, brighter, paint, paint_background};

}  // namespace wz::simd
