// ThreadPool: threads for one call that runs many short loops. The call starts its threads once,
// since starting a thread takes as long as a loop over some ten thousand rows.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/threads.hpp"

namespace bilateral {

class ThreadPool {
 public:
  // Calls f(pool) on the calling thread. The pool has threads - 1 helper threads.
  template <class F>
  static void run(int threads, F&& f) {
    ThreadPool pool(threads);
    run_team(threads, [&](const Worker& worker) {
      if (worker.rank != 0) return pool.help(static_cast<std::size_t>(worker.rank));
      struct Closer {
        ThreadPool& pool;
        ~Closer() { pool.close(); }
      } closer{pool};
      f(pool);
    });
  }

  int size() const { return size_; }

  // Calls f(item, rank) for every item, like parallel_for. Only one loop runs at a time.
  template <class F>
  void each(int threads, std::size_t items, F&& f) {
    parts_ = static_cast<std::size_t>(team_size(std::min(threads, size_), items, 1));
    if (parts_ == 1) {
      for (std::size_t item = 0; item < items; ++item) f(item, 0);
      return;
    }
    items_ = items;
    for (std::size_t part = 0; part < parts_; ++part) next_[part] = items * part / parts_;
    context_ = const_cast<void*>(static_cast<const void*>(std::addressof(f)));
    call_ = [](void* context, std::size_t item, std::size_t rank) {
      (*static_cast<std::remove_reference_t<F>*>(context))(item, rank);
    };
    gate_.fetch_or(open, std::memory_order_release);
    wake();
    work(0);
    gate_.fetch_and(~open, std::memory_order_acq_rel);
    for (int spin = 0; gate_.load(std::memory_order_acquire) != 0; ++spin)
      spin < max_spins ? relax() : std::this_thread::yield();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  // The gate holds a flag, `open` while a loop runs, and counts the helpers inside.
  static constexpr std::uint32_t open = 1, inside = 2;
  static constexpr int max_spins = 1500;

  explicit ThreadPool(int threads)
      : size_(std::max(threads, 1)), next_(static_cast<std::size_t>(size_)) {}

  void wake() {
    phase_.fetch_add(1, std::memory_order_release);
    phase_.notify_all();
  }

  void close() {
    closed_.store(true, std::memory_order_release);
    wake();
  }

  // The loop of a helper thread. No loop waits for a helper that is still asleep: such a helper
  // finds the gate closed.
  void help(std::size_t rank) {
    if (!prepare_to_throw()) return;
    for (std::uint32_t last_phase = 0; !closed_.load(std::memory_order_acquire);) {
      if (gate_.fetch_add(inside, std::memory_order_acq_rel) & open)
        if (rank < parts_) work(rank);
      gate_.fetch_sub(inside, std::memory_order_acq_rel);
      for (int spin = 0; spin < max_spins && phase_.load(std::memory_order_acquire) == last_phase;
           ++spin)
        relax();
      phase_.wait(last_phase, std::memory_order_acquire);
      last_phase = phase_.load(std::memory_order_acquire);
    }
  }

  void work(std::size_t rank) noexcept {
    try {
      for (std::size_t turn = 0; turn < parts_; ++turn) {
        const std::size_t part = (rank + turn) % parts_, end = items_ * (part + 1) / parts_;
        for (std::size_t item; (item = next_[part].fetch_add(1, std::memory_order_relaxed)) < end;)
          call_(context_, item, rank);
      }
    } catch (...) {
      if (!failed_.test_and_set()) error_ = std::current_exception();
    }
  }

  int size_;
  std::vector<std::atomic<std::size_t>> next_;  // the next item of each part
  std::size_t parts_ = 1, items_ = 0;
  void* context_ = nullptr;
  void (*call_)(void*, std::size_t, std::size_t) = nullptr;
  std::atomic<std::uint32_t> gate_{0}, phase_{0};
  std::atomic<bool> closed_{false};
  std::atomic_flag failed_;
  std::exception_ptr error_;
};

}  // namespace bilateral
