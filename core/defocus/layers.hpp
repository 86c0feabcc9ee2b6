// Layers: splits an image into layers by their blur, and records the layers of each block of
// pixels.
#pragma once

#include <algorithm>
#include <bitset>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/multiversion.hpp"
#include "base/threads.hpp"

namespace bilateral {

inline constexpr std::size_t max_blur_levels = 64;
inline constexpr double max_blur_radius = 4096;

// An image to blur: H x W x C linear light, and H x W layers. With n radii, layers are real numbers
// from -(n - 1), the farthest, to n - 1, the nearest; 0 is in focus. The layers k and -k are
// blurred by radii[k].
struct Scene {
  const float* image;
  const float* layers;
  std::size_t height, width, channels;
};

namespace detail {

inline constexpr std::size_t defocus_block = 32;
using LayerSet = std::bitset<2 * max_blur_levels>;

// Returns the share of a pixel in `layer`, or in the background of `layer`. The background begins
// one layer behind `layer`.
struct LayerShare {
  float layer;
  bool background;
  BILATERAL_INLINE float operator()(float pixel_layer) const {
    const float share = background ? layer - 1 - pixel_layer : 1 - std::abs(pixel_layer - layer);
    return std::min(std::max(share, 0.0f), 1.0f);
  }
};

struct Rectangle {
  std::size_t top, left, height, width;
};

// The set of layers of each block of pixels.
struct LayerMap {
  std::size_t rows, columns;
  std::vector<LayerSet> blocks;

  // Returns whether a block in the tile, or at most `reach` pixels away, contains the layer with
  // this index.
  bool near(std::size_t layer, const Rectangle& tile, std::size_t reach) const {
    const auto block = [](std::size_t at, std::size_t blocks) {
      return std::min(at / defocus_block, blocks - 1);
    };
    const std::size_t top = block(std::max(tile.top, reach) - reach, rows);
    const std::size_t left = block(std::max(tile.left, reach) - reach, columns);
    for (std::size_t y = top; y <= block(tile.top + tile.height - 1 + reach, rows); ++y)
      for (std::size_t x = left; x <= block(tile.left + tile.width - 1 + reach, columns); ++x)
        if (blocks[y * columns + x][layer]) return true;
    return false;
  }
};

// Records the two layers of each pixel. With n levels, index 0 stands for layer -(n - 1). A layer
// outside counts as the nearest one: another thread may change the layers during the call.
inline LayerMap map_layers(const Scene& scene, std::size_t levels, int threads) {
  const auto blocks = [](std::size_t n) { return (n + defocus_block - 1) / defocus_block; };
  LayerMap map{blocks(scene.height), blocks(scene.width), {}};
  map.blocks.resize(map.rows * map.columns);
  const float middle = static_cast<float>(levels - 1);
  parallel_for(team_size(threads, scene.height * scene.width, 1 << 17), map.rows,
               [&](std::size_t row, std::size_t) {
                 const std::size_t top = row * defocus_block;
                 for (std::size_t y = top; y < std::min(top + defocus_block, scene.height); ++y)
                   for (std::size_t x = 0; x < scene.width; ++x) {
                     const float shifted = scene.layers[y * scene.width + x] + middle;
                     const float layer = std::min(std::max(0.0f, shifted), 2 * middle);
                     LayerSet& set = map.blocks[row * map.columns + x / defocus_block];
                     set.set(static_cast<std::size_t>(layer));
                     set.set(static_cast<std::size_t>(std::ceil(layer)));
                   }
               });
  return map;
}

}  // namespace detail

}  // namespace bilateral
