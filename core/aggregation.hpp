// Aggregates by matching along strong edges: pairs of vertices that are each other's strongest free
// neighbour, and what clings to them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph.hpp"
#include "threads.hpp"

namespace bilateral {

struct Aggregates {
  std::uint32_t count = 0;
  Buffer<std::uint32_t> of;  // each vertex's aggregate; `nowhere` for a vertex without edges
};

namespace detail {

// Breaks ties between edges of equal weight, alike from both ends.
inline std::uint32_t edge_hash(std::uint32_t i, std::uint32_t j) {
  std::uint32_t h = std::min(i, j) * 0x9e3779b1u ^ std::max(i, j) * 0x85ebca6bu;
  h ^= h >> 15;
  return h * 0x2c1b3c6du;
}

template <class T>
class Matching {
 public:
  Matching(const Graph<T>& graph, int threads)
      : graph_(graph),
        team_(team_size(threads, graph.vertices, 16384)),
        largest_(graph.vertices),
        pick_(graph.vertices),
        mate_(graph.vertices, nowhere) {}

  Aggregates aggregates() {
    each_row([&](std::size_t row, std::uint32_t v) {
      T largest{0};
      for (std::uint32_t e = graph_.first[row]; e < graph_.first[row + 1]; ++e)
        largest = std::max(largest, graph_.weight[e]);
      largest_[v] = largest;
    });
    for (int round = 0; round < 2; ++round) {
      each_row([&](std::size_t row, std::uint32_t v) {
        if (mate_[v] == nowhere) pick_[v] = strongest(row, v, true);
      });
      each_row([&](std::size_t, std::uint32_t v) {
        const std::uint32_t other = pick_[v];
        if (other != nowhere && pick_[other] == v) mate_[v] = other;
      });
    }
    each_row([&](std::size_t row, std::uint32_t v) { pick_[v] = root(row, v); });
    return number();
  }

 private:
  template <class F>
  void each_row(F&& f) {
    constexpr std::size_t run = 4096;
    const std::size_t rows = graph_.vertices;
    parallel_for(team_, (rows + run - 1) / run, [&](std::size_t part, std::size_t) {
      for (std::size_t row = part * run; row < std::min(rows, (part + 1) * run); ++row)
        f(row, graph_.vertex.size() > 0 ? graph_.vertex[row] : static_cast<std::uint32_t>(row));
    });
  }

  // The strongest neighbour; among the free ones, if the edge is strong from both ends.
  std::uint32_t strongest(std::size_t row, std::uint32_t v, bool free) const {
    std::uint32_t best = nowhere;
    T weight{0};
    for (std::uint32_t e = graph_.first[row]; e < graph_.first[row + 1]; ++e) {
      const std::uint32_t other = graph_.neighbour[e];
      const T w = graph_.weight[e];
      if (!(w >= weight) || w <= T{0}) continue;
      if (free && (mate_[other] != nowhere || w < T(0.5) * std::max(largest_[v], largest_[other])))
        continue;
      if (w == weight && best != nowhere && edge_hash(v, other) < edge_hash(v, best)) continue;
      best = other;
      weight = w;
    }
    return best;
  }

  // The first vertex of v's aggregate, or nowhere.
  std::uint32_t root(std::size_t row, std::uint32_t v) const {
    if (mate_[v] != nowhere) return std::min(v, mate_[v]);
    const std::uint32_t near = strongest(row, v, false);
    if (near == nowhere) return nowhere;
    return mate_[near] != nowhere ? std::min(near, mate_[near]) : v;
  }

  Aggregates number() {
    constexpr std::size_t run = 4096;
    const std::size_t vertices = graph_.vertices, runs = (vertices + run - 1) / run;
    Aggregates out;
    out.of = Buffer<std::uint32_t>(vertices);
    std::vector<std::uint32_t> start(runs + 1, 0);
    const auto each_run = [&](auto&& f) {
      parallel_for(team_, runs, [&](std::size_t i, std::size_t) {
        f(i, i * run, std::min(vertices, (i + 1) * run));
      });
    };
    each_run([&](std::size_t i, std::size_t begin, std::size_t end) {
      for (std::size_t v = begin; v < end; ++v) start[i + 1] += pick_[v] == v;
    });
    for (std::size_t i = 0; i < runs; ++i) start[i + 1] += start[i];
    out.count = start[runs];
    each_run([&](std::size_t i, std::size_t begin, std::size_t end) {
      std::uint32_t next = start[i];
      for (std::size_t v = begin; v < end; ++v)
        if (pick_[v] == v) mate_[v] = next++;
    });
    each_run([&](std::size_t, std::size_t begin, std::size_t end) {
      for (std::size_t v = begin; v < end; ++v)
        out.of[v] = pick_[v] == nowhere ? nowhere : mate_[pick_[v]];
    });
    return out;
  }

  const Graph<T>& graph_;
  int team_;
  Buffer<T> largest_;
  Buffer<std::uint32_t> pick_, mate_;
};

}  // namespace detail

template <class T>
Aggregates aggregate(const Graph<T>& graph, int threads) {
  return detail::Matching<T>(graph, threads).aggregates();
}

}  // namespace bilateral
