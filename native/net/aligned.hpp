#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace warpzone::net {

/// A zeroed block of floats on a cache-line boundary, that does not grow by itself.
class AlignedFloats {
  public:
    AlignedFloats() = default;
    explicit AlignedFloats(std::size_t size) { reset(size); }

    /// Makes room for `size` zeros; what was there is gone.
    void reset(std::size_t size) {
        data_.reset(static_cast<float*>(::operator new[](size * sizeof(float), kAlignment)));
        std::memset(data_.get(), 0, size * sizeof(float));
        size_ = size;
    }

    float* data() { return data_.get(); }
    const float* data() const { return data_.get(); }
    std::size_t size() const { return size_; }

  private:
    static constexpr std::align_val_t kAlignment{64};
    struct Free {
        void operator()(float* p) const { ::operator delete[](p, kAlignment); }
    };
    std::unique_ptr<float[], Free> data_;
    std::size_t size_ = 0;
};

}  // namespace warpzone::net
