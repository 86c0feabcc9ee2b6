// Grow: continues the surfaces around a hole into it. A filling may leave the plane that it
// continues only little by little. Otherwise fillings beside an edge would mix both surfaces.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/buffer.hpp"
#include "base/threads.hpp"
#include "depth/jump.hpp"
#include "depth/local_plane.hpp"

namespace bilateral {

// How surfaces grow.
struct Growth {
  float bias;         // a surface nearer than the filling of a hole costs 1 + bias times as much
  float drift;        // jumps per pixel by which a filling may leave the plane that it continues
  float slope_reach;  // slopes fade to 0 over this distance in pixels
};

// A doubtful pixel whose own depth is within this part of a jump of a plane lies on its surface.
inline constexpr float growth_agreement = 0.5f;

// A flying pixel mixes surfaces that were measured beside it. So a doubtful pixel takes the nearest
// of them if none of the measured pixels around it is near its own filling, and several are not.
// Around: within so many pixels.
inline constexpr int flying_reach = 3;
inline constexpr int flying_witnesses = 3;

namespace detail {

// The surface that a pixel continues.
struct Continued {
  std::int32_t plane = -1;
  float value = 0;                                      // the plane's depth at the pixel
  float cost = std::numeric_limits<float>::infinity();  // in jumps
  bool agrees = false;                                  // whether the pixel's own depth is near it
};

// Grows surfaces over the pixels of one image.
class SurfaceGrowth {
 public:
  SurfaceGrowth(const bool* kept, const float* measured, std::size_t height, std::size_t width,
                const Jump& jump, PlaneUnit unit, const Growth& growth, float* x)
      : kept_(kept),
        measured_(measured),
        height_(height),
        width_(width),
        jump_(jump),
        unit_(unit),
        growth_(growth),
        fading_(1 / growth.slope_reach),
        x_(x),
        plane_(height * width, untouched),
        base_(height * width),
        best_(height * width) {
    float low = std::numeric_limits<float>::infinity(), high = -low;
    for (std::size_t p = 0; p < height * width; ++p)
      if (kept[p]) low = std::min(low, x[p]), high = std::max(high, x[p]);
    const float margin = beyond * (high - low);
    low_ = unit.inverse ? std::max(low - margin, low / (1 + beyond)) : low - margin;
    high_ = high + margin;
  }

  void run(int threads) {
    std::vector<std::uint32_t> front = start(threads), deferred, next, decided, agreeing, doubtful;
    for (const float limit : limits) {
      // Pixels that fit a surface less well wait until others have continued theirs.
      while (!front.empty()) {
        decided.clear();
        for (const std::uint32_t p : front) {
          const Continued& best = best_.data()[p];
          if (best.cost > limit) {
            plane_[p] = deferring;
            deferred.push_back(p);
            continue;
          }
          decided.push_back(p);
          plane_[p] = best.plane;
          if (best.agrees)
            agreeing.push_back(p);
          else if (measured_[p] == measured_[p])
            doubtful.push_back(p);
          const float slack = growth_.drift * jump_(best.value);
          x_[p] = within(std::clamp(x_[p], best.value - slack, best.value + slack));
          base_.data()[p] = unit_(x_[p]);
        }
        next.clear();
        for (const std::uint32_t p : decided) offer(p, limit, next);
        front.swap(next);
      }
      std::erase_if(deferred, [&](std::uint32_t p) { return plane_[p] != deferring; });
      front.swap(deferred);
      deferred.clear();
    }
    for (const std::uint32_t p : agreeing) x_[p] = measured_[p];
    for (const std::uint32_t p : doubtful) land(p);
  }

 private:
  // States of a pixel without a plane: no surface has reached it; it is in the front; its best
  // surface fits too badly for now; it is kept and not beside a hole.
  static constexpr std::int32_t untouched = -1, waiting = -2, deferring = -3, inner = -4;
  // Fillings leave the range of the kept depths by at most this part of it.
  static constexpr float beyond = 0.05f;
  static constexpr float limits[] = {1, 4, 16, 64, std::numeric_limits<float>::infinity()};

