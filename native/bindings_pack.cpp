#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bindings_common.hpp"
#include "pack/packer.hpp"

namespace wz::python {
namespace {

using namespace nb::literals;
using Packed = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Unpacked = nb::ndarray<nb::c_contig, nb::device::cpu>;

nb::bytes pack(Packer& self, const Packed& array) {
    const std::span<const u8> bytes{static_cast<const u8*>(array.data()), array.nbytes()};
    std::vector<u8> packed;
    {
        nb::gil_scoped_release release;
        packed = self.pack(bytes);
    }
    return to_bytes(packed);
}

void unpack(Packer& self, const nb::bytes& packed, const Unpacked& out) {
    const std::span<const u8> from{reinterpret_cast<const u8*>(packed.c_str()), packed.size()};
    const std::span<u8> to{static_cast<u8*>(out.data()), out.nbytes()};
    nb::gil_scoped_release release;
    self.unpack(from, to);
}

}  // namespace

void bind_pack(nb::module_& m) {
    nb::class_<Packer>(m, "Packer")
        .def(
            "__init__",
            [](Packer* self, int threads) {
                if (threads < 1 || threads > 1024)
                    throw PoolError("threads must be 1 to 1024, not " + std::to_string(threads) + ".");
                new (self) Packer(threads);
            },
            "threads"_a)
        .def("pack", &pack, "array"_a)
        .def("unpack", &unpack, "packed"_a, "out"_a);
}

}  // namespace wz::python
