// Pixel graph: joins each pixel of a reference image to its eight neighbours, with weights that
// fall with the difference of their colours.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "base/buffer.hpp"
#include "base/exponential.hpp"
#include "base/threads.hpp"

namespace bilateral {

// East, south, south-east, south-west: half of the eight neighbours. Each edge is stored once, at
// its upper or left pixel.
inline constexpr std::size_t directions = 4;

namespace detail {

// One number per pixel, with a margin of one pixel on all sides, so that every pixel has eight
// neighbours in memory. Values of the margin never count.
template <class T>
class Plane {
 public:
  Plane(std::size_t height, std::size_t width)
      : stride_(width + 2), data_((height + 2) * stride_, T{0}) {}

  T* row(std::size_t y) { return data_.data() + (y + 1) * stride_ + 1; }
  const T* row(std::size_t y) const { return data_.data() + (y + 1) * stride_ + 1; }
  std::size_t stride() const { return stride_; }

 private:
  std::size_t stride_;
  Buffer<T> data_;
};

// One plane per direction.
template <class T>
using Planes = std::array<Plane<T>, directions>;

template <class T>
Planes<T> planes(std::size_t height, std::size_t width) {
  const auto plane = [&] { return Plane<T>(height, width); };
  return {plane(), plane(), plane(), plane()};
}

// Returns the distance in memory from a pixel to its neighbour, per direction.
inline std::array<std::ptrdiff_t, directions> offsets(std::size_t stride) {
  const auto down = static_cast<std::ptrdiff_t>(stride);
  return {1, down, down + 1, down - 1};
}

}  // namespace detail

// The weight of an edge pq is smoothness * nearness_pq * exp(-sum_c |I_c(p) - I_c(q)| / sigma),
// with the nearness 1 along rows and columns and sqrt(1/2) along diagonals. Edges that leave the
// image have weight 0.
template <class T>
class PixelGraph {
 public:
  template <class R>
  PixelGraph(const R* pixels, std::size_t height, std::size_t width, std::size_t channels,
             double smoothness, double sigma, int threads)
      : height_(height), width_(width), weight_(detail::planes<T>(height, width)) {
    const T unit = static_cast<T>(1 / sigma);
    parallel_for(
        team_size(threads, height * width, 16384), height, [&](std::size_t y, std::size_t) {
          for (std::size_t k = 0; k < directions; ++k) {
            if (k > 0 && y + 1 == height) break;
            const std::size_t begin = k == 3, end = width - (k % 2 == 0);
            const auto factor = static_cast<T>(smoothness * (k < 2 ? 1 : std::sqrt(0.5)));
            const R* row = pixels + y * width * channels;
            const std::ptrdiff_t across = k == 0 || k == 2 ? 1 : k == 3 ? -1 : 0;
            const R* neighbours =
                row + ((k > 0 ? static_cast<std::ptrdiff_t>(width) : 0) + across) *
                          static_cast<std::ptrdiff_t>(channels);
            T* weight = weight_[k].row(y);
            for (std::size_t x = begin; x < end; ++x) {
              T distance = 0;
              for (std::size_t c = x * channels; c < (x + 1) * channels; ++c)
                distance += std::abs(static_cast<T>(row[c]) - static_cast<T>(neighbours[c]));
              weight[x] = factor * decay(distance * unit);
            }
          }
        });
  }

  std::size_t height() const { return height_; }
  std::size_t width() const { return width_; }
  // The weights of the edges, per direction.
  const detail::Planes<T>& weight() const { return weight_; }

 private:
  std::size_t height_, width_;
  detail::Planes<T> weight_;
};

}  // namespace bilateral
