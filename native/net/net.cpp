#include "net/net.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace warpzone::net {
namespace {

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

int tiles_of(std::int64_t count) { return static_cast<int>((count + kTile - 1) / kTile); }

int tile_count(std::int64_t count, int tile) {
    return static_cast<int>(std::min<std::int64_t>(kTile, count - static_cast<std::int64_t>(tile) * kTile));
}

/// The values of one sample of a tile.
void untile(const float* tile, int sample, int count, float* values) {
    for (int i = 0; i < count; ++i) values[i] = tile[i * kTile + sample];
}

const NetShape& checked(const NetShape& shape) {
    const auto require = [](bool holds, const char* what) {
        if (!holds) throw std::invalid_argument(what);
    };
    require(shape.channels > 0 && shape.height > 0 && shape.width > 0, "a picture has no empty side");
    require(shape.actions > 0, "a policy needs at least one action");
    require(shape.values > 0, "a critic needs at least one value");
    require(!shape.hidden.empty(), "a net needs at least one dense layer before its heads");
    for (int size : shape.hidden) require(size > 0, "a dense layer needs at least one output");
    int height = shape.height, width = shape.width;
    for (const ConvShape& conv : shape.convolutions) {
        require(conv.channels > 0 && conv.kernel > 0 && conv.stride > 0,
                "channels, kernel and stride of a convolution are positive");
        require(conv.kernel <= std::min(height, width), "the picture is too small for these convolutions");
        height = (height - conv.kernel) / conv.stride + 1;
        width = (width - conv.kernel) / conv.stride + 1;
    }
    return shape;
}

/// A minibatch is several jobs in a row.
constexpr wz::Team::Options kTeam = {
    .look = wz::Team::Time(40), .look_if_often = wz::Team::Time(40), .look_for_end = wz::Team::Time(2000)};

}  // namespace

Net::Net(const NetShape& shape, int threads, const std::string& kernels)
    : shape_(checked(shape)), kernels_(find_kernels(kernels)), team_(threads, kTeam) {
    if (threads < 1) throw std::invalid_argument("a net needs at least one thread");
    int channels = shape.channels, height = shape.height, width = shape.width;
    for (const ConvShape& conv : shape.convolutions) {
        std::vector<std::int32_t> taps, origins;
        for (int c = 0; c < channels; ++c)
            for (int y = 0; y < conv.kernel; ++y)
                for (int x = 0; x < conv.kernel; ++x) taps.push_back(((c * height + y) * width + x) * kTile);
        const int out_height = (height - conv.kernel) / conv.stride + 1;
        const int out_width = (width - conv.kernel) / conv.stride + 1;
        for (int y = 0; y < out_height; ++y)
            for (int x = 0; x < out_width; ++x) origins.push_back((y * width + x) * conv.stride * kTile);
        add_stage(std::int64_t{channels} * height * width);
        add_layer(conv.channels, true, std::move(taps), std::move(origins));
        const std::string name = "conv" + std::to_string(layers_.size() - 1);
        parameters_.push_back(
            {name + ".weight", layers_.back().weights, {conv.channels, channels, conv.kernel, conv.kernel}});
        parameters_.push_back({name + ".bias", layers_.back().bias, {conv.channels}});
        channels = conv.channels, height = out_height, width = out_width;
    }
    int features = channels * height * width;
    const auto add_dense = [&](int outputs, bool relu) {
        std::vector<std::int32_t> taps(static_cast<std::size_t>(features));
        for (int k = 0; k < features; ++k) taps[static_cast<std::size_t>(k)] = k * kTile;
        add_stage(features);
        add_layer(outputs, relu, std::move(taps), {0});
    };
    for (std::size_t i = 0; i < shape.hidden.size(); ++i) {
        add_dense(shape.hidden[i], true);
        const std::string name = "dense" + std::to_string(i);
        parameters_.push_back({name + ".weight", layers_.back().weights, {shape.hidden[i], features}});
        parameters_.push_back({name + ".bias", layers_.back().bias, {shape.hidden[i]}});
        features = shape.hidden[i];
    }
    add_dense(shape.actions + shape.values, false);
    const Layer& heads = layers_.back();
    const std::int64_t actions = shape.actions, value_heads = shape.values;
    parameters_.push_back({"logits.weight", heads.weights, {actions, features}});
    parameters_.push_back({"value.weight", heads.weights + actions * features, {value_heads, features}});
    parameters_.push_back({"logits.bias", heads.bias, {actions}});
    parameters_.push_back({"value.bias", heads.bias + actions, {value_heads}});
    add_stage(actions + value_heads);

    // Weight gradients over tiles need what went into the layer and what came back from all of them.
    for (std::size_t l = 0; l < layers_.size(); ++l)
        if (layers_[l].partial < 0) stages_[l].values.kept = stages_[l + 1].gradients.kept = true;

    for (AlignedFloats* buffer : {&weights_, &gradient_, &first_moment_, &second_moment_})
        buffer->reset(
            static_cast<std::size_t>(parameter_count_ + kTile));  // backward kernels read past the end
    packed_.reset(static_cast<std::size_t>(layers_.back().packed +
                                           round_up(heads.view.outputs, heads.block) * heads.view.inputs));
    black_.assign(static_cast<std::size_t>(shape.height) * static_cast<std::size_t>(shape.width), 0);
    partial_size_ = round_up(partial_size_, kTile);
    plan_rectangles();
    reserve_tiles(team_.threads());
    weights_changed();
}

