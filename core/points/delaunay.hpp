// Delaunay triangulation of pixels by divide and conquer (Guibas and Stolfi 1985).
//
// Coordinates are integers, so that both predicates are exact: scan lines and lattices, whose
// points are collinear and cocircular, need no special cases.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace bilateral {

struct PointPixel {
  std::int32_t x, y;
};

namespace detail {

__extension__ using Wide = __int128;

// Twice the area of a, b, c; above 0 if they turn from x to y.
inline std::int64_t turn(const PointPixel& a, const PointPixel& b, const PointPixel& c) {
  return (std::int64_t{b.x} - a.x) * (std::int64_t{c.y} - a.y) -
         (std::int64_t{b.y} - a.y) * (std::int64_t{c.x} - a.x);
}

// Whether d is inside the circle through a, b, c, which have a turn above 0.
inline bool in_circle(const PointPixel& a, const PointPixel& b, const PointPixel& c,
                      const PointPixel& d) {
  const auto x = [&](const PointPixel& p) { return std::int64_t{p.x} - d.x; };
  const auto y = [&](const PointPixel& p) { return std::int64_t{p.y} - d.y; };
  const auto lift = [&](const PointPixel& p) { return x(p) * x(p) + y(p) * y(p); };
  const auto minor = [&](const PointPixel& p, const PointPixel& q) {
    return x(p) * y(q) - y(p) * x(q);
  };
  const std::int64_t la = lift(a), lb = lift(b), lc = lift(c);
  // No minor exceeds the largest lift, so nearby points need no wide numbers.
  if ((la | lb | lc) < std::int64_t{1} << 30)
    return la * minor(b, c) + lb * minor(c, a) + lc * minor(a, b) > 0;
  return Wide{la} * minor(b, c) + Wide{lb} * minor(c, a) + Wide{lc} * minor(a, b) > 0;
}

// Edges of a planar graph and of its dual. An edge is one of the four of a quad: itself, the same
// backwards, and both duals in between.
class QuadEdges {
 public:
  using Edge = std::uint32_t;

  explicit QuadEdges(std::size_t points) {
    next_.reserve(12 * points);
    origin_.reserve(12 * points);
  }

  static Edge turned(Edge e) { return (e & ~Edge{3}) | ((e + 1) & 3); }
  static Edge turned_back(Edge e) { return (e & ~Edge{3}) | ((e + 3) & 3); }
  static Edge reversed(Edge e) { return e ^ 2; }

  std::uint32_t from(Edge e) const { return origin_[e]; }
  std::uint32_t to(Edge e) const { return origin_[reversed(e)]; }
  Edge next_around(Edge e) const { return next_[e]; }
  Edge previous_around(Edge e) const { return turned(next_[turned(e)]); }
  Edge next_of_left(Edge e) const { return turned(next_[turned_back(e)]); }
  Edge previous_of_right(Edge e) const { return next_[reversed(e)]; }

  Edge make(std::uint32_t a, std::uint32_t b) {
    Edge e;
    if (unused_.empty()) {
      e = static_cast<Edge>(next_.size());
      next_.resize(next_.size() + 4);
      origin_.resize(next_.size());
    } else {
      e = unused_.back();
      unused_.pop_back();
    }
    next_[e] = e;
    next_[e + 1] = e + 3;
    next_[e + 2] = e + 2;
    next_[e + 3] = e + 1;
    origin_[e] = a;
    origin_[e + 2] = b;
    return e;
  }

  void splice(Edge a, Edge b) {
    const Edge alpha = turned(next_[a]), beta = turned(next_[b]);
    std::swap(next_[a], next_[b]);
    std::swap(next_[alpha], next_[beta]);
  }

  // Joins the end of a to the start of b, on their left side.
  Edge connect(Edge a, Edge b) {
    const Edge e = make(to(a), from(b));
    splice(e, next_of_left(a));
    splice(reversed(e), b);
    return e;
  }

  void remove(Edge e) {
    splice(e, previous_around(e));
    splice(reversed(e), previous_around(reversed(e)));
    unused_.push_back(e & ~Edge{3});
    origin_[e] = origin_[reversed(e)] = nowhere;
  }

