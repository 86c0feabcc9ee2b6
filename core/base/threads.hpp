// Run a function on a team of threads that live for one call. No thread outlives the call, so a
// process may fork between calls.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "base/exception_state.hpp"

namespace bilateral {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Blocks until all threads of the team arrive. A thread spins first, since the phases between two
// barriers often last microseconds, then sleeps. Spinning in vain means that another thread lost
// its core and gets the core back sooner if this thread spins less, so the number of spins adapts.
class Barrier {
 public:
  void resize(int parties) { parties_ = parties; }

  void wait() {
    if (parties_ == 1) return;
    const std::uint32_t phase = phase_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == parties_) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
      phase_.notify_all();
      return;
    }
    const int spins = spins_.load(std::memory_order_relaxed);
    for (int spin = 0; spin < spins; ++spin) {
      if (phase_.load(std::memory_order_acquire) != phase) {
        spins_.store(std::min(spins + spins / 4 + 1, max_spins), std::memory_order_relaxed);
        return;
      }
      relax();
    }
    spins_.store(std::max(spins / 2, min_spins), std::memory_order_relaxed);
    while (phase_.load(std::memory_order_acquire) == phase) phase_.wait(phase);
  }

 private:
  static constexpr int min_spins = 20, max_spins = 1500;
  int parties_ = 1;
  std::atomic<int> spins_{max_spins};
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> phase_{0};
};

// One thread of a team: its number, the size of the team, and the barrier that they share.
struct Worker {
  int rank;
  int size;
  Barrier& barrier;
};

// Runs f(Worker) on `threads` threads; the caller is rank 0. If the system refuses a thread, the
// team is smaller. Results never depend on the size of the team. A function that waits at the
// barrier must not throw, so it must not allocate memory. Any other function may throw on a thread
// of the team after prepare_to_throw.
template <class F>
void run_team(int threads, F&& f) {
  Barrier barrier;
  if (threads <= 1) {
    f(Worker{0, 1, barrier});
    return;
  }
  std::atomic<int> size{0};
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(threads));
  auto body = [&](int rank) noexcept {
    size.wait(0);
    try {
      f(Worker{rank, size.load(), barrier});
    } catch (...) {
      errors[static_cast<std::size_t>(rank)] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  others.reserve(static_cast<std::size_t>(threads - 1));
  try {
    for (int rank = 1; rank < threads; ++rank) others.emplace_back(body, rank);
  } catch (...) {  // too many threads, or no memory for one more
  }
  const int team = static_cast<int>(others.size()) + 1;
  barrier.resize(team);
  size.store(team);
  size.notify_all();
  body(0);
  for (auto& thread : others) thread.join();
  for (auto& error : errors)
    if (error) std::rethrow_exception(error);
}

// The number of threads worth starting for `work` items if each thread should get at least `grain`
// items.
inline int team_size(int threads, std::size_t work, std::size_t grain) {
  const std::size_t useful = std::max<std::size_t>(1, work / grain);
  return static_cast<int>(std::min(useful, static_cast<std::size_t>(std::max(threads, 1))));
}

// Calls f(item, rank) for every item. Each thread starts with its own contiguous part, since
// neighbouring items share memory pages that the system has yet to supply, then helps the other
// threads. `rank` selects scratch memory; the result of f must not depend on it. f may throw: a
// thread that has no memory for that leaves its items to the others.
template <class F>
void parallel_for(int threads, std::size_t items, F&& f) {
  const auto parts = static_cast<std::size_t>(team_size(threads, items, 1));
  std::vector<std::atomic<std::size_t>> next(parts);
  for (std::size_t part = 0; part < parts; ++part) next[part] = items * part / parts;
  run_team(static_cast<int>(parts), [&](const Worker& worker) {
    const auto rank = static_cast<std::size_t>(worker.rank);
    if (rank > 0 && !prepare_to_throw()) return;
    for (std::size_t turn = 0; turn < parts; ++turn) {
      const std::size_t part = (rank + turn) % parts, end = items * (part + 1) / parts;
      for (std::size_t item; (item = next[part].fetch_add(1, std::memory_order_relaxed)) < end;)
        f(item, rank);
    }
  });
}

}  // namespace bilateral
