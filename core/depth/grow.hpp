// Grow: continues the surfaces around a hole into it. A filling may leave the plane that it
// continues only little by little. Otherwise fillings beside an edge would mix both surfaces.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/threads.hpp"
#include "depth/jump.hpp"

namespace bilateral {

// How surfaces grow.
struct Growth {
  float bias;         // a surface nearer than the filling of a hole costs 1 + bias times as much
  float drift;        // jumps per pixel by which a filling may leave the plane that it continues
  float slope_reach;  // slopes fade to 0 over this distance in pixels
};

namespace detail {

// The inverse of a depth, or the depth itself: planes of the world are affine in the inverse.
struct PlaneUnit {
  bool inverse;
  float operator()(float z) const { return inverse ? 1 / z : z; }
};

// A pixel.
struct Place {
  std::size_t x, y;
};

// The plane of a surface at a pixel: its value in the planes' unit, and its slopes per pixel.
struct LocalPlane {
  float value, slope_x, slope_y, x, y;
};

// Fits a plane to the kept pixels around a pixel that belong to its surface.
inline LocalPlane fit_plane(const float* z, const bool* kept, std::size_t height, std::size_t width,
                            Place at, Jump jump, PlaneUnit unit) {
  constexpr std::size_t radius = 4;
  const float center = z[at.y * width + at.x], origin = unit(center), step = jump(center);
  float n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0, su = 0, sxu = 0, syu = 0;
  for (std::size_t v = at.y - std::min(at.y, radius); v <= std::min(at.y + radius, height - 1); ++v)
    for (std::size_t u = at.x - std::min(at.x, radius); u <= std::min(at.x + radius, width - 1);
         ++u) {
      const std::size_t p = v * width + u;
      const float dx = static_cast<float>(u) - static_cast<float>(at.x);
      const float dy = static_cast<float>(v) - static_cast<float>(at.y);
      const float steps = std::max({std::abs(dx), std::abs(dy), 1.0f});
      if (!kept[p] || !(std::abs(z[p] - center) <= steps * step)) continue;
      const float value = unit(z[p]) - origin;
      n += 1, sx += dx, sy += dy, sxx += dx * dx, sxy += dx * dy, syy += dy * dy;
      su += value, sxu += dx * value, syu += dy * value;
    }
  const float a = sxx - sx * sx / n, b = sxy - sx * sy / n, d = syy - sy * sy / n;
  const float p = sxu - sx * su / n, q = syu - sy * su / n;
  // A ridge of half a column of pixels: the slope of a sliver is unknown, so it is 0.
  const float ridge = 30, aa = a + ridge, dd = d + ridge, det = aa * dd - b * b;
  const float gx = (p * dd - q * b) / det, gy = (q * aa - p * b) / det;
  return {origin + (su - gx * sx - gy * sy) / n, gx, gy, static_cast<float>(at.x),
          static_cast<float>(at.y)};
}

// The surface that a pixel continues.
struct Continued {
  std::int32_t plane = -1;
  float value = 0;                                      // the plane's depth at the pixel
  float cost = std::numeric_limits<float>::infinity();  // in jumps
};

// Grows surfaces over the pixels of one image.
class SurfaceGrowth {
 public:
  SurfaceGrowth(const bool* kept, const bool* hole, std::size_t height, std::size_t width,
                const Jump& jump, PlaneUnit unit, const Growth& growth, float* x)
      : kept_(kept),
        hole_(hole),
        height_(height),
        width_(width),
        jump_(jump),
        unit_(unit),
        growth_(growth),
        fading_(1 / growth.slope_reach),
        x_(x),
        plane_(height * width, undecided) {
    float low = std::numeric_limits<float>::infinity(), high = -low;
    for (std::size_t p = 0; p < height * width; ++p)
      if (kept[p]) low = std::min(low, x[p]), high = std::max(high, x[p]);
    const float margin = beyond * (high - low);
    low_ = unit.inverse ? std::max(low - margin, low / (1 + beyond)) : low - margin;
    high_ = high + margin;
  }

  void run(int threads) {
    std::vector<std::uint32_t> front = start(threads), deferred, next;
    std::vector<std::pair<std::uint32_t, Continued>> decided;
    for (const float limit : limits) {
      // Pixels that fit a surface less well wait until others have continued theirs.
      while (!front.empty()) {
        decided.clear();
        for (const std::uint32_t p : front) {
          const Continued best = nearest_surface(p);
          if (best.plane < 0) continue;  // no cost is finite
          if (best.cost <= limit)
            decided.emplace_back(p, best);
          else
            deferred.push_back(p);
        }
        for (const auto& [p, best] : decided) {
          plane_[p] = best.plane;
          const float slack = growth_.drift * jump_(best.value);
          x_[p] = within(std::clamp(x_[p], best.value - slack, best.value + slack));
        }
        next.clear();
        for (const auto& [p, best] : decided)
          each_neighbour(place(p), [&](std::size_t q, float, float) {
            if (plane_[q] != undecided) return;
            plane_[q] = waiting;
            next.push_back(static_cast<std::uint32_t>(q));
          });
        for (const std::uint32_t p : next) plane_[p] = undecided;
        front.swap(next);
      }
      for (const std::uint32_t p : deferred) {
        if (plane_[p] != undecided) continue;
        plane_[p] = waiting;
        front.push_back(p);
      }
      for (const std::uint32_t p : front) plane_[p] = undecided;
      deferred.clear();
    }
  }