void Net::add_layer(int outputs, bool relu, std::vector<std::int32_t> taps,
                    std::vector<std::int32_t> origins) {
    Layer layer{};
    layer.taps = std::move(taps);
    layer.origins = std::move(origins);
    layer.view = {
        .inputs = static_cast<int>(layer.taps.size()),
        .outputs = outputs,
        .positions = static_cast<int>(layer.origins.size()),
        .relu = relu,
        .taps = layer.taps.data(),
        .origins = layer.origins.data(),
    };

    const std::int64_t weight_count = std::int64_t{layer.view.inputs} * outputs;
    layer.weights = parameter_count_;
    layer.bias = parameter_count_ + weight_count;
    parameter_count_ += weight_count + outputs;

    const bool spatial = layer.view.positions > 1;
    layer.block = spatial ? kernels_.spatial_block : kernels_.dense_block;
    if (!layers_.empty()) {
        const Layer& last = layers_.back();
        layer.packed = last.packed + round_up(last.view.outputs, last.block) * last.view.inputs;
    }
    layer.partial = spatial ? partial_size_ : -1;
    layer.partial_bias = partial_size_ + (spatial ? weight_count : 0);
    partial_size_ = layer.partial_bias + outputs;
    if (spatial) {
        layer.input_offsets.assign(layer.origins.begin(), layer.origins.end());
        for (int p = 0; p < layer.view.positions; ++p) layer.output_offsets.push_back(p * kTile);
    }
    layers_.push_back(std::move(layer));  // moving keeps the arrays that the view points to
}

void Net::add_stage(std::int64_t size) {
    // An odd number of cache lines from tile to tile: the same value of all tiles, read one after the other,
    // must not fall into the same set of the cache.
    const std::int64_t stride = (size | 1) * kTile;
    stages_.push_back({.size = size * kTile, .values = {.stride = stride}, .gradients = {.stride = stride}});
}

void Net::plan_rectangles() {
    // Gradients of dense layers: as many outputs as fit the first-level cache for a minibatch of 256.
    constexpr int kGradientOutputs = 32, kGradientInputs = 64, kStepInputs = 512;
    for (int l = 0; l < static_cast<int>(layers_.size()); ++l) {
        const Layer& layer = layers_[static_cast<std::size_t>(l)];
        const auto cover = [&](std::vector<Rectangle>& work, int outputs, int inputs) {
            for (int o = 0; o < layer.view.outputs; o += outputs)
                for (int k = 0; k < layer.view.inputs; k += inputs)
                    work.push_back({l, o, std::min(o + outputs, layer.view.outputs), k,
                                    std::min(k + inputs, layer.view.inputs)});
        };
        cover(gradient_work_, kGradientOutputs, kGradientInputs);
        cover(step_work_, layer.block, kStepInputs);
        gradient_work_.push_back({l, 0, layer.view.outputs, 0, 0});
        step_work_.push_back({l, 0, layer.view.outputs, 0, 0});
    }
    squares_.resize(gradient_work_.size());
}

