#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "net/net.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using warpzone::net::AdamSettings;
using warpzone::net::ConvShape;
using warpzone::net::Net;
using warpzone::net::NetShape;
using warpzone::net::Parameter;
using warpzone::net::Pictures;
using warpzone::net::PpoBatch;
using warpzone::net::PpoSettings;
using warpzone::net::TrainStats;

template <class T>
using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

void require(bool holds, const std::string& what) {
    if (!holds) throw std::invalid_argument(what);
}

template <class Array>
void require_size(const Array& array, std::int64_t size, const char* name) {
    require(static_cast<std::int64_t>(array.size()) == size, std::string(name) + " must hold " +
                                                                 std::to_string(size) + " entries, not " +
                                                                 std::to_string(array.size()));
}

/// Pictures as Python gives them, checked: either [count, C, H, W] without indices, or any number of frames
/// of C / S planes with indices [count, S].
struct CheckedPictures {
    Pictures pictures;
    std::int64_t count;

    CheckedPictures(const Net& net, const In<std::uint8_t>& frames,
                    const std::optional<In<std::int32_t>>& indices) {
        const NetShape& shape = net.shape();
        const std::int64_t pixels = std::int64_t{shape.height} * shape.width;
        const std::int64_t size = static_cast<std::int64_t>(frames.size());
        require(frames.ndim() >= 2 && static_cast<int>(frames.shape(frames.ndim() - 2)) == shape.height &&
                    static_cast<int>(frames.shape(frames.ndim() - 1)) == shape.width,
                "pictures must be " + std::to_string(shape.height) + " x " + std::to_string(shape.width));
        if (!indices) {
            require(size % (shape.channels * pixels) == 0,
                    "pictures must have " + std::to_string(shape.channels) + " channels");
            pictures = {frames.data(), nullptr, 1};
            count = size / (shape.channels * pixels);
            return;
        }
        const In<std::int32_t>& index = *indices;
        require(index.ndim() == 2, "indices must be [samples, stack]");
        const std::int64_t stack = static_cast<std::int64_t>(index.shape(1));
        require(stack > 0 && shape.channels % stack == 0, "the stack must divide the net's channels");
        const std::int64_t frame_count = size / (shape.channels / stack * pixels);
        const std::int32_t* end = index.data() + index.size();
        require(std::all_of(index.data(), end, [&](std::int32_t i) { return i < frame_count; }),
                "an index points past the last frame");
        pictures = {frames.data(), index.data(), static_cast<int>(stack)};
        count = static_cast<std::int64_t>(index.shape(0));
    }
};

nb::dict as_dict(const TrainStats& stats) {
    const double samples = static_cast<double>(stats.samples);
    nb::dict result;
    result["policy_loss"] = stats.sums.policy_loss / samples;
    result["value_loss"] = stats.sums.value_loss / samples;
    result["entropy"] = stats.sums.entropy / samples;
    result["approx_kl"] = stats.sums.approx_kl / samples;
    result["clip_fraction"] = stats.sums.clip_fraction / samples;
    result["grad_norm"] = stats.gradient_norm / static_cast<double>(stats.minibatches);
    return result;
}

/// A batch as Python gives it; the arrays live as long as this does.
struct Batch {
    In<std::uint8_t> frames;
    std::optional<In<std::int32_t>> indices;
    In<std::int64_t> actions;
    std::optional<In<std::int64_t>> stages;
    In<float> old_logp, advantages, targets, old_values;

    /// The columns, checked against each other, against the net and against the rows that will be visited.
    PpoBatch columns(const Net& net, std::int64_t count, const In<std::int64_t>& order) const {
        require_size(actions, count, "actions");
        if (stages) require_size(*stages, count, "stages");
        require_size(old_logp, count, "old_logp");
        require_size(advantages, count, "advantages");
        require_size(targets, count, "targets");
        require_size(old_values, count, "old_values");
        const auto within = [](const In<std::int64_t>& array, std::int64_t end) {
            return std::all_of(array.data(), array.data() + array.size(),
                               [end](std::int64_t i) { return i >= 0 && i < end; });
        };
        require(within(actions, net.shape().actions), "an action is not one of the net's");
        require(!stages || within(*stages, net.shape().values), "a stage has no value head");
        require(order.size() > 0 && within(order, count), "order must name rows of the batch, at least one");
        return {actions.data(),  stages ? stages->data() : nullptr,
                old_logp.data(), advantages.data(),
                targets.data(),  old_values.data()};
    }
};

Net* make_net(std::tuple<int, int, int> observation_shape,
              const std::vector<std::tuple<int, int, int>>& convolutions, const std::vector<int>& hidden,
              int actions, int values, int threads, const std::string& kernels) {
    const auto [channels, height, width] = observation_shape;
    NetShape shape{channels, height, width, {}, hidden, actions, values};
    for (const auto& [out, kernel, stride] : convolutions)
        shape.convolutions.push_back({out, kernel, stride});
    return new Net(shape, threads, kernels);
}

/// A buffer of the net as a writable array that keeps the net alive.
template <float* (Net::*buffer)()>
nb::ndarray<nb::numpy, float> view(nb::handle self) {
    Net& net = nb::cast<Net&>(self);
    return nb::ndarray<nb::numpy, float>((net.*buffer)(), {static_cast<std::size_t>(net.parameter_count())},
                                         self);
}

}  // namespace

