// Let allocations fail on purpose. failing_memory.cpp replaces operator new for the whole program.
#pragma once

#include <cstddef>
#include <limits>
#include <new>

#include "tests/check.hpp"

namespace bilateral {

// While an object of this class exists, allocations of all threads are counted from 0, and those
// from `first` to `last` fail.
class FailingMemory {
 public:
  explicit FailingMemory(std::size_t first = none, std::size_t last = none);
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;

  // The number of allocations so far.
  std::size_t allocations() const;

  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
};

// Runs a job without failures, then with failing allocations at `places` all over the job: one
// allocation, or all from a place on. The job must return the same result or throw std::bad_alloc
// in this thread. Afterwards it must return the same result again.
template <class Job>
void check_without_memory(std::size_t places, Job&& job) {
  const auto expected = job();
  std::size_t allocations = 0;
  {
    const FailingMemory count;
    job();
    allocations = count.allocations();
  }
  CHECK(allocations > 0);
  bool same = true, thrown = false;
  for (std::size_t i = 0; i <= places; ++i) {
    const std::size_t first = allocations * i / places;
    for (const std::size_t last : {first, FailingMemory::none}) {
      try {
        const FailingMemory failing(first, last);
        same = same && job() == expected;
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
      same = same && job() == expected;
    }
  }
  CHECK(same);
  CHECK(thrown);
}

}  // namespace bilateral
