// Random images and their grids, the input of most tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "grid/grid.hpp"
#include "grid/reference.hpp"
#include "tests/check.hpp"

namespace bilateral {

inline constexpr double edge_guard = 1e-9;

struct Image {
  std::size_t height, width, channels;
  std::vector<std::uint8_t> pixels;

  Image(Random& random, std::size_t h, std::size_t w, std::size_t c, std::size_t noise)
      : height(h), width(w), channels(c), pixels(h * w * c) {
    for (std::size_t i = 0; i < pixels.size(); ++i)
      pixels[i] = static_cast<std::uint8_t>((i / (7 * c)) % 3 * 60 + below(random, noise));
  }

  Reference<std::uint8_t> reference(double sigma, std::size_t frames = 1) const {
    FeatureMap map;
    map.gain.fill(1);
    map.sigma.fill(sigma);
    return {pixels.data(), frames, height / frames, width, channels, map, 255};
  }
};

// The grid of an image with a pyramid and the paper's blur. With `frames`, the image holds them one
// below the other. Compiled once for all tests.
Grid make_grid(const Image& image, double sigma_xy, double sigma, int threads,
               std::size_t frames = 1, double sigma_t = 1);

// A grid that is large enough for several threads in every stage, and a target.
struct LargeProblem {
  Image image;
  Grid grid;
  std::vector<float> target;

  LargeProblem(Random& random, int threads)
      : image(random, 365, 365, 3, 60), grid(make_grid(image, 8, 12, threads)) {
    for (std::size_t i = 0; i < grid.pixels(); ++i)
      target.push_back(static_cast<float>(below(random, 256)));
  }
};

}  // namespace bilateral
