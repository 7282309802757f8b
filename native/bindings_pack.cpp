#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bindings_common.hpp"
#include "pack/packer.hpp"

namespace wz::python {
namespace {

using namespace nb::literals;
using Bytes = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Unpacked = nb::ndarray<nb::c_contig, nb::device::cpu>;

constexpr const char* kNoFrame =
    "A packer is for at least one frame of at least one byte, in rows of its width.";

void require_frame(std::int64_t frame_size, std::int64_t width) {
    if (width < 1 || frame_size < width || frame_size > (1 << 24) || frame_size % width)
        throw PoolError(kNoFrame);
}

std::span<const u8> span_of(const Bytes& array) {
    return {static_cast<const u8*>(array.data()), array.nbytes()};
}

nb::bytes pack(Packer& self, const Bytes& array) {
    std::vector<u8> packed;
    {
        nb::gil_scoped_release release;
        packed = self.pack(span_of(array));
    }
    return to_bytes(packed);
}

nb::bytes packed_frames(const FramePacker& self) {
    std::vector<u8> packed;
    {
        nb::gil_scoped_release release;
        packed = self.packed();
    }
    return to_bytes(packed);
}

void unpack(Packer& self, const Bytes& packed, const Unpacked& out) {
    const std::span<const u8> from = span_of(packed);
    const std::span<u8> to{static_cast<u8*>(out.data()), out.nbytes()};
    nb::gil_scoped_release release;
    self.unpack(from, to);
}

}  // namespace

void bind_pack(nb::module_& m) {
    nb::class_<Packer>(m, "Packer")
        .def(
            "__init__",
            [](Packer* self, int threads, std::int64_t frame_size, std::int64_t width) {
                if (threads < 1 || threads > 1024)
                    throw PoolError("threads must be 1 to 1024, not " + std::to_string(threads) + ".");
                require_frame(frame_size, width);
                new (self)
                    Packer(threads, static_cast<std::size_t>(frame_size), static_cast<std::size_t>(width));
            },
            "threads"_a, "frame_size"_a, "width"_a)
        .def("pack", &pack, "array"_a)
        .def("unpack", &unpack, "packed"_a, "out"_a);
    nb::class_<FramePacker>(m, "FramePacker")
        .def(
            "__init__",
            [](FramePacker* self, int frames, std::int64_t frame_size, std::int64_t width) {
                if (frames < 1 || frames > (1 << 20)) throw PoolError(kNoFrame);
                require_frame(frame_size, width);
                new (self) FramePacker(frames, static_cast<std::size_t>(frame_size),
                                       static_cast<std::size_t>(width));
            },
            "frames"_a, "frame_size"_a, "width"_a)
        .def("packed", &packed_frames);
}

}  // namespace wz::python
