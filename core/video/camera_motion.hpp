// Motion of the camera between two photographs by direct alignment: Gauss-Newton steps with robust
// weights on each level of a pyramid of luma, from coarse to fine. Gain and offset of the exposure
// are estimated together with the flow.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/lanes.hpp"
#include "base/multiversion.hpp"
#include "base/thread_pool.hpp"
#include "base/vector_loops.hpp"
#include "video/flow_model.hpp"
#include "video/small_solve.hpp"

namespace bilateral {

// One level: a pixel of it covers step x step pixels of the photograph.
struct LumaLevel {
  const float *before, *now;
  std::size_t height, width, step;
};

struct CameraMotion {
  std::array<double, flow_parameters> theta{};
  double gain = 1, offset = 0;  // luma before = gain * luma now + offset
  double residual = 0;          // median of |luma before - gain * luma now - offset|
  double flow = 0;              // the longest, in pixels
};

namespace detail {

inline constexpr std::size_t align_unknowns = flow_parameters + 2;  // with gain and offset
inline constexpr std::size_t align_chunk = 64;                      // pixels of one partial sum
inline constexpr std::size_t align_bands_of = 8;                    // rows of one partial sum
inline constexpr std::size_t residual_bins = 512;
inline constexpr float bins_per_level = 16;  // bins of residuals per grey level

using AlignLanes = Lanes<float, 8>;

// Sums over the pixels of a band: H = sum w J J^T (upper triangle), b = sum w J r.
struct AlignSums {
  double H[align_unknowns][align_unknowns] = {};
  double b[align_unknowns] = {};
  std::uint32_t bins[residual_bins] = {};
};

// A row of a level, with what all its pixels share.
struct AlignRow {
  const LumaLevel& level;
  const FlowModel& model;
  const float* inverse;  // inverse depth of the level's pixels
  std::size_t y;
  float gain, offset, spread;  // spread: scale of the robust weight
};

BILATERAL_INLINE void add_products(const float (*J)[align_chunk], const float* weight,
                                   const float* r, AlignSums& sums) {
  constexpr std::size_t lanes = 8;
  for (std::size_t i = 0; i < align_unknowns; ++i) {
    float weighted[align_chunk];
    for (std::size_t k = 0; k < align_chunk; ++k) weighted[k] = J[i][k] * weight[k];
    const auto dot = [&](const float* other) __attribute__((always_inline)) {
      AlignLanes sum{};
      for (std::size_t k = 0; k < align_chunk; k += lanes)
        sum += load_lanes<AlignLanes>(weighted + k) * load_lanes<AlignLanes>(other + k);
      return static_cast<double>(fold_lanes<float, lanes>(sum, lanes_sum));
    };
    for (std::size_t j = i; j < align_unknowns; ++j) sums.H[i][j] += dot(J[j]);
    sums.b[i] += dot(r);
  }
}

BILATERAL_INLINE void align_row_body(const AlignRow& row, AlignSums& sums) {
  const std::size_t width = row.level.width, height = row.level.height, y = row.y;
  const auto step = static_cast<float>(row.level.step);
  const float* now = row.level.now + y * width;
  const float* above = now - width;
  const float* before = row.level.before;
  const FlowModel& model = row.model;
  const float half = (step - 1) / 2, per_step = 1 / step;
  const float slope = 0.5f * per_step * row.gain;  // of the frame before, nearly
  const float position_y = (static_cast<float>(y) * step + half - model.centre_y) * model.scale;
  const auto last_x = static_cast<float>(width - 2), last_y = static_cast<float>(height - 2);
  const float per_spread = 1 / row.spread;
  float J[align_unknowns][align_chunk], r[align_chunk], weight[align_chunk];
  float to_x[align_chunk], to_y[align_chunk], sampled[align_chunk], inside[align_chunk];
  for (std::size_t first = 1; first + 1 < width; first += align_chunk) {
    const std::size_t n = std::min(align_chunk, width - 1 - first);
    if (n < align_chunk)
      for (auto& column : J) std::fill(column + n, column + align_chunk, 0.0f);
    std::fill(r + n, r + align_chunk, 0.0f);
    std::fill(weight + n, weight + align_chunk, 0.0f);
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t x = first + k;
      const float q = row.inverse[y * width + x];
      const float X = (static_cast<float>(x) * step + half - model.centre_x) * model.scale;
      const float Y = position_y;
      const float gx = (now[x + 1] - now[x - 1]) * slope;
      const float gy = (now[x + width] - above[x]) * slope;
      const float radial = gx * X + gy * Y;
      const float columns[align_unknowns] = {gx,          gx * X,     gx * Y,     gy,     gy * X,
                                             gy * Y,      X * radial, Y * radial, q * gx, q * gy,
                                             -q * radial, -now[x],    -1};
      for (std::size_t i = 0; i < align_unknowns; ++i) J[i][k] = columns[i];
      const float px = static_cast<float>(x) + model.flow_x(Y, X, q) * per_step;
      const float py = static_cast<float>(y) + model.flow_y(Y, X, q) * per_step;
      inside[k] = ((px >= 1) & (px < last_x) & (py >= 1) & (py < last_y)) ? 1.0f : 0.0f;
      to_x[k] = px >= 1 ? (px < last_x ? px : last_x) : 1.0f;
      to_y[k] = py >= 1 ? (py < last_y ? py : last_y) : 1.0f;
    }
    for (std::size_t k = 0; k < n; ++k) {
      const auto x0 = static_cast<std::int32_t>(to_x[k]), y0 = static_cast<std::int32_t>(to_y[k]);
      const float fx = to_x[k] - static_cast<float>(x0), fy = to_y[k] - static_cast<float>(y0);
      const float* corner =
          before + static_cast<std::size_t>(y0) * width + static_cast<std::size_t>(x0);
      const float top = corner[0] + fx * (corner[1] - corner[0]);
      const float bottom = corner[width] + fx * (corner[width + 1] - corner[width]);
      sampled[k] = top + fy * (bottom - top);
    }
    for (std::size_t k = 0; k < n; ++k) {
      r[k] = sampled[k] - row.gain * now[first + k] - row.offset;
      const float e = r[k] * per_spread, root = 1 / (1 + e * e);
      weight[k] = inside[k] * root * root;
    }
    for (std::size_t k = 0; k < n; ++k) {
      const float size = std::min(std::abs(r[k]) * bins_per_level, residual_bins - 1.0f);
      sums.bins[static_cast<std::uint32_t>(size)] += inside[k] > 0;
    }
    add_products(J, weight, r, sums);
  }
}
inline constexpr auto align_row = multiversion<align_row_body>;

// Median of |r| in grey levels; `none` if no pixel lies inside both photographs.
inline double median_residual(const AlignSums& sums, double none) {
  std::uint64_t total = 0, below = 0;
  for (const auto count : sums.bins) total += count;
  if (total == 0) return none;
  std::size_t bin = 0;
  while ((below += sums.bins[bin]) * 2 < total) ++bin;
  return (static_cast<double>(bin) + 0.5) / static_cast<double>(bins_per_level);
}

// Mean of |r|, limited to the last bin.
inline double mean_residual(const AlignSums& sums) {
  std::uint64_t total = 0, weighted = 0;
  for (std::size_t bin = 0; bin < residual_bins; ++bin) {
    total += sums.bins[bin];
    weighted += sums.bins[bin] * bin;
  }
  return static_cast<double>(weighted) / static_cast<double>(std::max<std::uint64_t>(total, 1));
}

// Alignment on one level. The residuals of a step set the scale of the weights of the next.
class LevelAlignment {
 public:
  LevelAlignment(const LumaLevel& level, const float* depth, double unit, std::size_t height,
                 std::size_t width, std::size_t every)
      : level_(level),
        unit_(unit),
        height_(height),
        width_(width),
        every_(every),
        inverse_(level.height * level.width),
        bands_((level.height + align_bands_of * every - 1) / (align_bands_of * every)) {
    const FlowModel model({}, unit, height, width);
    for (std::size_t y = 0; y < level.height; ++y) {
      const std::size_t row = std::min(y * level.step + level.step / 2, height - 1);
      for (std::size_t x = 0; x < level.width; ++x) {
        const std::size_t column = std::min(x * level.step + level.step / 2, width - 1);
        inverse_[y * level.width + x] = model.inverse_depth(depth[row * width + column]);
      }
    }
  }

