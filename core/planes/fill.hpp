// Fill the parts of the grid that are connected to no data: a vertex takes the mean plane of the
// nearest pyramid level that has one, evaluated at the vertex's own centre.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "grid/grid.hpp"
#include "planes/positions.hpp"

namespace bilateral {

// The linear map from the planes of active vertices to those of all others, and its transpose.
template <std::size_t D>
class PlaneFill {
 public:
  PlaneFill(const Grid& grid, const Centres<D>& centres, const std::uint8_t* active)
      : grid_(grid), centres_(centres), active_(active) {
    for (const Level& step : grid.levels) {
      Places& above = places_.emplace_back(step.parent_band.back());
      const auto add = [&](std::size_t i, double mass, const double* moment) {
        Place& place = above[step.parent[i]];
        place.mass += mass;
        for (std::size_t d = 0; d < D; ++d) place.moment[d] += moment[d];
      };
      if (places_.size() > 1) {
        const Places& below = places_[places_.size() - 2];
        for (std::size_t i = 0; i < below.size(); ++i)
          add(i, below[i].mass, below[i].moment.data());
        continue;
      }
      for (std::size_t v = 0; v < grid.vertices; ++v) {
        if (!active[v]) continue;
        const auto mass = static_cast<double>(grid.mass[v]);
        std::array<double, D> moment;
        for (std::size_t d = 0; d < D; ++d) moment[d] = mass * centres.position[v * D + d];
        add(v, mass, moment.data());
      }
    }
  }

  // Writes the planes of inactive vertices.
  template <class T>
  void fill(T* planes) const {
    std::vector<Planes> sums = plane_sums();
    for (std::size_t v = 0; v < grid_.vertices && !sums.empty(); ++v)
      for (std::size_t u = 0; u <= D && active_[v]; ++u)
        sums[0][grid_.levels[0].parent[v]][u] +=
            static_cast<double>(grid_.mass[v]) * static_cast<double>(planes[v * (D + 1) + u]);
    for (std::size_t k = 1; k < sums.size(); ++k)
      for (std::size_t i = 0; i < sums[k - 1].size(); ++i)
        for (std::size_t u = 0; u <= D; ++u)
          sums[k][grid_.levels[k].parent[i]][u] += sums[k - 1][i][u];
    for (std::size_t v = 0; v < grid_.vertices; ++v) {
      if (active_[v]) continue;
      T* plane = planes + v * (D + 1);
      std::fill_n(plane, D + 1, T{0});
      const std::optional<Node> node = ancestor(v);
      if (!node) continue;
      const Place& place = places_[node->level][node->index];
      const auto& sum = sums[node->level][node->index];
      for (std::size_t u = 0; u <= D; ++u) plane[u] = static_cast<T>(sum[u] / place.mass);
      for (std::size_t d = 0; d < D; ++d)
        plane[0] += static_cast<T>(sum[d + 1] / place.mass * offset(v, place, d));
    }
  }

  // Adds the transpose of `fill` to active vertices, and clears the others.
  template <class T>
  void fill_transposed(T* planes) const {
    std::vector<Planes> sums = plane_sums();
    for (std::size_t v = 0; v < grid_.vertices; ++v) {
      if (active_[v]) continue;
      T* plane = planes + v * (D + 1);
      if (const std::optional<Node> node = ancestor(v)) {
        const Place& place = places_[node->level][node->index];
        auto& sum = sums[node->level][node->index];
        const auto value = static_cast<double>(plane[0]);
        sum[0] += value / place.mass;
        for (std::size_t d = 0; d < D; ++d)
          sum[d + 1] +=
              (static_cast<double>(plane[d + 1]) + offset(v, place, d) * value) / place.mass;
      }
      std::fill_n(plane, D + 1, T{0});
    }
    for (std::size_t k = sums.size(); k-- > 1;)
      for (std::size_t i = 0; i < sums[k - 1].size(); ++i)
        for (std::size_t u = 0; u <= D; ++u)
          sums[k - 1][i][u] += sums[k][grid_.levels[k].parent[i]][u];
    for (std::size_t v = 0; v < grid_.vertices && !sums.empty(); ++v)
      for (std::size_t u = 0; u <= D && active_[v]; ++u)
        planes[v * (D + 1) + u] += static_cast<T>(static_cast<double>(grid_.mass[v]) *
                                                  sums[0][grid_.levels[0].parent[v]][u]);
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
  // The nearest ancestor that has active vertices; none if no vertex is active.
  std::optional<Node> ancestor(std::size_t v) const {
    Node node{0, v};
    for (; node.level < places_.size(); ++node.level) {
      node.index = grid_.levels[node.level].parent[node.index];
      if (places_[node.level][node.index].mass > 0) return node;
    }
    return std::nullopt;
  }

  double offset(std::size_t v, const Place& place, std::size_t d) const {
    return centres_.position[v * D + d] - place.moment[d] / place.mass;
  }

  const Grid& grid_;
  const Centres<D>& centres_;
  const std::uint8_t* active_;
  std::vector<Places> places_;  // by level of the pyramid above the grid
};

}  // namespace bilateral
