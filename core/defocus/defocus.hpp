// A shallow depth of field: the image is cut into layers by how far out of focus they are, and each
// layer is blurred by itself and laid over what lies behind it.
//
// A pixel belongs to the two layers next to its own blur, in parts that add up to 1. Seen from the
// front, each layer covers as much of a pixel as its blurred parts amount to, until the pixel is
// full: neighbouring layers of one surface then leave no gap that what lies behind shines through.
// Where the hidden part of the background is missing behind a blurred edge, its place is taken by
// the visible background around. Tiles of the result are independent of each other.
#pragma once

#include <algorithm>
#include <bitset>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/mirrored.hpp"
#include "base/multiversion.hpp"
#include "base/threads.hpp"
#include "defocus/bokeh.hpp"

namespace bilateral {

inline constexpr std::size_t most_blur_levels = 64;
inline constexpr double most_blur_radius = 4096;

// What to blur: H x W x C light, and H x W layers, real numbers from -(n - 1), the farthest, over
// 0, which is in focus, to n - 1. Layers k and -k blur by radii[k], n radii in all.
struct Scene {
  const float* image;
  const float* layers;
  std::size_t height, width, channels;
};

namespace detail {

inline constexpr std::size_t defocus_tile = 64, defocus_block = 32;
using LayerSet = std::bitset<2 * most_blur_levels>;

// How much a pixel of the layer `at` counts: for one layer, its part in it; for all behind one,
// whether it lies more than a layer behind it.
struct Part {
  float layer;
  bool behind;
  BILATERAL_INLINE float operator()(float at) const {
    const float room = behind ? layer - 1 - at : 1 - std::abs(at - layer);
    return std::min(std::max(room, 0.0f), 1.0f);
  }
};

struct Range {
  std::size_t begin, end;
};

// A tile of the result, and what one thread needs to find it. Pixels hold their channels and,
// behind them, how much of the pixel they fill.
struct DefocusTile {
  std::size_t top, left, height, width;
  std::vector<std::size_t> columns;  // of the image, for a row of the tile with its surroundings
  std::vector<float> weights, row, before;  // of one such row; the sums of the pixels before
  std::vector<float> blurred;
  std::vector<float> light, room;  // what has come so far, and how much of each pixel is free
  std::vector<Range> wanted;       // pixels of each row that are still to be found

  void start(const Scene& scene, std::size_t tile_top, std::size_t tile_left) {
    top = tile_top;
    left = tile_left;
    height = std::min(defocus_tile, scene.height - top);
    width = std::min(defocus_tile, scene.width - left);
    blurred.resize(height * width * (scene.channels + 1));
    light.assign(height * width * scene.channels, 0.0f);
    room.assign(height * width, 1.0f);
    wanted.resize(height);
  }

  // Asks for the pixels where f(index) holds. False if there is none.
  template <class F>
  bool want(F&& f) {
    bool any = false;
    for (std::size_t y = 0; y < height; ++y) {
      std::size_t begin = 0, end = width;
      while (begin < end && !f(y * width + begin)) ++begin;
      while (begin < end && !f(y * width + end - 1)) --end;
      wanted[y] = {begin, end};
      any = any || begin < end;
    }
    return any;
  }
};

// Which layers the pixels of each block belong to.
struct LayerMap {
  std::size_t rows, columns;
  std::vector<LayerSet> blocks;

  // Whether a pixel of the tile, or so near to it, belongs to a layer.
  bool near(std::size_t layer, const DefocusTile& tile, std::size_t reach) const {
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
                     const float layer = scene.layers[y * scene.width + x] + middle;
                     LayerSet& set = map.blocks[row * map.columns + x / defocus_block];
                     set.set(static_cast<std::size_t>(layer));
                     set.set(static_cast<std::size_t>(std::ceil(layer)));
                   }
               });
  return map;
}