void Net::reserve_tiles(int tiles) {
    if (tiles <= reserved_tiles_) return;
    const auto count = static_cast<std::size_t>(tiles);
    for (Stage& stage : stages_)
        for (Tiles* of : {&stage.values, &stage.gradients}) {
            const std::size_t slots = of->kept ? count : static_cast<std::size_t>(team_.threads());
            const std::size_t size = slots * static_cast<std::size_t>(of->stride);
            if (of->floats.size() != size) of->floats.reset(size);
        }
    partials_.reset(count * static_cast<std::size_t>(partial_size_));
    tile_stats_.resize(count);
    reserved_tiles_ = tiles;
}

void Net::pack(const Rectangle& r) {
    if (r.input_begin == r.input_end) return;
    const Layer& layer = layers_[static_cast<std::size_t>(r.layer)];
    const std::int64_t first = std::int64_t{r.output_begin} * layer.view.inputs;
    kernels_.pack(weights_.data() + layer.weights + first, layer.view.inputs,
                  layer.view.outputs - r.output_begin, layer.block, r.input_begin, r.input_end,
                  packed_.data() + layer.packed + first);
}

void Net::weights_changed() {
    for (const Rectangle& rectangle : step_work_) pack(rectangle);
}

void Net::copy_weights(const Net& other) {
    const auto same = [](const Parameter& a, const Parameter& b) {
        return a.name == b.name && a.shape == b.shape;
    };
    if (!std::equal(parameters_.begin(), parameters_.end(), other.parameters_.begin(),
                    other.parameters_.end(), same))
        throw std::invalid_argument("weights can only be copied between nets of the same shape");
    std::copy_n(other.weights_.data(), parameter_count_, weights_.data());
    weights_changed();
}

void Net::load_tile(const Pictures& pictures, const std::int64_t* samples, int count, float* to) const {
    const int pixels = shape_.height * shape_.width;
    const int frame_channels = shape_.channels / pictures.stack;
    for (int channel = 0; channel < shape_.channels; ++channel) {
        const int position = channel / frame_channels;
        const int plane = channel % frame_channels;
        const std::uint8_t* planes[kTile];
        for (int i = 0; i < kTile; ++i) {
            const std::int64_t at = samples[i < count ? i : 0] * pictures.stack + position;
            const std::int64_t frame = pictures.indices ? pictures.indices[at] : at;
            planes[i] =
                frame < 0 ? black_.data() : pictures.frames + (frame * frame_channels + plane) * pixels;
        }
        kernels_.load_plane(planes, pixels, to + std::int64_t{channel} * pixels * kTile);
    }
}

const float* Net::forward_tile(const Pictures& pictures, const std::int64_t* samples, int count, int tile,
                               int worker) {
    load_tile(pictures, samples, count, stage(0).values.at(tile, worker));
    const int depth = static_cast<int>(layers_.size());
    for (int l = 0; l < depth; ++l) {
        const Layer& layer = layers_[static_cast<std::size_t>(l)];
        kernels_.forward(layer.view, packed_.data() + layer.packed, weights_.data() + layer.bias,
                         stage(l).values.at(tile, worker), stage(l + 1).values.at(tile, worker));
    }
    return stage(depth).values.at(tile, worker);
}

void Net::forward(const Pictures& pictures, std::int64_t count, float* logits, float* values) {
    each(tiles_of(count), [&](int tile, int worker) {
        std::int64_t samples[kTile];
        std::iota(samples, samples + kTile, std::int64_t{tile} * kTile);
        const int n = tile_count(count, tile);
        const float* heads = forward_tile(pictures, samples, n, worker, worker);
        for (int i = 0; i < n; ++i) {
            untile(heads, i, shape_.actions, logits + samples[i] * shape_.actions);
            untile(heads + shape_.actions * kTile, i, shape_.values, values + samples[i] * shape_.values);
        }
    });
}

void Net::act(const Pictures& pictures, std::int64_t count, std::uint64_t seed, std::uint64_t step,
              std::int64_t* actions, float* logp, float* values) {
    each(tiles_of(count), [&](int tile, int worker) {
        std::int64_t samples[kTile];
        std::iota(samples, samples + kTile, std::int64_t{tile} * kTile);
        const int n = tile_count(count, tile);
        const float* heads = forward_tile(pictures, samples, n, worker, worker);
        float* log_probabilities = stages_.back().gradients.at(worker, worker);
        for (int i = 0; i < n; ++i) {
            log_softmax(heads + i, shape_.actions, log_probabilities + i);
            const float u = uniform(seed, step, static_cast<std::uint64_t>(samples[i]));
            const int action = sample(log_probabilities + i, shape_.actions, u);
            actions[samples[i]] = action;
            logp[samples[i]] = log_probabilities[action * kTile + i];
            untile(heads + shape_.actions * kTile, i, shape_.values, values + samples[i] * shape_.values);
        }
    });
}