void bind_net(nb::module_& m) {
    m.def(
        "net_kernels",
        [] {
            std::vector<std::string> names;
            for (const auto* kernels : warpzone::net::available_kernels()) names.emplace_back(kernels->name);
            return names;
        },
        "Instruction sets the net can use on this processor, best first.");

    nb::class_<PpoSettings>(m, "NetObjective", "What a net minimises; see native/net/ppo.hpp.")
        .def(nb::init<bool, float, float, float, float>(), nb::kw_only(), "clipped"_a, "clip"_a,
             "value_coefficient"_a, "value_clip"_a, "entropy_coefficient"_a);

    nb::class_<Batch>(
        m, "NetBatch",
        "Pictures [B, C, H, W] (or frames and their indices [B, S]) and one entry of each column per "
        "picture.")
        .def(nb::init<In<std::uint8_t>, std::optional<In<std::int32_t>>, In<std::int64_t>,
                      std::optional<In<std::int64_t>>, In<float>, In<float>, In<float>, In<float>>(),
             nb::kw_only(), "frames"_a, "indices"_a.none(), "actions"_a, "stages"_a.none(), "old_logp"_a,
             "advantages"_a, "targets"_a, "old_values"_a);

    nb::class_<Net>(m, "Net", "A small actor-critic on the CPU with its optimiser; see native/net/net.hpp.")
        .def(nb::new_(&make_net), "observation_shape"_a, "convolutions"_a, "hidden"_a, "actions"_a,
             "values"_a = 1, nb::kw_only(), "threads"_a = 1, "kernels"_a = "")
        .def_prop_ro("kernels", [](const Net& net) { return std::string(net.kernels()); })
        .def_prop_ro("threads", &Net::threads)
        .def_prop_ro(
            "parameters",
            [](const Net& net) {
                nb::list result;
                for (const Parameter& p : net.parameters())
                    result.append(nb::make_tuple(p.name, p.offset, nb::tuple(nb::cast(p.shape))));
                return result;
            },
            "Name, offset in the flat buffers and shape of every parameter.")
        .def_prop_ro("weights", &view<&Net::weights>, "All parameters; call weights_changed() after writing.")
        .def_prop_ro("gradient", &view<&Net::gradient>)
        .def_prop_ro("first_moment", &view<&Net::first_moment>)
        .def_prop_ro("second_moment", &view<&Net::second_moment>)
        .def_rw("adam_steps", &Net::adam_steps)
        .def("weights_changed", &Net::weights_changed, "To be called after writing to `weights`.")
        .def("copy_weights", &Net::copy_weights, "other"_a, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "forward",
            [](Net& net, const In<std::uint8_t>& frames, const Out<float>& logits, const Out<float>& values,
               const std::optional<In<std::int32_t>>& indices) {
                const CheckedPictures in(net, frames, indices);
                require_size(logits, in.count * net.shape().actions, "logits");
                require_size(values, in.count * net.shape().values, "values");
                nb::gil_scoped_release release;
                net.forward(in.pictures, in.count, logits.data(), values.data());
            },
            "frames"_a, "logits"_a, "values"_a, "indices"_a = nb::none(),
            "Writes logits [B, A] and values [B, V] of pictures [B, C, H, W], or of frames gathered by "
            "indices "
            "[B, S].")
        .def(
            "act",
            [](Net& net, const In<std::uint8_t>& frames, const Out<std::int64_t>& actions,
               const Out<float>& logp, const Out<float>& values, std::uint64_t seed, std::uint64_t step,
               const std::optional<In<std::int32_t>>& indices) {
                const CheckedPictures in(net, frames, indices);
                require_size(actions, in.count, "actions");
                require_size(logp, in.count, "logp");
                require_size(values, in.count * net.shape().values, "values");
                nb::gil_scoped_release release;
                net.act(in.pictures, in.count, seed, step, actions.data(), logp.data(), values.data());
            },
            "frames"_a, "actions"_a, "logp"_a, "values"_a, nb::kw_only(), "seed"_a, "step"_a,
            "indices"_a = nb::none(),
            "Samples actions; the draw depends only on (seed, step, place in the batch).")
        .def(
            "train",
            [](Net& net, const Batch& batch, const In<std::int64_t>& order, std::int64_t minibatch,
               const PpoSettings& objective, double learning_rate, double epsilon, double max_gradient_norm) {
                const CheckedPictures in(net, batch.frames, batch.indices);
                const PpoBatch columns = batch.columns(net, in.count, order);
                require(minibatch > 0, "a minibatch holds at least one sample");
                const AdamSettings adam{learning_rate, 0.9, 0.999, epsilon, max_gradient_norm};
                TrainStats stats;
                {
                    nb::gil_scoped_release release;
                    stats = net.train(in.pictures, columns, order.data(),
                                      static_cast<std::int64_t>(order.size()), minibatch, objective, adam);
                }
                return as_dict(stats);
            },
            "batch"_a, "order"_a, nb::kw_only(), "minibatch"_a, "objective"_a, "learning_rate"_a, "epsilon"_a,
            "max_gradient_norm"_a,
            "One pass over rows of the batch in the given order, a step of Adam per minibatch; mean "
            "statistics.")
        .def(
            "compute_gradient",
            [](Net& net, const Batch& batch, const In<std::int64_t>& order, const PpoSettings& objective) {
                const CheckedPictures in(net, batch.frames, batch.indices);
                const PpoBatch columns = batch.columns(net, in.count, order);
                TrainStats stats;
                {
                    nb::gil_scoped_release release;
                    stats = net.compute_gradient(in.pictures, columns, order.data(),
                                                 static_cast<std::int64_t>(order.size()), objective);
                }
                return as_dict(stats);
            },
            "batch"_a, "order"_a, nb::kw_only(), "objective"_a,
            "Leaves the gradient of one minibatch, not clipped, in `gradient`; mean statistics.");
}
