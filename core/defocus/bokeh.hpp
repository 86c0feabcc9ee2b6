// Bokeh: the blur kernel of a point out of focus. It is a disc, or a polygon if the aperture has
// blades.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

namespace bilateral {

// The kernel in one row of pixels, relative to its centre: the interval from `first` + `first_part`
// to `last` + `last_part`. Pixel i covers the interval from i to i + 1.
struct Span {
  std::ptrdiff_t row, first, last;
  float first_part, last_part;
};

// The kernel gathers: its spans are the pixels whose light reaches the centre.
struct Bokeh {
  std::vector<Span> spans;
  std::size_t reach = 0;  // largest distance of a span from the centre, along rows or columns
  float area = 0;
};

// The shape of the aperture, which is the shape of the kernel.
struct ApertureShape {
  int blades = 0;       // 0 for a disc
  double rotation = 0;  // radians; at 0 a corner points up
};

namespace detail {

struct Chord {
  double from, to;
};

// Returns the intersection of the shape, scaled to the area pi radius^2, with the horizontal line
// at y, which points down.
inline Chord chord(const ApertureShape& shape, double radius, double y) {
  if (shape.blades == 0) {
    const double half = std::sqrt(std::max(radius * radius - y * y, 0.0));
    return {-half, half};
  }
  const double sector = 2 * std::numbers::pi / shape.blades;
  const double inradius = radius * std::sqrt(sector / 2 / std::tan(sector / 2));
  Chord chord{-2 * radius, 2 * radius};
  for (int edge = 0; edge < shape.blades; ++edge) {
    const double angle = shape.rotation + (edge + 0.5) * sector - std::numbers::pi / 2;
    const double slope = std::cos(angle), distance = inradius - y * std::sin(angle);
    if (std::abs(slope) < 1e-9) {
      if (distance < 0) return {0, 0};
    } else if (slope > 0) {
      chord.to = std::min(chord.to, distance / slope);
    } else {
      chord.from = std::max(chord.from, distance / slope);
    }
  }
  return chord;
}

}  // namespace detail

// Makes the kernel of a radius. Rays from a point in front of the focus reach the sensor before
// they cross, so that the image of the aperture is upside down.
inline Bokeh make_bokeh(const ApertureShape& shape, double radius, bool in_front) {
  constexpr int lines = 16;  // samples in each row of pixels
  // The corners of a triangle are 1.56 radii from the centre.
  const auto rows = static_cast<std::ptrdiff_t>(std::ceil(1.6 * radius + 0.5));
  const double sign = in_front ? 1 : -1;  // gathering mirrors the kernel once more
  Bokeh bokeh;
  for (std::ptrdiff_t row = -rows; row <= rows; ++row) {
    double length = 0, moment = 0;
    for (int line = 0; line < lines; ++line) {
      const double y = static_cast<double>(row) - 0.5 + (line + 0.5) / lines;
      const auto [from, to] = detail::chord(shape, radius, sign * y);
      if (to <= from || std::abs(y) > 1.6 * radius) continue;
      length += (to - from) / lines;
      moment += (to - from) / lines * sign * (from + to) / 2;
    }
    if (length <= 0) continue;
    const double begin = moment / length - length / 2 + 0.5, end = begin + length;
    const double first = std::floor(begin), last = std::floor(end);
    bokeh.spans.push_back({row, static_cast<std::ptrdiff_t>(first),
                           static_cast<std::ptrdiff_t>(last), static_cast<float>(begin - first),
                           static_cast<float>(end - last)});
    const double distance =
        std::max({std::abs(first), std::abs(last), std::abs(static_cast<double>(row))});
    bokeh.reach = std::max(bokeh.reach, static_cast<std::size_t>(distance));
    bokeh.area += static_cast<float>(length);
  }
  if (bokeh.spans.empty()) bokeh = {{{0, 0, 1, 0.0f, 0.0f}}, 1, 1.0f};
  return bokeh;
}

}  // namespace bilateral
