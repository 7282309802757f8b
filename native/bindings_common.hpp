#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <atomic>
#include <memory>
#include <vector>

#include "nes/cartridge.hpp"
#include "nes/ppu.hpp"
#include "pool/config.hpp"

namespace wz::python {

namespace nb = nanobind;

template <class T>
using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<nb::numpy, u8>;

inline std::vector<u8> to_vector(const nb::bytes& b) {
    const u8* p = reinterpret_cast<const u8*>(b.c_str());
    return {p, p + b.size()};
}
inline nb::bytes to_bytes(const std::vector<u8>& v) { return nb::bytes(v.data(), v.size()); }

/// A new array of colours, 240 x 256 x 3, that Python owns.
Bytes rgb_array(const Frame& f);

/// The cartridge of an image. Those in use are shared, so that what was translated for one is there for all.
std::shared_ptr<const Cartridge> cartridge_of(const nb::bytes& rom);

void bind_pool(nb::module_& m);
void bind_episode(nb::module_& m);
void bind_pack(nb::module_& m);

}  // namespace wz::python

void bind_net(nanobind::module_& m);
void bind_compat(nanobind::module_& m);