  // Runs at most `steps` steps; stops at one that moves no pixel by more than `least` pixels, and
  // takes back steps that raise the error. The residual is that of the last step's start.
  void run(ThreadPool& pool, CameraMotion& motion, int steps, double least) {
    constexpr double worse = 1.1;
    CameraMotion best = motion;
    double best_error = std::numeric_limits<double>::infinity();
    for (int k = 0; k < steps; ++k) {
      const CameraMotion start = motion;
      const double moved = step(pool, motion);
      if (error_ > worse * best_error) {
        motion = best;
        return;
      }
      if (error_ < best_error) {
        best_error = error_;
        best = start;
      }
      if (moved < least) return;
    }
  }

  // Returns the longest flow in pixels.
  double longest_flow(const CameraMotion& motion) const {
    const FlowModel model(motion.theta, unit_, height_, width_);
    float most = 0;
    for (std::size_t y = 0; y < level_.height; ++y)
      for (std::size_t x = 0; x < level_.width; ++x) {
        const auto place = [&](std::size_t i, float centre) {
          return (static_cast<float>(i * level_.step + level_.step / 2) - centre) * model.scale;
        };
        const float Y = place(y, model.centre_y), X = place(x, model.centre_x);
        const float q = inverse_[y * level_.width + x];
        const float dy = model.flow_y(Y, X, q), dx = model.flow_x(Y, X, q);
        most = std::max(most, dy * dy + dx * dx);
      }
    return std::sqrt(static_cast<double>(most));
  }

