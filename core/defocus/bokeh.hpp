// The picture of a point of light out of focus: a disc, or a polygon where the aperture has blades.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

namespace bilateral {

// Of one row of pixels around a centre, the part from `first` + `first_part` to `last` +
// `last_part`, where pixel i begins at i and ends at i + 1.
struct Span {
  std::ptrdiff_t row, first, last;
  float first_part, last_part;
};

// The pixels that light comes from, seen from where it goes.
struct Bokeh {
  std::vector<Span> spans;
  std::size_t reach = 0;  // no span goes further, along rows or columns
  float area = 0;
};

// What a shape, its aperture, looks like in the picture.
struct ApertureShape {
  int blades = 0;       // 0 for a disc
  double rotation = 0;  // radians; at 0 a corner points up
};

namespace detail {

struct Chord {
  double from, to;
};

// Where a shape of the area pi radius^2 meets the line at the height y, which points down.
inline Chord chord(const ApertureShape& shape, double radius, double y) {
  if (shape.blades == 0) {
    const double half = std::sqrt(std::max(radius * radius - y * y, 0.0));
    return {-half, half};
  }
  const double sector = 2 * std::numbers::pi / shape.blades;
  const double inner = radius * std::sqrt(sector / 2 / std::tan(sector / 2));  // of its edges
  Chord found{-2 * radius, 2 * radius};
  for (int edge = 0; edge < shape.blades; ++edge) {
    const double angle = shape.rotation + (edge + 0.5) * sector - std::numbers::pi / 2;
    const double across = std::cos(angle), room = inner - y * std::sin(angle);
    if (std::abs(across) < 1e-9) {
      if (room < 0) return {0, 0};
    } else if (across > 0) {
      found.to = std::min(found.to, room / across);
    } else {
      found.from = std::max(found.from, room / across);
    }
  }
  return found;
}

}  // namespace detail

// Light in front of the focus meets the sensor before it crosses over: its picture is upside down.
inline Bokeh make_bokeh(const ApertureShape& shape, double radius, bool in_front) {
  constexpr int lines = 16;  // within a row of pixels
  // The farthest corner of a triangle is 1.56 radii away.
  const auto rows = static_cast<std::ptrdiff_t>(std::ceil(1.6 * radius + 0.5));
  const double turn = in_front ? 1 : -1;  // light comes from where it would go, mirrored
  Bokeh bokeh;
  for (std::ptrdiff_t row = -rows; row <= rows; ++row) {
    double length = 0, moment = 0;
    for (int line = 0; line < lines; ++line) {
      const double y = static_cast<double>(row) - 0.5 + (line + 0.5) / lines;
      const auto [from, to] = detail::chord(shape, radius, turn * y);
      if (to <= from || std::abs(y) > 1.6 * radius) continue;
      length += (to - from) / lines;
      moment += (to - from) / lines * turn * (from + to) / 2;
    }
    if (length <= 0) continue;
    const double begin = moment / length - length / 2 + 0.5, end = begin + length;
    const double first = std::floor(begin), last = std::floor(end);
    bokeh.spans.push_back({row, static_cast<std::ptrdiff_t>(first),
                           static_cast<std::ptrdiff_t>(last), static_cast<float>(begin - first),
                           static_cast<float>(end - last)});
    const double far =
        std::max({std::abs(first), std::abs(last), std::abs(static_cast<double>(row))});
    bokeh.reach = std::max(bokeh.reach, static_cast<std::size_t>(far));
    bokeh.area += static_cast<float>(length);
  }
  if (bokeh.spans.empty()) bokeh = {{{0, 0, 1, 0.0f, 0.0f}}, 1, 1.0f};
  return bokeh;
}

}  // namespace bilateral
