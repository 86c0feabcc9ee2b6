// Defocus: renders a shallow depth of field. It splits the image into layers by their blur, blurs
// each layer by itself, and composites the layers from front to back.
//
// A pixel belongs to the two layers next to its own blur, in shares that add up to 1. From front to
// back, each layer covers as much of a pixel as its blurred shares amount to, until the pixel is
// full. So neighbouring layers of one surface leave no gap through which the background would
// shine. Behind a blurred edge, the hidden background is missing: the visible background around
// takes its place. Tiles of the result are independent of each other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/mirrored.hpp"
#include "base/multiversion.hpp"
#include "base/threads.hpp"
#include "defocus/bokeh.hpp"
#include "defocus/layers.hpp"

namespace bilateral {

namespace detail {

inline constexpr std::size_t defocus_tile = 64;
inline constexpr float least_cover = 1e-6f;      // a layer that covers less of a pixel is ignored
inline constexpr float least_open = 1e-4f;       // a pixel with less transmittance is full
inline constexpr float least_uncovered = 1e-3f;  // a pixel with less needs no filled background

struct Range {
  std::size_t begin, end;
};

// A tile of the result, and the memory of one thread to compute it. Source rows are rows of the
// image above, in and below the tile, with the columns that the kernel reaches. Their pixels, and
// those of `blurred`, hold the channels and then the weight.
struct DefocusTile : Rectangle {
  std::vector<std::size_t> columns;  // of the image, for each pixel of a source row
  std::vector<float> weights, row;   // of one source row
  std::vector<float> prefix;         // sums over the pixels of `row` before each pixel
  std::vector<float> blurred;
  std::vector<float> light;          // of the layers composited so far
  std::vector<float> transmittance;  // fraction of each pixel that no layer covers yet
  std::vector<Range> selected;       // pixels of each row that the next blur computes

  void start(const Scene& scene, std::size_t tile_top, std::size_t tile_left) {
    top = tile_top;
    left = tile_left;
    height = std::min(defocus_tile, scene.height - top);
    width = std::min(defocus_tile, scene.width - left);
    blurred.resize(height * width * (scene.channels + 1));
    light.assign(height * width * scene.channels, 0.0f);
    transmittance.assign(height * width, 1.0f);
    selected.resize(height);
  }