  // Whether more pixels fit the motion than fit no motion. A thing that moves in front of a
  // standing camera may lead the alignment astray, but most pixels stay where they are.
  bool fits_better_than_none(const CameraMotion& motion) const {
    constexpr float clear = 1;  // grey levels
    const FlowModel model(motion.theta, unit_, height_, width_), none({}, unit_, height_, width_);
    const auto gain = static_cast<float>(motion.gain), offset = static_cast<float>(motion.offset);
    std::size_t moving = 0, standing = 0;
    for (std::size_t y = 1; y + 1 < level_.height; y += every_)
      for (std::size_t x = 1; x + 1 < level_.width; x += every_) {
        const float expected = gain * level_.now[y * level_.width + x] + offset;
        const float off = std::abs(sample(model, x, y) - expected);
        const float still = std::abs(sample(none, x, y) - expected);
        moving += off + clear < still;
        standing += still + clear < off;
      }
    return moving > standing;
  }

  // Returns the mean residual of a motion.
  double error(ThreadPool& pool, CameraMotion motion) {
    step(pool, motion);
    return error_;
  }

 private:
  // Luma of the frame before where the flow of a pixel leads to, or at the border.
  float sample(const FlowModel& model, std::size_t x, std::size_t y) const {
    const auto step = static_cast<float>(level_.step);
    const auto place = [&](std::size_t i, float centre) {
      return (static_cast<float>(i) * step + (step - 1) / 2 - centre) * model.scale;
    };
    const float Y = place(y, model.centre_y), X = place(x, model.centre_x);
    const float q = inverse_[y * level_.width + x];
    const auto inside = [&](std::size_t i, float flow, std::size_t size) {
      return std::clamp(static_cast<float>(i) + flow / step, 0.0f, static_cast<float>(size - 2));
    };
    const float py = inside(y, model.flow_y(Y, X, q), level_.height);
    const float px = inside(x, model.flow_x(Y, X, q), level_.width);
    const auto x0 = static_cast<std::size_t>(px), y0 = static_cast<std::size_t>(py);
    const float fx = px - static_cast<float>(x0), fy = py - static_cast<float>(y0);
    const float* corner = level_.before + y0 * level_.width + x0;
    const float top = corner[0] + fx * (corner[1] - corner[0]);
    const float* below = corner + level_.width;
    return top + fy * (below[0] + fx * (below[1] - below[0]) - top);
  }

  // One Gauss-Newton step; returns how far it moves pixels, at most, at inverse depth 1.
  double step(ThreadPool& pool, CameraMotion& motion) {
    const FlowModel model(motion.theta, unit_, height_, width_);
    const double spread =
        2 * (1.4826 * motion.residual + least_spread * static_cast<double>(level_.step));
    pool.each(pool.size(), bands_.size(), [&](std::size_t band, std::size_t) {
      bands_[band] = {};
      const std::size_t rows = align_bands_of * every_;
      for (std::size_t y = band * rows; y < std::min((band + 1) * rows, level_.height); y += every_)
        if (y > 0 && y + 1 < level_.height)
          align_row({level_, model, inverse_.data(), y, static_cast<float>(motion.gain),
                     static_cast<float>(motion.offset), static_cast<float>(spread)},
                    bands_[band]);
    });
    AlignSums total;
    for (const AlignSums& band : bands_) {
      for (std::size_t i = 0; i < align_unknowns; ++i) {
        for (std::size_t j = i; j < align_unknowns; ++j) total.H[i][j] += band.H[i][j];
        total.b[i] += band.b[i];
      }
      for (std::size_t i = 0; i < residual_bins; ++i) total.bins[i] += band.bins[i];
    }
    motion.residual = median_residual(total, 255);
    error_ = mean_residual(total);
    // A flat photograph says nothing about its gain: a pixel's worth of data for no change.
    total.H[flow_parameters][flow_parameters] += 255.0 * 255.0;
    total.b[flow_parameters] += 255.0 * 255.0 * (1 - motion.gain);
    // What the photographs do not show is no motion.
    for (std::size_t i = 0; i < flow_parameters; ++i)
      total.b[i] += prior * total.H[i][i] * motion.theta[i];
    double move[align_unknowns];
    if (!solve_symmetric<align_unknowns>(total.H, total.b, prior, move)) return 0;
    double farthest = 0;
    for (std::size_t i = 0; i < flow_parameters; ++i) {
      motion.theta[i] -= move[i];
      farthest += std::abs(move[i]);
    }
    motion.gain -= move[flow_parameters];
    motion.offset -= move[flow_parameters + 1];
    return farthest;
  }

