// Build the grids of random images.
#include "tests/random_image.hpp"

#include "grid/build.hpp"
#include "grid/pyramid.hpp"

namespace bilateral {

Grid make_grid(const Image& image, double sigma_xy, double sigma, int threads, std::size_t frames,
               double sigma_t) {
  const SpaceSigmas space{frames > 1 ? 3u : 2u, sigma_xy, sigma_xy, sigma_t};
  Grid grid = build_grid(image.reference(sigma, frames), space, edge_guard, threads);
  build_pyramid(grid, threads);
  grid.centre = 2;
  grid.space = 1;
  grid.range = 0.125;
  return grid;
}

}  // namespace bilateral