  // Whether an offer is as good as the best one so far, and its plane is that of an earlier pixel
  // of the image: so the order of offers does not matter.
  bool ties(float cost, std::int32_t k, const Continued& best) const {
    const auto pixel = [&](std::int32_t i) { return border_[static_cast<std::size_t>(i)]; };
    return cost == best.cost && best.plane >= 0 && pixel(k) < pixel(best.plane);
  }

  float within(float value) const { return std::min(std::max(value, low_), high_); }

  Place place(std::uint32_t p) const {
    const auto width = static_cast<std::uint32_t>(width_);
    return {p % width, p / width};
  }

  // Calls f(neighbour, x, y) with the step from the pixel to the neighbour.
  template <class F>
  BILATERAL_INLINE void each_neighbour(Place at, F&& f) const {
    const std::size_t p = at.y * width_ + at.x;
    const bool left = at.x > 0, right = at.x + 1 < width_;
    const auto row = [&](std::size_t q, float dy) __attribute__((always_inline)) {
      if (left) f(q - 1, -1.0f, dy);
      if (dy != 0) f(q, 0.0f, dy);
      if (right) f(q + 1, 1.0f, dy);
    };
    if (at.y > 0) row(p - width_, -1.0f);
    row(p, 0.0f);
    if (at.y + 1 < height_) row(p + width_, 1.0f);
  }

  // Fits the planes along the holes. Returns the pixels of the holes beside them.
  std::vector<std::uint32_t> start(int threads) {
    std::vector<std::uint32_t> front;
    for (std::size_t y = 0; y < height_; ++y)
      for (std::size_t x = 0; x < width_; ++x) {
        const std::size_t p = y * width_ + x;
        if (kept_[p]) {
          if (plane_[p] == untouched) plane_[p] = inner;
          continue;
        }
        each_neighbour({x, y}, [&](std::size_t q, float, float) {
          if (!kept_[q] || plane_[q] >= 0) return;
          plane_[q] = static_cast<std::int32_t>(border_.size());
          border_.push_back(static_cast<std::uint32_t>(q));
        });
      }
    planes_.resize(border_.size());
    const std::size_t chunk = 256;
    parallel_for(team_size(threads, border_.size(), 1024), (border_.size() + chunk - 1) / chunk,
                 [&](std::size_t item, std::size_t) {
                   const std::size_t end = std::min((item + 1) * chunk, border_.size());
                   const std::size_t first = item * chunk;
                   fit_planes({x_, kept_, height_, width_}, border_.data() + first, end - first,
                              jump_, unit_, planes_.data() + first);
                   for (std::size_t i = first; i < end; ++i)
                     base_.data()[border_[i]] = planes_[i].value;
                 });
    for (const std::uint32_t p : border_) offer(p, 0, front);
    return front;
  }

