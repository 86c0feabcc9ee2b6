// Replace operator new, so that chosen allocations fail.
#include "tests/failing_memory.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace bilateral {

namespace {

std::atomic<bool> counting{false};
std::atomic<std::size_t> count{0}, first_failure{0}, last_failure{0};

void* allocate(std::size_t size, std::size_t alignment) {
  if (counting) {
    const std::size_t number = count++;
    if (number >= first_failure && number <= last_failure) throw std::bad_alloc();
  }
  const std::size_t rounded = (size + alignment) / alignment * alignment;
  if (void* memory = std::aligned_alloc(alignment, rounded)) return memory;
  throw std::bad_alloc();
}

}  // namespace

FailingMemory::FailingMemory(std::size_t first, std::size_t last) {
  count = 0;
  first_failure = first;
  last_failure = last;
  counting = true;
}

FailingMemory::~FailingMemory() { counting = false; }

std::size_t FailingMemory::allocations() const { return count; }

}  // namespace bilateral

void* operator new(std::size_t size) {
  return bilateral::allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return bilateral::allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
