// Count the pixels whose vertices lack data, as all neighbours of these vertices do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <vector>

#include "base/buffer.hpp"
#include "base/threads.hpp"
#include "grid/bistochastize.hpp"
#include "grid/grid.hpp"

namespace bilateral {

// Returns the number of pixels of loose vertices. A vertex lacks weight if it has less than `least`
// per pixel. It is loose if it has neighbours, and these all lack weight, too: the errors of such
// vertices vanish slowly.
template <class T>
double count_loose(const Grid& grid, const T* weight, double least, int threads) {
  // What a neighbour adds to a sum: more than all neighbours that lack weight together, if it has.
  constexpr float lacks = 1, has = 256;
  const int team = team_size(threads, grid.vertices, 16384);
  Buffer<float> value(grid.vertices), around(grid.vertices);
  std::vector<std::uint8_t> band_lacks(grid.bands());
  parallel_for(team, grid.bands(), [&](std::size_t band, std::size_t) {
    bool any = false;
    for (std::size_t v = grid.band_vertex[band]; v < grid.band_vertex[band + 1]; ++v) {
      const bool lacking = static_cast<double>(weight[v]) < least * double{grid.mass[v]};
      value[v] = lacking ? lacks : has;
      any = any || lacking;
    }
    band_lacks[band] = any;
  });
  const BlurWeights links{0, grid.space > 0 ? 1.0 : 0.0, grid.range > 0 ? 1.0 : 0.0};
  std::vector<double> loose(grid.bands(), 0.0);
  parallel_for(team, grid.bands(), [&](std::size_t band, std::size_t) {
    if (!band_lacks[band]) return;
    blur_band(grid, band, links, value.data(), std::integral_constant<std::size_t, 1>{},
              around.data());
    for (std::size_t v = grid.band_vertex[band]; v < grid.band_vertex[band + 1]; ++v) {
      const bool is_loose = value[v] == lacks && around[v] >= lacks && around[v] < has;
      loose[band] += is_loose ? double{grid.mass[v]} : 0.0;
    }
  });
  return std::accumulate(loose.begin(), loose.end(), 0.0);
}

}  // namespace bilateral