// Reads a row with its surroundings, weighed. Returns where weights are not 0.
template <std::size_t channels>
BILATERAL_MULTIVERSION Range weigh_row(const Scene& scene, std::size_t y, const Part& part,
                                       DefocusTile& tile) {
  constexpr std::size_t planes = channels + 1;
  const float* layers = scene.layers + y * scene.width;
  const float* image = scene.image + y * scene.width * channels;
  const std::size_t n = tile.columns.size();
  float* weights = tile.weights.data();
  for (std::size_t x = 0; x < n; ++x) weights[x] = part(layers[tile.columns[x]]);
  Range used{0, n};
  while (used.begin < n && weights[used.begin] == 0) ++used.begin;
  while (used.begin < used.end && weights[used.end - 1] == 0) --used.end;
  if (used.begin == used.end) return used;
  float* row = tile.row.data();
  float* before = tile.before.data();
  std::fill_n(row, used.begin * planes, 0.0f);
  std::fill_n(before, used.begin * planes, 0.0f);
  float sums[planes] = {};
  for (std::size_t x = used.begin; x < used.end; ++x) {
    const float* pixel = image + tile.columns[x] * channels;
    for (std::size_t k = 0; k < planes; ++k) {
      row[x * planes + k] = k < channels ? weights[x] * pixel[k] : weights[x];
      before[x * planes + k] = sums[k];
      sums[k] += row[x * planes + k];
    }
  }
  std::fill_n(row + used.end * planes, (n - used.end) * planes, 0.0f);
  for (std::size_t x = used.end; x < n; ++x)
    for (std::size_t k = 0; k < planes; ++k) before[x * planes + k] = sums[k];
  return used;
}

// Adds n sums over a span: from where the sums before and the values themselves begin and end.
BILATERAL_MULTIVERSION inline void add_span(const float* before, const float* row,
                                            std::size_t first, std::size_t last, float first_part,
                                            float last_part, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i)
    out[i] += (before[last + i] - before[first + i]) +
              (last_part * row[last + i] - first_part * row[first + i]);
}

// The wanted pixels of the tile from the image, weighed and blurred.
template <std::size_t channels>
void blur_tile(const Scene& scene, const Bokeh& bokeh, const Part& part, DefocusTile& tile) {
  constexpr std::size_t planes = channels + 1;
  const auto reach = static_cast<std::ptrdiff_t>(bokeh.reach);
  const std::size_t surroundings = tile.width + 2 * bokeh.reach + 1;
  tile.columns.resize(surroundings);
  for (std::size_t x = 0; x < surroundings; ++x)
    tile.columns[x] = mirrored(static_cast<std::ptrdiff_t>(tile.left + x) - reach, scene.width);
  tile.weights.resize(surroundings);
  tile.row.resize(surroundings * planes);
  tile.before.resize(surroundings * planes);
  std::fill(tile.blurred.begin(), tile.blurred.end(), 0.0f);
  const auto height = static_cast<std::ptrdiff_t>(tile.height);
  for (std::ptrdiff_t y = -reach; y < height + reach; ++y) {
    const std::size_t from = mirrored(static_cast<std::ptrdiff_t>(tile.top) + y, scene.height);
    const Range used = weigh_row<channels>(scene, from, part, tile);
    if (used.begin == used.end) continue;
    for (const Span& span : bokeh.spans) {
      const std::ptrdiff_t to = y - span.row;
      if (to < 0 || to >= height) continue;
      // Pixel x sees [x + first, x + last], counted from the beginning of the surroundings.
      const auto first = static_cast<std::size_t>(reach + span.first);
      const auto last = static_cast<std::size_t>(reach + span.last);
      const Range wanted = tile.wanted[static_cast<std::size_t>(to)];
      const std::size_t begin = std::max(wanted.begin, std::max(used.begin, last) - last);
      const std::size_t end = std::min(wanted.end, std::max(used.end, first) - first);
      if (begin >= end) continue;
      add_span(tile.before.data(), tile.row.data(), (begin + first) * planes,
               (begin + last) * planes, span.first_part, span.last_part, (end - begin) * planes,
               tile.blurred.data() + (static_cast<std::size_t>(to) * tile.width + begin) * planes);
    }
  }
}

