// Fill the parts of the grid that are connected to no data: a vertex takes the mean plane of the
// nearest pyramid level that has one, evaluated at the vertex's own centre.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "grid/grid.hpp"
#include "grid/positions.hpp"

namespace bilateral {

// The linear map from the planes of active vertices to those of all others, and its transpose.
template <std::size_t D>
class PlaneFill {
 public:
  PlaneFill(const Grid& grid, const Centres<D>& centres, const std::uint8_t* active)
      : grid_(grid), centres_(centres), active_(active) {
    Places level(grid.vertices);
    for (std::size_t v = 0; v < grid.vertices; ++v) {
      if (!active[v]) continue;
      level[v].mass = static_cast<double>(grid.mass[v]);
      for (std::size_t d = 0; d < D; ++d)
        level[v].moment[d] = level[v].mass * centres.position[v * D + d];
    }
    places_.push_back(std::move(level));
    for (const Level& step : grid.levels) {
      Places above(step.parent_band.back());
      for (std::size_t i = 0; i < places_.back().size(); ++i) {
        above[step.parent[i]].mass += places_.back()[i].mass;
        for (std::size_t d = 0; d < D; ++d)
          above[step.parent[i]].moment[d] += places_.back()[i].moment[d];
      }
      places_.push_back(std::move(above));
    }
  }

  // Writes the planes of inactive vertices.
  template <class T>
  void fill(T* planes) const {
    std::vector<Planes> sums = plane_sums();
    for (std::size_t v = 0; v < grid_.vertices; ++v)
      if (active_[v]) {
        const auto mass = static_cast<double>(grid_.mass[v]);
        for (std::size_t u = 0; u <= D; ++u)
          sums[0][v][u] = mass * static_cast<double>(planes[v * (D + 1) + u]);
      }
    for (std::size_t k = 0; k < grid_.levels.size(); ++k)
      for (std::size_t i = 0; i < sums[k].size(); ++i)
        for (std::size_t u = 0; u <= D; ++u)
          sums[k + 1][grid_.levels[k].parent[i]][u] += sums[k][i][u];
    for (std::size_t v = 0; v < grid_.vertices; ++v) {
      if (active_[v]) continue;
      const auto [k, i] = ancestor(v);
      const Place& place = places_[k][i];
      T* plane = planes + v * (D + 1);
      for (std::size_t u = 0; u <= D; ++u)
        plane[u] = static_cast<T>(place.mass > 0 ? sums[k][i][u] / place.mass : 0);
      for (std::size_t d = 0; d < D && place.mass > 0; ++d)
        plane[0] += static_cast<T>(sums[k][i][d + 1] / place.mass * offset(v, place, d));
    }
  }

  // Adds the transpose of `fill` to active vertices, and clears the others.
  template <class T>
  void fill_transposed(T* planes) const {
    std::vector<Planes> sums = plane_sums();
    for (std::size_t v = 0; v < grid_.vertices; ++v) {
      if (active_[v]) continue;
      const auto [k, i] = ancestor(v);
      const Place& place = places_[k][i];
      T* plane = planes + v * (D + 1);
      if (place.mass > 0) {
        const auto value = static_cast<double>(plane[0]);
        sums[k][i][0] += value / place.mass;
        for (std::size_t d = 0; d < D; ++d)
          sums[k][i][d + 1] +=
              (static_cast<double>(plane[d + 1]) + offset(v, place, d) * value) / place.mass;
      }
      for (std::size_t u = 0; u <= D; ++u) plane[u] = T{0};
    }
    for (std::size_t k = grid_.levels.size(); k-- > 0;)
      for (std::size_t i = 0; i < sums[k].size(); ++i)
        for (std::size_t u = 0; u <= D; ++u)
          sums[k][i][u] += sums[k + 1][grid_.levels[k].parent[i]][u];
    for (std::size_t v = 0; v < grid_.vertices; ++v)
      if (active_[v])
        for (std::size_t u = 0; u <= D; ++u)
          planes[v * (D + 1) + u] +=
              static_cast<T>(static_cast<double>(grid_.mass[v]) * sums[0][v][u]);
  }

 private:
  struct Place {
    double mass = 0;                 // of the active vertices below
    std::array<double, D> moment{};  // their mean position times the mass
  };
  using Places = std::vector<Place>;
  using Planes = std::vector<std::array<double, D + 1>>;

  std::vector<Planes> plane_sums() const {
    std::vector<Planes> sums;
    for (const Places& level : places_) sums.emplace_back(level.size());
    return sums;
  }

  struct Node {
    std::size_t level, index;
  };
  // The nearest ancestor that has active vertices, or the root.
  Node ancestor(std::size_t v) const {
    Node node{0, v};
    while (node.level < grid_.levels.size() && !(places_[node.level][node.index].mass > 0)) {
      node.index = grid_.levels[node.level].parent[node.index];
      ++node.level;
    }
    return node;
  }

  double offset(std::size_t v, const Place& place, std::size_t d) const {
    return centres_.position[v * D + d] - place.moment[d] / place.mass;
  }

  const Grid& grid_;
  const Centres<D>& centres_;
  const std::uint8_t* active_;
  std::vector<Places> places_;  // by level of the pyramid, the grid first
};

}  // namespace bilateral