  // Selects, in each row, the range of the pixels for which f(index) holds. Returns false if there
  // are none.
  template <class F>
  bool select(F&& f) {
    bool any = false;
    for (std::size_t y = 0; y < height; ++y) {
      std::size_t begin = 0, end = width;
      while (begin < end && !f(y * width + begin)) ++begin;
      while (begin < end && !f(y * width + end - 1)) --end;
      selected[y] = {begin, end};
      any = any || begin < end;
    }
    return any;
  }
};

// Loads a source row, weighted by its pixels' shares, with prefix sums. Returns the range of the
// weights that are not 0.
template <std::size_t channels>
BILATERAL_INLINE Range weigh_row_body(const Scene& scene, std::size_t y, const LayerShare& share,
                                      DefocusTile& tile) {
  constexpr std::size_t planes = channels + 1;
  const float* layers = scene.layers + y * scene.width;
  const float* image = scene.image + y * scene.width * channels;
  const std::size_t n = tile.columns.size();
  float* weights = tile.weights.data();
  for (std::size_t x = 0; x < n; ++x) weights[x] = share(layers[tile.columns[x]]);
  Range used{0, n};
  while (used.begin < n && weights[used.begin] == 0) ++used.begin;
  while (used.begin < used.end && weights[used.end - 1] == 0) --used.end;
  if (used.begin == used.end) return used;
  float* row = tile.row.data();
  float* prefix = tile.prefix.data();
  std::fill_n(row, used.begin * planes, 0.0f);
  std::fill_n(prefix, used.begin * planes, 0.0f);
  float sums[planes] = {};
  for (std::size_t x = used.begin; x < used.end; ++x) {
    const float* pixel = image + tile.columns[x] * channels;
    for (std::size_t k = 0; k < planes; ++k) {
      row[x * planes + k] = k < channels ? weights[x] * pixel[k] : weights[x];
      prefix[x * planes + k] = sums[k];
      sums[k] += row[x * planes + k];
    }
  }
  std::fill_n(row + used.end * planes, (n - used.end) * planes, 0.0f);
  for (std::size_t x = used.end; x < n; ++x)
    for (std::size_t k = 0; k < planes; ++k) prefix[x * planes + k] = sums[k];
  return used;
}
template <std::size_t channels>
inline constexpr auto weigh_row = multiversion<weigh_row_body<channels>>;

// Adds the sums over a span of the kernel for n values, from prefix sums. `first` and `last` are
// the places of the first value's span in `prefix` and `row`.
BILATERAL_INLINE void add_span_body(const float* prefix, const float* row, std::size_t first,
                                    std::size_t last, float first_part, float last_part,
                                    std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i)
    out[i] += (prefix[last + i] - prefix[first + i]) +
              (last_part * row[last + i] - first_part * row[first + i]);
}
inline constexpr auto add_span = multiversion<add_span_body>;

// Writes the selected pixels of tile.blurred: the image, weighted by shares and blurred.
template <std::size_t channels>
void blur_tile(const Scene& scene, const Bokeh& bokeh, const LayerShare& share, DefocusTile& tile) {
  constexpr std::size_t planes = channels + 1;
  const auto reach = static_cast<std::ptrdiff_t>(bokeh.reach);
  const std::size_t source_width = tile.width + 2 * bokeh.reach + 1;
  tile.columns.resize(source_width);
  for (std::size_t x = 0; x < source_width; ++x)
    tile.columns[x] = mirrored(static_cast<std::ptrdiff_t>(tile.left + x) - reach, scene.width);
  tile.weights.resize(source_width);
  tile.row.resize(source_width * planes);
  tile.prefix.resize(source_width * planes);
  std::fill(tile.blurred.begin(), tile.blurred.end(), 0.0f);
  const auto height = static_cast<std::ptrdiff_t>(tile.height);
  for (std::ptrdiff_t y = -reach; y < height + reach; ++y) {
    const std::size_t from = mirrored(static_cast<std::ptrdiff_t>(tile.top) + y, scene.height);
    const Range used = weigh_row<channels>(scene, from, share, tile);
    if (used.begin == used.end) continue;
    for (const Span& span : bokeh.spans) {
      const std::ptrdiff_t to = y - span.row;
      if (to < 0 || to >= height) continue;
      // Pixel x of the tile gathers the pixels from x + first to x + last of the source row.
      const auto first = static_cast<std::size_t>(reach + span.first);
      const auto last = static_cast<std::size_t>(reach + span.last);
      const Range selected = tile.selected[static_cast<std::size_t>(to)];
      const std::size_t begin = std::max(selected.begin, std::max(used.begin, last) - last);
      const std::size_t end = std::min(selected.end, std::max(used.end, first) - first);
      if (begin >= end) continue;
      add_span(tile.prefix.data(), tile.row.data(), (begin + first) * planes,
               (begin + last) * planes, span.first_part, span.last_part, (end - begin) * planes,
               tile.blurred.data() + (static_cast<std::size_t>(to) * tile.width + begin) * planes);
    }
  }
}

// Composites the blurred pixels: a pixel that they would cover by `cover` gets covered by
// limit(pixel, cover).
template <std::size_t channels, class Limit>
void composite_tile(float gain, DefocusTile& tile, Limit&& limit) {
  for (std::size_t y = 0; y < tile.height; ++y)
    for (std::size_t x = tile.selected[y].begin; x < tile.selected[y].end; ++x) {
      const std::size_t i = y * tile.width + x;
      const float* from = tile.blurred.data() + i * (channels + 1);
      const float cover = gain * from[channels];
      if (!(cover > least_cover)) continue;
      const float covered = limit(i, cover), factor = covered / from[channels];
      for (std::size_t k = 0; k < channels; ++k) tile.light[i * channels + k] += factor * from[k];
      tile.transmittance[i] -= covered;
    }
}

// Composites one layer, behind the layers before it.
template <std::size_t channels>
void composite_layer(const Scene& scene, float layer, const Bokeh& bokeh, DefocusTile& tile) {
  blur_tile<channels>(scene, bokeh, {layer, false}, tile);
  composite_tile<channels>(1 / bokeh.area, tile, [&](std::size_t i, float cover) {
    return std::min(tile.transmittance[i], cover);
  });
}

// Fills the background that a blurred edge of the layer hides with the visible background around.
// `transmittance` is what all layers leave uncovered.
template <std::size_t channels>
void fill_background(const Scene& scene, float layer, const Bokeh& bokeh,
                     const std::vector<float>& transmittance, DefocusTile& tile) {
  const LayerShare share{layer, false};
  const auto share_of = [&](std::size_t i) {
    const std::size_t y = tile.top + i / tile.width, x = tile.left + i % tile.width;
    return share(scene.layers[y * scene.width + x]);
  };
  if (!tile.select(
          [&](std::size_t i) { return transmittance[i] > least_uncovered && share_of(i) > 0; }))
    return;
  blur_tile<channels>(scene, bokeh, {layer, true}, tile);
  composite_tile<channels>(1 / bokeh.area, tile, [&](std::size_t i, float cover) {
    return share_of(i) * std::min(transmittance[i], cover);
  });
}

// Writes the tile's light, scaled to pixels that are fully covered.
inline void write_tile(const Scene& scene, const DefocusTile& tile, float* out) {
  const std::size_t channels = scene.channels;
  for (std::size_t y = 0; y < tile.height; ++y)
    for (std::size_t x = 0; x < tile.width; ++x) {
      const std::size_t i = y * tile.width + x;
      const float gain = 1 / (1 - tile.transmittance[i]);
      float* to = out + ((tile.top + y) * scene.width + tile.left + x) * channels;
      for (std::size_t k = 0; k < channels; ++k) to[k] = gain * tile.light[i * channels + k];
    }
}

}  // namespace detail