void Net::backward_tile(int tile, int worker) {
    float* partial = partials_.data() + tile * partial_size_;
    for (int l = static_cast<int>(layers_.size()) - 1; l >= 0; --l) {
        const Layer& layer = layers_[static_cast<std::size_t>(l)];
        const LayerView& view = layer.view;
        const float* x = stage(l).values.at(tile, worker);
        float* dy = stage(l + 1).gradients.at(tile, worker);
        kernels_.activation_backward(view, stage(l + 1).values.at(tile, worker), dy,
                                     partial + layer.partial_bias);
        if (layer.partial >= 0) {
            // As many positions at a time as keep the output gradients in the first-level cache.
            constexpr int kCacheFloats = 8192;
            const int fit = std::max(1, kCacheFloats / (view.outputs * kTile));
            const int passes = (view.positions + fit - 1) / fit;
            const int step = (view.positions + passes - 1) / passes;
            for (int first = 0; first < view.positions; first += step) {
                const Places places{x,
                                    dy,
                                    std::int64_t{view.positions} * kTile,
                                    layer.input_offsets.data() + first,
                                    layer.output_offsets.data() + first,
                                    std::min(step, view.positions - first)};
                kernels_.weight_gradient(view, places, 0, view.outputs, 0, view.inputs, first > 0,
                                         partial + layer.partial);
            }
        }
        if (l == 0) break;
        float* dx = stage(l).gradients.at(tile, worker);
        std::fill_n(dx, stage(l).size, 0.0f);
        kernels_.backward(view, weights_.data() + layer.weights, dy, dx);
    }
}

PpoStats Net::tile_gradients(const Pictures& pictures, const PpoBatch& batch, const std::int64_t* order,
                             int count, const PpoSettings& ppo) {
    const int tiles = tiles_of(count);
    const int depth = static_cast<int>(layers_.size());
    const float weight = 1.0f / static_cast<float>(count);
    each(tiles, [&](int tile, int worker) {
        const std::int64_t* samples = order + std::int64_t{tile} * kTile;
        const int n = tile_count(count, tile);
        const float* heads = forward_tile(pictures, samples, n, tile, worker);
        tile_stats_[static_cast<std::size_t>(tile)] =
            ppo_tile(ppo, batch, samples, n, shape_.actions, shape_.values, weight, heads,
                     stage(depth).gradients.at(tile, worker));
        backward_tile(tile, worker);
    });
    PpoStats sums;
    for (int tile = 0; tile < tiles; ++tile) sums += tile_stats_[static_cast<std::size_t>(tile)];
    return sums;
}

void Net::reduce(const Rectangle& r, int tiles, double& squares) {
    const Layer& layer = layers_[static_cast<std::size_t>(r.layer)];
    const LayerView& view = layer.view;
    squares = 0.0;
    const auto sum_partials = [&](std::int64_t from, std::int64_t to, int count) {
        float* sum = gradient_.data() + to;
        std::copy_n(partials_.data() + from, count, sum);
        for (int tile = 1; tile < tiles; ++tile) {
            const float* partial = partials_.data() + tile * partial_size_ + from;
            for (int i = 0; i < count; ++i) sum[i] += partial[i];
        }
        squares += kernels_.sum_of_squares(sum, count);
    };
    if (r.input_begin == r.input_end) return sum_partials(layer.partial_bias, layer.bias, view.outputs);

    const int width = r.input_end - r.input_begin;
    if (layer.partial >= 0) {
        for (int o = r.output_begin; o < r.output_end; ++o) {
            const std::int64_t row = std::int64_t{o} * view.inputs + r.input_begin;
            sum_partials(layer.partial + row, layer.weights + row, width);
        }
        return;
    }
    const std::size_t stage = static_cast<std::size_t>(r.layer);
    const Places places{stages_[stage].values.floats.data(),
                        stages_[stage + 1].gradients.floats.data(),
                        kTile,
                        tile_inputs_.data() + stage * static_cast<std::size_t>(reserved_tiles_),
                        tile_outputs_.data() + stage * static_cast<std::size_t>(reserved_tiles_),
                        tiles};
    float* gradient = gradient_.data() + layer.weights;
    kernels_.weight_gradient(view, places, r.output_begin, r.output_end, r.input_begin, r.input_end, false,
                             gradient);
    for (int o = r.output_begin; o < r.output_end; ++o)
        squares += kernels_.sum_of_squares(gradient + std::int64_t{o} * view.inputs + r.input_begin, width);
}