 private:
  // Kept pixels that are not beside a hole have no plane.
  static constexpr std::int32_t undecided = -1, waiting = -2, inner = -3;
  // Fillings leave the range of the kept depths by at most this part of it.
  static constexpr float beyond = 0.05f;
  static constexpr float limits[] = {1, 4, 16, 64, std::numeric_limits<float>::infinity()};

  float within(float value) const { return std::min(std::max(value, low_), high_); }

  Place place(std::uint32_t p) const {
    const auto width = static_cast<std::uint32_t>(width_);
    return {p % width, p / width};
  }

  // Calls f(neighbour, x, y) with the step from the neighbour to the pixel.
  template <class F>
  void each_neighbour(Place at, F&& f) const {
    for (std::size_t v = at.y - (at.y > 0); v <= std::min(at.y + 1, height_ - 1); ++v)
      for (std::size_t u = at.x - (at.x > 0); u <= std::min(at.x + 1, width_ - 1); ++u)
        if (v != at.y || u != at.x)
          f(v * width_ + u, static_cast<float>(at.x) - static_cast<float>(u),
            static_cast<float>(at.y) - static_cast<float>(v));
  }

  // Fits the planes along the holes. Returns the pixels of the holes beside them.
  std::vector<std::uint32_t> start(int threads) {
    std::vector<std::uint32_t> front, border;
    for (std::size_t y = 0; y < height_; ++y)
      for (std::size_t x = 0; x < width_; ++x) {
        const std::size_t p = y * width_ + x;
        if (kept_[p]) {
          if (plane_[p] == undecided) plane_[p] = inner;
          continue;
        }
        bool beside = false;
        each_neighbour({x, y}, [&](std::size_t q, float, float) {
          if (!kept_[q]) return;
          beside = true;
          if (plane_[q] >= 0) return;
          plane_[q] = static_cast<std::int32_t>(border.size());
          border.push_back(static_cast<std::uint32_t>(q));
        });
        if (beside) front.push_back(static_cast<std::uint32_t>(p));
      }
    planes_.resize(border.size());
    const std::size_t chunk = 256;
    parallel_for(team_size(threads, border.size(), 1024), (border.size() + chunk - 1) / chunk,
                 [&](std::size_t item, std::size_t) {
                   const std::size_t end = std::min((item + 1) * chunk, border.size());
                   for (std::size_t i = item * chunk; i < end; ++i)
                     planes_[i] =
                         fit_plane(x_, kept_, height_, width_, place(border[i]), jump_, unit_);
                 });
    return front;
  }

  // The surface of a neighbour that comes closest to the filling.
  Continued nearest_surface(std::uint32_t p) const {
    Continued best;
    const Place at = place(p);
    const float px = static_cast<float>(at.x), py = static_cast<float>(at.y), filling = x_[p];
    const float nearer = hole_[p] ? 1 + growth_.bias : 1;
    each_neighbour(at, [&](std::size_t q, float dx, float dy) {
      const std::int32_t k = plane_[q];
      if (k < 0) return;
      const LocalPlane& plane = planes_[static_cast<std::size_t>(k)];
      const float distance = std::max(std::abs(px - plane.x), std::abs(py - plane.y));
      const float fade = std::max(0.0f, 1 - distance * fading_);
      const float base = kept_[q] ? plane.value : unit_(x_[q]);
      float value = base + fade * (plane.slope_x * dx + plane.slope_y * dy);
      if (unit_.inverse) value = 1 / std::max(value, 0.5f * base);
      value = within(value);
      const float d = value - filling, cost = (d < 0 ? -d * nearer : d) / jump_(value);
      if (cost < best.cost) best = {k, value, cost};
    });
    return best;
  }

  const bool *kept_, *hole_;
  std::size_t height_, width_;
  Jump jump_;
  PlaneUnit unit_;
  Growth growth_;
  float fading_;      // of slopes per pixel
  float low_, high_;  // range of fillings
  float* x_;
  std::vector<std::int32_t> plane_;  // the plane that a pixel continues
  std::vector<LocalPlane> planes_;   // of the kept pixels beside holes
};

}  // namespace detail

// Improves the fillings x of the pixels that are not kept. x has the depths of the kept pixels and
// any finite filling elsewhere. `hole` marks the pixels without data. With `inverse`, depths are
// positive and planes are affine in their inverses.
inline void grow_surfaces(const bool* kept, const bool* hole, std::size_t height, std::size_t width,
                          const Jump& jump, bool inverse, const Growth& growth, float* x,
                          int threads) {
  detail::SurfaceGrowth(kept, hole, height, width, jump, {inverse}, growth, x).run(threads);
}

}  // namespace bilateral