  // Calls f with the three points of each triangle.
  template <class F>
  void for_each_triangle(const std::vector<PointPixel>& points, F&& f) const {
    for (Edge e = 0; e < next_.size(); e += 2) {
      if (origin_[e] == nowhere) continue;
      const Edge second = next_of_left(e), third = next_of_left(second);
      // Each triangle is met once per edge; the outer face turns the other way.
      if (next_of_left(third) != e || second < e || third < e) continue;
      if (turn(points[from(e)], points[from(second)], points[from(third)]) > 0)
        f(from(e), from(second), from(third));
    }
  }

 private:
  static constexpr std::uint32_t nowhere = ~std::uint32_t{0};
  std::vector<Edge> next_;
  std::vector<std::uint32_t> origin_;
  std::vector<Edge> unused_;
};

class Delaunay {
 public:
  // Points are different and sorted by x, then y; there are at least two.
  explicit Delaunay(const std::vector<PointPixel>& points) : p_(points), edges_(points.size()) {
    build(0, points.size());
  }
  const QuadEdges& edges() const { return edges_; }

 private:
  using Edge = QuadEdges::Edge;
  static Edge back(Edge e) { return QuadEdges::reversed(e); }

  bool left_of(std::uint32_t point, Edge e) const {
    return turn(p_[point], p_[edges_.from(e)], p_[edges_.to(e)]) > 0;
  }
  bool right_of(std::uint32_t point, Edge e) const {
    return turn(p_[point], p_[edges_.to(e)], p_[edges_.from(e)]) > 0;
  }

  // Triangulates points [first, last). Returns the hull's edge out of its first point, and the one
  // out of its last point, with the hull on their left and right.
  std::array<Edge, 2> build(std::size_t first, std::size_t last) {
    const auto a = static_cast<std::uint32_t>(first);
    if (last - first == 2) {
      const Edge e = edges_.make(a, a + 1);
      return {e, back(e)};
    }
    if (last - first == 3) {
      const Edge e = edges_.make(a, a + 1), f = edges_.make(a + 1, a + 2);
      edges_.splice(back(e), f);
      const std::int64_t side = turn(p_[a], p_[a + 1], p_[a + 2]);
      if (side == 0) return {e, back(f)};
      const Edge c = edges_.connect(f, e);
      return side > 0 ? std::array{e, back(f)} : std::array{back(c), c};
    }
    const std::size_t middle = first + (last - first) / 2;
    const auto left = build(first, middle), right = build(middle, last);
    return merge(left, right);
  }

  std::array<Edge, 2> merge(const std::array<Edge, 2>& left, const std::array<Edge, 2>& right) {
    auto [left_outer, left_inner] = left;
    auto [right_inner, right_outer] = right;
    for (;;) {  // lower common tangent
      if (left_of(edges_.from(right_inner), left_inner))
        left_inner = edges_.next_of_left(left_inner);
      else if (right_of(edges_.from(left_inner), right_inner))
        right_inner = edges_.previous_of_right(right_inner);
      else
        break;
    }
    Edge base = edges_.connect(back(right_inner), left_inner);
    if (edges_.from(left_inner) == edges_.from(left_outer)) left_outer = back(base);
    if (edges_.from(right_inner) == edges_.from(right_outer)) right_outer = base;
    for (;;) {  // rising bubble
      Edge l = edges_.next_around(back(base));
      if (valid(l, base))
        while (inside(base, edges_.to(l), edges_.to(edges_.next_around(l)))) {
          const Edge next = edges_.next_around(l);
          edges_.remove(l);
          l = next;
        }
      Edge r = edges_.previous_around(base);
      if (valid(r, base))
        while (inside(base, edges_.to(r), edges_.to(edges_.previous_around(r)))) {
          const Edge next = edges_.previous_around(r);
          edges_.remove(r);
          r = next;
        }
      const bool valid_l = valid(l, base), valid_r = valid(r, base);
      if (!valid_l && !valid_r) break;
      if (!valid_l || (valid_r && in_circle(p_[edges_.to(l)], p_[edges_.from(l)],
                                            p_[edges_.from(r)], p_[edges_.to(r)])))
        base = edges_.connect(r, back(base));
      else
        base = edges_.connect(back(base), back(l));
    }
    return {left_outer, right_outer};
  }

  bool valid(Edge e, Edge base) const { return right_of(edges_.to(e), base); }
  bool inside(Edge base, std::uint32_t c, std::uint32_t d) const {
    return in_circle(p_[edges_.to(base)], p_[edges_.from(base)], p_[c], p_[d]);
  }

  const std::vector<PointPixel>& p_;
  QuadEdges edges_;
};

}  // namespace detail
}  // namespace bilateral