// Blurs the scene with a kernel for each of the radii, which rise from 0.
template <std::size_t channels>
void defocus(const Scene& scene, const std::vector<double>& radii, const ApertureShape& shape,
             float* out, int threads) {
  using namespace detail;
  const std::size_t levels = radii.size(), layers = 2 * levels - 1;
  const auto layer_of = [&](std::size_t index) {
    return static_cast<float>(index) - static_cast<float>(levels - 1);
  };
  std::vector<Bokeh> bokehs;
  for (std::size_t index = 0; index < layers; ++index) {
    const auto level = static_cast<std::size_t>(std::abs(layer_of(index)));
    bokehs.push_back(make_bokeh(shape, radii[level], layer_of(index) > 0));
  }
  const LayerMap map = map_layers(scene, levels, threads);
  const auto tiles = [](std::size_t n) { return (n + defocus_tile - 1) / defocus_tile; };
  const std::size_t columns = tiles(scene.width);
  const int team = team_size(threads, scene.height * scene.width, 1 << 14);
  std::vector<DefocusTile> scratch(static_cast<std::size_t>(team));
  parallel_for(team, tiles(scene.height) * columns, [&](std::size_t item, std::size_t rank) {
    DefocusTile& tile = scratch[rank];
    tile.start(scene, item / columns * defocus_tile, item % columns * defocus_tile);
    for (std::size_t index = layers; index-- > 0;) {
      if (!map.near(index, tile, bokehs[index].reach)) continue;
      if (!tile.select([&](std::size_t i) { return tile.transmittance[i] > least_open; })) break;
      composite_layer<channels>(scene, layer_of(index), bokehs[index], tile);
    }
    const std::vector<float> transmittance = tile.transmittance;
    for (std::size_t index = layers; index-- > 0;)
      if (map.near(index, tile, 0))
        fill_background<channels>(scene, layer_of(index), bokehs[index], transmittance, tile);
    write_tile(scene, tile, out);
  });
}

}  // namespace bilateral
