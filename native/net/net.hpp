#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "net/aligned.hpp"
#include "net/kernels.hpp"
#include "net/layer.hpp"
#include "net/ppo.hpp"
#include "threads/team.hpp"

namespace warpzone::net {

struct ConvShape {
    int channels;
    int kernel;
    int stride;
};

/// Pictures [channels, height, width], convolutions without padding, dense layers, each followed by a ReLU;
/// then `actions` logits and one value, both linear in the last features.
struct NetShape {
    int channels;
    int height;
    int width;
    std::vector<ConvShape> convolutions;
    std::vector<int> hidden;
    int actions;
    int values;
};

/// One tensor of the flat parameter buffer, contiguous and shaped as torch has it.
struct Parameter {
    std::string
        name;  ///< conv0.weight, conv0.bias, ..., dense0.weight, ..., logits.weight, value.weight, ...
    std::int64_t offset;
    std::vector<std::int64_t> shape;
};

/// Where the pictures are: sample b is `stack` frames of channels / stack planes each, frame indices[b *
/// stack + s] being its s-th (oldest first); a negative index is a black frame. Without indices, sample b is
/// frames b * stack, b * stack + 1, ...: a plain array of pictures.
struct Pictures {
    const std::uint8_t* frames;
    const std::int32_t* indices;
    int stack;
};

struct AdamSettings {
    double learning_rate;
    double beta1;
    double beta2;
    double epsilon;
    double max_gradient_norm;  ///< Longer gradients are shortened to this length; 0: never.
};

struct TrainStats {
    PpoStats sums;  ///< Over all samples.
    std::int64_t samples = 0;
    double gradient_norm = 0.0;  ///< Before clipping, summed over minibatches.
    std::int64_t minibatches = 0;
};

/// A small actor-critic on the CPU with its optimiser.
///
/// The same calls give the same bits whatever the number of threads: a minibatch is cut into tiles of kTile
/// samples, gradients are summed over tiles in order, and who computes what never matters. One call at a
/// time; two nets share nothing.
class Net {
  public:
    /// `kernels` names an instruction set; empty takes the best. Weights start as zeros. Throws
    /// std::invalid_argument for a shape that makes no sense.
    Net(const NetShape& shape, int threads, const std::string& kernels = "");

    const NetShape& shape() const { return shape_; }
    const char* kernels() const { return kernels_.name; }
    int threads() const { return team_.threads(); }

    const std::vector<Parameter>& parameters() const { return parameters_; }
    std::int64_t parameter_count() const { return parameter_count_; }
    float* weights() { return weights_.data(); }
    float* gradient() { return gradient_.data(); }
    float* first_moment() { return first_moment_.data(); }
    float* second_moment() { return second_moment_.data(); }
    std::int64_t adam_steps = 0;

    /// To be called after writing weights from outside, before the next forward pass.
    void weights_changed();

    /// Copies the weights of a net of the same shape; throws std::invalid_argument for another.
    void copy_weights(const Net& other);

    /// logits [count, actions], values [count, values].
    void forward(const Pictures& pictures, std::int64_t count, float* logits, float* values);

    /// Samples one action per picture. What is drawn depends on the weights, the picture, (seed, step) and
    /// the sample's place in the batch.
    void act(const Pictures& pictures, std::int64_t count, std::uint64_t seed, std::uint64_t step,
             std::int64_t* actions, float* logp, float* values);

    /// One pass over `count` samples in the given order, a step of Adam per minibatch (the last may be
    /// smaller). `order` holds rows of the batch, and the pictures of row r are sample r of `pictures`.
    TrainStats train(const Pictures& pictures, const PpoBatch& batch, const std::int64_t* order,
                     std::int64_t count, std::int64_t minibatch, const PpoSettings& ppo,
                     const AdamSettings& adam);

    /// The first half of a minibatch, for tests: leaves the unclipped gradient in gradient().
    TrainStats compute_gradient(const Pictures& pictures, const PpoBatch& batch, const std::int64_t* order,
                                std::int64_t count, const PpoSettings& ppo);

  private:
    /// A layer, where its parameters are, and where its tiles are kept.
    struct Layer {
        LayerView view;
        std::vector<std::int32_t> taps;
        std::vector<std::int32_t> origins;
        std::int64_t weights;  ///< Offsets into the flat buffers.
        std::int64_t bias;
        int block;            ///< Output channels per block of packed weights.
        std::int64_t packed;  ///< Offset into packed_.
        std::int64_t
            partial;  ///< Offset of the weight gradient in a tile's partial sums; -1 if it has none there.
        std::int64_t partial_bias;
        std::vector<std::int64_t> input_offsets;  ///< Places of a weight gradient over positions.
        std::vector<std::int64_t> output_offsets;
    };

    /// Tiles of one kind: one per worker, or one per tile of the minibatch where they are kept until the
    /// weight gradient of a dense layer has read them all.
    struct Tiles {
        std::int64_t stride;  ///< Floats from one tile to the next.
        bool kept = false;
        AlignedFloats floats = {};

        float* at(int tile, int worker) { return floats.data() + (kept ? tile : worker) * stride; }
    };

    /// What goes from one layer to the next, and the gradient that comes back.
    struct Stage {
        std::int64_t size;  ///< Floats per tile.
        Tiles values;
        Tiles gradients;
    };

    /// A rectangle of a layer's weights, or a run of its biases (inputs [0, 0)): the unit of work outside
    /// tiles.
    struct Rectangle {
        int layer;
        int output_begin, output_end;
        int input_begin, input_end;
    };

    void add_layer(int outputs, bool relu, std::vector<std::int32_t> taps, std::vector<std::int32_t> origins);
    void add_stage(std::int64_t size);
    void plan_rectangles();
    Stage& stage(int index) { return stages_[static_cast<std::size_t>(index)]; }
    void reserve_tiles(int tiles);
    void pack(const Rectangle& rectangle);
    void load_tile(const Pictures& pictures, const std::int64_t* samples, int count, float* to) const;
    const float* forward_tile(const Pictures& pictures, const std::int64_t* samples, int count, int tile,
                              int worker);
    void backward_tile(int tile, int worker);
    void reduce(const Rectangle& rectangle, int tiles, double& squares);
    void step(const Rectangle& rectangle, const AdamStep& step);
    PpoStats tile_gradients(const Pictures& pictures, const PpoBatch& batch, const std::int64_t* order,
                            int count, const PpoSettings& ppo);
    double reduce_gradients(int tiles);
    template <class Task>
    void each(int items, Task&& task) {
        if (const wz::WorkError e = team_.run(items, task); e.index >= 0) throw std::runtime_error(e.message);
    }

    NetShape shape_;
    const Kernels& kernels_;
    wz::Team team_;
    std::vector<Layer> layers_;
    std::vector<Stage> stages_;  ///< stages_[l] goes into layer l, stages_[l + 1] comes out.
    std::vector<Parameter> parameters_;
    std::int64_t parameter_count_ = 0;
    AlignedFloats weights_, gradient_, first_moment_, second_moment_, packed_;
    std::int64_t partial_size_ = 0;
    AlignedFloats partials_;  ///< [tiles][partial_size_]: what each tile says about convolutions and biases.
    std::vector<Rectangle> gradient_work_, step_work_;
    std::vector<double> squares_;
    std::vector<PpoStats> tile_stats_;
    std::vector<std::int64_t> tile_inputs_, tile_outputs_;
    std::vector<std::uint8_t> black_;
    int reserved_tiles_ = 0;
};

}  // namespace warpzone::net
