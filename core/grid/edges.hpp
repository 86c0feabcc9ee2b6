// Iterate over the edges of the grid, band by band. A band is a run of rows of tiles: the unit of
// parallel work and of summation, the same for any number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/multiversion.hpp"
#include "base/threads.hpp"
#include "grid/grid.hpp"

namespace bilateral {

// One band: the rows of tiles [row, row_end) and the vertices [first, last).
struct Band {
  std::size_t row, row_end, first, last;

  Band(const Grid& grid, std::size_t band)
      : row(grid.band_row[band]),
        row_end(grid.band_row[band + 1]),
        first(grid.row_vertex[row]),
        last(grid.row_vertex[row_end]) {}
};

// Calls f(i) for i in [begin, end), alternating between four runs. Neighbouring items often add to
// the same place; in sequence, each would wait for the sum before.
template <class F>
BILATERAL_INLINE void in_turns(std::size_t begin, std::size_t end, F&& f) {
  const std::size_t run = (end - begin) / 4;
  for (std::size_t i = begin; i < begin + run; ++i)
    for (std::size_t turn = 0; turn < 4; ++turn) f(i + turn * run);
  for (std::size_t i = begin + 4 * run; i < end; ++i) f(i);
}

// Calls f(ends, first_a, first_b, edges, begin, end) for the runs of edges of one kind that have an
// end in the band. `ends` is a compile-time constant; a and b are counted from first_a and first_b.
template <class F>
void each_run(const Grid& grid, std::size_t band, std::size_t kind, F&& f) {
  const EdgeList& edges = grid.edges[kind];
  std::visit(
      [&](const auto& list) {
        for (std::size_t i = edges.band_run[band]; i < edges.band_run[band + 1]; ++i) {
          const EdgeRun& run = edges.runs[i];
          const auto call = [&](auto ends) {
            f(ends, run.first_a, run.first_b, list.data(), run.begin, run.end);
          };
          if (run.ends == Ends::both)
            call(std::integral_constant<Ends, Ends::both>{});
          else if (run.ends == Ends::only_a)
            call(std::integral_constant<Ends, Ends::only_a>{});
          else
            call(std::integral_constant<Ends, Ends::only_b>{});
        }
      },
      edges.edge);
}

// Calls f(e, a, b, ends) for every edge of one kind that has an end in the band, with the vertices
// a and b.
template <class F>
void each_edge(const Grid& grid, std::size_t band, std::size_t kind, F&& f) {
  each_run(grid, band, kind,
           [&](auto ends, std::size_t first_a, std::size_t first_b, const auto* edges,
               std::size_t begin, std::size_t end) {
             in_turns(begin, end, [&](std::size_t e) {
               f(e, first_a + edges[e].a, first_b + edges[e].b, ends);
             });
           });
}

// The bands [begin, end) of one of `size` parts. All parts have about the same number of vertices.
struct Share {
  std::size_t begin, end;

  // `band` holds the first vertex of each band, and the end of the last band.
  Share(const std::vector<std::uint32_t>& band, int part, int size)
      : begin(bound(band, part, size)), end(bound(band, part + 1, size)) {}
  Share(const std::vector<std::uint32_t>& band, const Worker& worker)
      : Share(band, worker.rank, worker.size) {}

 private:
  static std::size_t bound(const std::vector<std::uint32_t>& band, int part, int size) {
    if (part == size) return band.size() - 1;
    const std::uint64_t target = std::uint64_t{band.back()} * static_cast<std::uint64_t>(part) /
                                 static_cast<std::uint64_t>(size);
    return static_cast<std::size_t>(std::lower_bound(band.begin(), band.end() - 1, target) -
                                    band.begin());
  }
};

// Hands out bands to the threads of a team. Each thread takes its own share first, whose memory is
// in its cache, then bands that other threads have not reached: on a busy machine one thread may
// stand still.
class BandQueue {
 public:
  BandQueue(const std::vector<std::uint32_t>& band, int threads)
      : band_(band), turn_(static_cast<std::size_t>(threads)) {
    for (auto& taken : taken_) taken = std::vector<Taken>(static_cast<std::size_t>(threads));
  }

  // Forgets earlier calls, before a team starts. The last team may have been smaller.
  void reset() {
    for (auto& taken : taken_)
      for (Taken& part : taken) part.count = 0;
    for (Turn& turn : turn_) turn.count = 0;
  }

  // Calls f(band) for every band. All threads of the team call `each`, with a barrier between two
  // calls.
  template <class F>
  void each(const Worker& worker, F&& f) {
    const std::size_t turn = turn_[static_cast<std::size_t>(worker.rank)].count++;
    if (worker.rank == 0)
      for (Taken& taken : taken_[(turn + 1) % 2]) taken.count.store(0, std::memory_order_relaxed);
    for (int k = 0; k < worker.size; ++k) {
      const int part = (worker.rank + k) % worker.size;
      const Share share(band_, part, worker.size);
      auto& count = taken_[turn % 2][static_cast<std::size_t>(part)].count;
      for (std::size_t band;
           (band = share.begin + count.fetch_add(1, std::memory_order_relaxed)) < share.end;)
        f(band);
    }
  }

 private:
  struct alignas(64) Taken {
    std::atomic<std::size_t> count{0};
  };
  struct alignas(64) Turn {
    std::size_t count = 0;
  };
  const std::vector<std::uint32_t>& band_;
  std::array<std::vector<Taken>, 2> taken_;  // of this call, and of the next, which is being reset
  std::vector<Turn> turn_;
};

}  // namespace bilateral