  // Grey levels per step of a level: coarse levels must see near things that are still far off.
  static constexpr double least_spread = 3;
  static constexpr double prior = 1e-5;  // weight of no motion, relative to the data
  LumaLevel level_;
  double unit_;
  std::size_t height_, width_, every_;
  std::vector<float> inverse_;
  std::vector<AlignSums> bands_;
  double error_ = 0;  // of the start of the last step
};

// Sets gain and offset so that both photographs have the same mean and standard deviation.
inline void match_exposure(const LumaLevel& level, CameraMotion& motion) {
  constexpr double least_deviation = 1, most_gain = 5;
  const std::size_t n = level.height * level.width;
  const auto statistics = [n](const float* luma) {
    const double mean =
        eight_sums(n, [=](std::size_t i) { return luma[i]; }) / static_cast<double>(n);
    const double square =
        eight_sums(n, [=](std::size_t i) { return luma[i] * luma[i]; }) / static_cast<double>(n);
    return std::array{mean, std::sqrt(std::max(square - mean * mean, 0.0))};
  };
  const auto before = statistics(level.before), now = statistics(level.now);
  if (std::min(before[1], now[1]) > least_deviation)
    motion.gain = std::clamp(before[1] / now[1], 1 / most_gain, most_gain);
  motion.offset = before[0] - motion.gain * now[0];
}

}  // namespace detail

// Estimates the motion from the frame before, given the depth of the frame now (H x W) and the
// levels from fine to coarse. `start` is the motion of the frame before.
inline CameraMotion camera_motion(const std::vector<LumaLevel>& levels, const float* depth,
                                  std::size_t height, std::size_t width, double unit,
                                  const std::array<double, flow_parameters>& start, int threads) {
  using namespace detail;
  constexpr int coarse_steps = 12, fine_steps = 6;
  constexpr double precise = 0.01;       // pixels: smaller steps are not worth their time
  constexpr double first_residual = 10;  // grey levels
  constexpr std::size_t enough = 9600;   // pixels: larger levels skip rows
  constexpr std::size_t most_skipped = 4;
  CameraMotion motion;
  if (levels.empty()) return motion;
  const std::size_t finest = levels.front().height * levels.front().width;
  ThreadPool::run(team_size(threads, finest, 16384), [&](ThreadPool& pool) {
    motion.residual = first_residual;
    match_exposure(levels.back(), motion);
    CameraMotion continued = motion;
    continued.theta = start;
    for (std::size_t k = levels.size(); k-- > 0;) {
      const LumaLevel& level = levels[k];
      const std::size_t every =
          std::clamp<std::size_t>(level.height * level.width / enough, 1, most_skipped);
      LevelAlignment alignment(level, depth, unit, height, width, every);
      const double least = precise * static_cast<double>(level.step);
      const int steps = k == 0 ? fine_steps : coarse_steps;
      alignment.run(pool, motion, steps, least);
      if (k == 0) {
        if (!alignment.fits_better_than_none(motion)) motion.theta = {};
        motion.flow =
            LevelAlignment(levels.back(), depth, unit, height, width, 1).longest_flow(motion);
      }
      if (k + 1 == levels.size()) {  // the camera may have stopped or gone on
        alignment.run(pool, continued, steps, least);
        if (alignment.error(pool, continued) <= alignment.error(pool, motion)) motion = continued;
      }
    }
  });
  return motion;
}

}  // namespace bilateral