double Net::reduce_gradients(int tiles) {
    each(static_cast<int>(gradient_work_.size()), [&](int item, int) {
        reduce(gradient_work_[static_cast<std::size_t>(item)], tiles,
               squares_[static_cast<std::size_t>(item)]);
    });
    return std::sqrt(std::accumulate(squares_.begin(), squares_.end(), 0.0));
}

void Net::step(const Rectangle& r, const AdamStep& step) {
    const Layer& layer = layers_[static_cast<std::size_t>(r.layer)];
    const auto update = [&](std::int64_t at, std::int64_t count) {
        kernels_.adam(step, count, gradient_.data() + at, weights_.data() + at, first_moment_.data() + at,
                      second_moment_.data() + at);
    };
    if (r.input_begin == r.input_end) return update(layer.bias, layer.view.outputs);
    for (int o = r.output_begin; o < r.output_end; ++o)
        update(layer.weights + std::int64_t{o} * layer.view.inputs + r.input_begin,
               r.input_end - r.input_begin);
    pack(r);
}

TrainStats Net::compute_gradient(const Pictures& pictures, const PpoBatch& batch, const std::int64_t* order,
                                 std::int64_t count, const PpoSettings& ppo) {
    const int tiles = tiles_of(count);
    if (tiles > reserved_tiles_ || tile_inputs_.empty()) {
        reserve_tiles(tiles);
        const auto reserved = static_cast<std::size_t>(reserved_tiles_);
        tile_inputs_.assign(layers_.size() * reserved, 0);
        tile_outputs_.assign(layers_.size() * reserved, 0);
        for (std::size_t l = 0; l < layers_.size(); ++l)
            for (std::size_t tile = 0; tile < reserved; ++tile) {
                tile_inputs_[l * reserved + tile] =
                    stages_[l].values.stride * static_cast<std::int64_t>(tile);
                tile_outputs_[l * reserved + tile] =
                    stages_[l + 1].gradients.stride * static_cast<std::int64_t>(tile);
            }
    }
    TrainStats stats;
    stats.sums = tile_gradients(pictures, batch, order, static_cast<int>(count), ppo);
    stats.samples = count;
    stats.gradient_norm = reduce_gradients(tiles);
    stats.minibatches = 1;
    return stats;
}

TrainStats Net::train(const Pictures& pictures, const PpoBatch& batch, const std::int64_t* order,
                      std::int64_t count, std::int64_t minibatch, const PpoSettings& ppo,
                      const AdamSettings& adam) {
    TrainStats total;
    for (std::int64_t first = 0; first < count; first += minibatch) {
        const std::int64_t n = std::min(minibatch, count - first);
        const TrainStats stats = compute_gradient(pictures, batch, order + first, n, ppo);
        total.sums += stats.sums;
        total.samples += stats.samples;
        total.gradient_norm += stats.gradient_norm;
        total.minibatches += stats.minibatches;

        ++adam_steps;
        const double t = static_cast<double>(adam_steps);
        const double limit = adam.max_gradient_norm;
        const double scale = limit > 0.0 ? std::min(1.0, limit / (stats.gradient_norm + 1e-6)) : 1.0;
        const AdamStep step{
            .gradient_scale = static_cast<float>(scale),
            .beta1 = static_cast<float>(adam.beta1),
            .beta2 = static_cast<float>(adam.beta2),
            .one_minus_beta1 = static_cast<float>(1.0 - adam.beta1),
            .one_minus_beta2 = static_cast<float>(1.0 - adam.beta2),
            .step_size = static_cast<float>(adam.learning_rate / (1.0 - std::pow(adam.beta1, t))),
            .second_moment_factor = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(adam.beta2, t))),
            .epsilon = static_cast<float>(adam.epsilon),
        };
        each(static_cast<int>(step_work_.size()),
             [&](int item, int) { this->step(step_work_[static_cast<std::size_t>(item)], step); });
    }
    return total;
}

}  // namespace warpzone::net
