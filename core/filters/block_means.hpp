// Block means: the operator B that reduces an image to a lower resolution. Each low-resolution
// pixel is the mean over its block of pixels, weighted by area where the block's border cuts
// pixels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/threads.hpp"

namespace bilateral {

// Overlap of pixels and blocks along one axis of `length` pixels. There are no more blocks than
// pixels, so that a pixel overlaps one or two blocks.
template <class T>
struct Overlap {
  std::vector<std::uint32_t> block;     // first block of each pixel
  std::vector<T> share, next_share;     // each pixel's share of that block, and of the next block
  std::vector<std::size_t> first, end;  // pixels of each block

  Overlap(std::size_t length, std::size_t blocks)
      : block(length), share(length), next_share(length), first(blocks, length), end(blocks, 0) {
    // In units of 1 / blocks of a pixel, all borders are integers.
    for (std::size_t x = 0; x < length; ++x) {
      const std::size_t from = x * blocks, to = from + blocks, b = from / length;
      const std::size_t inside = std::min(to, (b + 1) * length) - from;
      block[x] = static_cast<std::uint32_t>(b);
      share[x] = static_cast<T>(inside) / static_cast<T>(length);
      next_share[x] = static_cast<T>(blocks - inside) / static_cast<T>(length);
      for (std::size_t k = b; k <= b + (inside < blocks); ++k) {
        first[k] = std::min(first[k], x);
        end[k] = x + 1;
      }
    }
  }

  // Returns the share of pixel x in block b, which is one of the pixel's blocks.
  T share_of(std::size_t x, std::size_t b) const {
    return block[x] == b ? share[x] : next_share[x];
  }
};

template <class T>
class Blocks {
 public:
  Blocks(std::size_t height, std::size_t width, std::size_t rows, std::size_t columns)
      : y_(height, rows), x_(width, columns) {}

  std::size_t rows() const { return y_.first.size(); }
  std::size_t columns() const { return x_.first.size(); }
  std::size_t width() const { return x_.block.size(); }
  std::size_t height() const { return y_.block.size(); }

  // Writes the means of one row of blocks. The rows of the pixels are `stride` apart. `line` is
  // scratch.
  void mean(std::size_t row, const T* pixels, std::size_t stride, std::vector<T>& line,
            T* out) const {
    line.assign(width(), T{0});
    for (std::size_t y = y_.first[row]; y < y_.end[row]; ++y) {
      const T share = y_.share_of(y, row);
      const T* from = pixels + y * stride;
      for (std::size_t x = 0; x < width(); ++x) line[x] += share * from[x];
    }
    std::fill_n(out, columns(), T{0});
    for (std::size_t x = 0; x < width(); ++x) {
      const std::size_t b = x_.block[x];
      out[b] += x_.share[x] * line[x];
      if (x_.next_share[x] > 0) out[b + 1] += x_.next_share[x] * line[x];
    }
  }

  // Writes one row of B^T values, the adjoint of `mean`: sum_b share_pb values_b for each pixel p.
  void spread(std::size_t y, const T* values, std::vector<T>& line, T* out) const {
    combine(y, values, line, out, [](T share) { return share; });
  }

  // Writes one row of diag(B^T diag(values) B): sum_b share_pb^2 values_b for each pixel p.
  void spread_squares(std::size_t y, const T* values, std::vector<T>& line, T* out) const {
    combine(y, values, line, out, [](T share) { return share * share; });
  }

 private:
  // Sums weigh(share_pb) values_b over the blocks b of each pixel p of a row.
  template <class F>
  void combine(std::size_t y, const T* values, std::vector<T>& line, T* out, F weigh) const {
    const std::size_t b = y_.block[y];
    const bool two_rows = y_.next_share[y] > 0;
    const T here = weigh(y_.share[y]), below = weigh(y_.next_share[y]);
    line.resize(columns() + 1);
    line[columns()] = 0;
    for (std::size_t k = 0; k < columns(); ++k)
      line[k] = here * values[b * columns() + k] +
                (two_rows ? below * values[(b + 1) * columns() + k] : T{0});
    for (std::size_t x = 0; x < width(); ++x)
      out[x] =
          weigh(x_.share[x]) * line[x_.block[x]] + weigh(x_.next_share[x]) * line[x_.block[x] + 1];
  }

  Overlap<T> y_, x_;
};

// Writes pixels = B^T values.
template <class T>
void spread_blocks(const Blocks<T>& blocks, const T* values, T* pixels, int threads) {
  std::vector<std::vector<T>> lines(static_cast<std::size_t>(std::max(threads, 1)));
  parallel_for(team_size(threads, blocks.height() * blocks.width(), 65536), blocks.height(),
               [&](std::size_t y, std::size_t rank) {
                 blocks.spread(y, values, lines[rank], pixels + y * blocks.width());
               });
}

// Writes means = B pixels.
template <class T>
void block_means(const Blocks<T>& blocks, const T* pixels, T* means, int threads) {
  std::vector<std::vector<T>> lines(static_cast<std::size_t>(std::max(threads, 1)));
  parallel_for(team_size(threads, blocks.height() * blocks.width(), 65536), blocks.rows(),
               [&](std::size_t row, std::size_t rank) {
                 blocks.mean(row, pixels, blocks.width(), lines[rank],
                             means + row * blocks.columns());
               });
}

}  // namespace bilateral
