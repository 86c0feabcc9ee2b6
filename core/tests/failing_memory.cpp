// Replace operator new, so that chosen allocations fail.
#include "tests/failing_memory.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#ifdef _WIN32  // has no std::aligned_alloc
#include <malloc.h>
#endif

namespace bilateral {

namespace {

#ifdef _WIN32
void* aligned(std::size_t size, std::size_t alignment) { return _aligned_malloc(size, alignment); }
#else
void* aligned(std::size_t size, std::size_t alignment) {
  return std::aligned_alloc(alignment, (size + alignment) / alignment * alignment);
}
#endif

std::atomic<bool> counting{false};
std::atomic<std::size_t> count{0}, first_failure{0}, last_failure{0};

void* allocate(std::size_t size, std::size_t alignment) {
  if (counting) {
    const std::size_t number = count++;
    if (number >= first_failure && number <= last_failure) throw std::bad_alloc();
  }
  if (void* memory = aligned(size, alignment)) return memory;
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

static void release(void* memory) {
#ifdef _WIN32
  _aligned_free(memory);
#else
  std::free(memory);
#endif
}

}  // namespace bilateral

void* operator new(std::size_t size) {
  return bilateral::allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return bilateral::allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { bilateral::release(memory); }
void operator delete(void* memory, std::size_t) noexcept { bilateral::release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { bilateral::release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  bilateral::release(memory);
}