// Lets the blurred pixels cover at most share(pixel, cover) of the wanted ones.
template <std::size_t channels, class Share>
void cover_tile(float gain, DefocusTile& tile, Share&& share) {
  for (std::size_t y = 0; y < tile.height; ++y)
    for (std::size_t x = tile.wanted[y].begin; x < tile.wanted[y].end; ++x) {
      const std::size_t i = y * tile.width + x;
      const float* from = tile.blurred.data() + i * (channels + 1);
      const float cover = gain * from[channels];
      if (!(cover > 1e-6f)) continue;
      const float taken = share(i, cover), part = taken / from[channels];
      for (std::size_t k = 0; k < channels; ++k) tile.light[i * channels + k] += part * from[k];
      tile.room[i] -= taken;
    }
}

// The layer covers what is free.
template <std::size_t channels>
void lay_tile(const Scene& scene, float layer, const Bokeh& bokeh, DefocusTile& tile) {
  blur_tile<channels>(scene, bokeh, {layer, false}, tile);
  cover_tile<channels>(1 / bokeh.area, tile,
                       [&](std::size_t i, float cover) { return std::min(tile.room[i], cover); });
}

// The visible background around takes the place of what a blurred edge of the layer hides.
template <std::size_t channels>
void fill_tile(const Scene& scene, float layer, const Bokeh& bokeh, const std::vector<float>& room,
               DefocusTile& tile) {
  const Part own{layer, false};
  const auto part_of = [&](std::size_t i) {
    const std::size_t y = tile.top + i / tile.width, x = tile.left + i % tile.width;
    return own(scene.layers[y * scene.width + x]);
  };
  if (!tile.want([&](std::size_t i) { return room[i] > 1e-3f && part_of(i) > 0; })) return;
  blur_tile<channels>(scene, bokeh, {layer, true}, tile);
  cover_tile<channels>(1 / bokeh.area, tile, [&](std::size_t i, float cover) {
    return part_of(i) * std::min(room[i], cover);
  });
}

inline void write_tile(const Scene& scene, const DefocusTile& tile, float* out) {
  const std::size_t channels = scene.channels;
  for (std::size_t y = 0; y < tile.height; ++y)
    for (std::size_t x = 0; x < tile.width; ++x) {
      const std::size_t i = y * tile.width + x;
      const float gain = 1 / (1 - tile.room[i]);
      float* to = out + ((tile.top + y) * scene.width + tile.left + x) * channels;
      for (std::size_t k = 0; k < channels; ++k) to[k] = gain * tile.light[i * channels + k];
    }
}

}  // namespace detail

template <std::size_t channels>
void defocus(const Scene& scene, const std::vector<double>& radii, const ApertureShape& shape,
             float* out, int threads) {
  using namespace detail;
  const std::size_t levels = radii.size(), layers = 2 * levels - 1;
  const auto number = [&](std::size_t index) {
    return static_cast<float>(index) - static_cast<float>(levels - 1);
  };
  std::vector<Bokeh> bokehs;
  for (std::size_t index = 0; index < layers; ++index) {
    const auto level = static_cast<std::size_t>(std::abs(number(index)));
    bokehs.push_back(make_bokeh(shape, radii[level], number(index) > 0));
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
      if (!tile.want([&](std::size_t i) { return tile.room[i] > 1e-4f; })) break;
      lay_tile<channels>(scene, number(index), bokehs[index], tile);
    }
    const std::vector<float> room = tile.room;
    for (std::size_t index = layers; index-- > 0;)
      if (map.near(index, tile, 0))
        fill_tile<channels>(scene, number(index), bokehs[index], room, tile);
    write_tile(scene, tile, out);
  });
}

}  // namespace bilateral