  // Offers the surface of a pixel to its neighbours that have none. Those that it reaches first,
  // and deferring ones that it fits within the limit, join the front.
  void offer(std::uint32_t p, float limit, std::vector<std::uint32_t>& front) {
    const Place at = place(p);
    const std::int32_t k = plane_[p];
    const LocalPlane& plane = planes_[static_cast<std::size_t>(k)];
    const float base = base_.data()[p];
    const float away_x = static_cast<float>(at.x) - plane.x;
    const float away_y = static_cast<float>(at.y) - plane.y;
    const float least = 0.5f * base;
    const auto to = [&](std::size_t q, float dx, float dy) {
      std::int32_t& state = plane_[q];
      if (state >= 0 || state == inner) return;
      const float distance = std::max(std::abs(away_x + dx), std::abs(away_y + dy));
      const float fade = std::max(0.0f, 1 - distance * fading_);
      float value = base + fade * (plane.slope_x * dx + plane.slope_y * dy);
      if (unit_.inverse) value = 1 / std::max(value, least);
      value = within(value);
      const float own = measured_[q], nearer = own == own ? 1 : 1 + growth_.bias;
      const float step = 1 / jump_(value), d = value - x_[q];
      const float misfit = std::abs(value - own) * step;
      const bool agrees = misfit <= growth_agreement;
      const float cost = agrees ? misfit : (d < 0 ? -d * nearer : d) * step;
      Continued& best = best_.data()[q];
      if (state == untouched) best = {};
      if (agrees != best.agrees ? !agrees : !(cost < best.cost || ties(cost, k, best))) return;
      best = {k, value, cost, agrees};
      if (state == untouched || (state == deferring && cost <= limit)) {
        state = waiting;
        front.push_back(static_cast<std::uint32_t>(q));
      }
    };
    each_neighbour(at, to);
  }

  // Moves a doubtful pixel to the nearest surface that was measured around it, if its own was not.
  // Only pixels that lie on surfaces are looked at, and they do not change.
  void land(std::uint32_t p) {
    const Place at = place(p);
    const float value = x_[p], step = jump_(value);
    const std::size_t reach = flying_reach;
    const std::size_t top = std::max(at.y, reach) - reach, left = std::max(at.x, reach) - reach;
    int others = 0;
    float nearest = std::numeric_limits<float>::infinity(), landed = value;
    for (std::size_t y = top; y < std::min(at.y + reach + 1, height_); ++y)
      for (std::size_t x = left; x < std::min(at.x + reach + 1, width_); ++x) {
        const std::size_t q = y * width_ + x;
        if (!kept_[q] && (plane_[q] < 0 || !best_.data()[q].agrees)) continue;
        const float dx = static_cast<float>(at.x) - static_cast<float>(x);
        const float dy = static_cast<float>(at.y) - static_cast<float>(y);
        const float steps = std::max(std::abs(dx), std::abs(dy));
        if (std::abs(x_[q] - value) <= step * (1 + 0.5f * steps)) return;
        ++others;
        const float distance = dx * dx + dy * dy;
        if (plane_[q] < 0 || distance >= nearest) continue;
        nearest = distance;
        const LocalPlane& plane = planes_[static_cast<std::size_t>(plane_[q])];
        const float base = base_.data()[q];
        const float there = base + plane.slope_x * dx + plane.slope_y * dy;
        landed = within(unit_.inverse ? 1 / std::max(there, 0.5f * base) : there);
      }
    if (others >= flying_witnesses) x_[p] = landed;
  }

  const bool* kept_;
  const float* measured_;
  std::size_t height_, width_;
  Jump jump_;
  PlaneUnit unit_;
  Growth growth_;
  float fading_;      // of slopes per pixel
  float low_, high_;  // range of fillings
  float* x_;
  std::vector<std::int32_t> plane_;    // the plane that a pixel continues
  Buffer<float> base_;                 // its value at the pixel, in the planes' unit
  Buffer<Continued> best_;             // the best offer to a pixel that a surface has reached
  std::vector<std::uint32_t> border_;  // the kept pixels beside holes
  std::vector<LocalPlane> planes_;     // theirs
};

}  // namespace detail

// Improves the fillings x of the pixels that are not kept. x has the depths of the kept pixels and
// any finite filling elsewhere. `measured` has the depths of doubtful pixels, and NaN in holes; its
// depths of kept pixels are not read. With `inverse`, depths are positive and planes are affine in
// their inverses.
inline void grow_surfaces(const bool* kept, const float* measured, std::size_t height,
                          std::size_t width, const Jump& jump, bool inverse, const Growth& growth,
                          float* x, int threads) {
  detail::SurfaceGrowth(kept, measured, height, width, jump, {inverse}, growth, x).run(threads);
}

}  // namespace bilateral
