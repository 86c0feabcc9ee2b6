// Let chosen allocations of one library fail. A preloaded library replaces operator new for the
// whole process; allocations whose caller is the watched library are counted from 0, and one fails.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uintptr_t> first{0}, last{0};
std::atomic<long> count{0}, failure{-1}, living{0};

void* take(std::size_t size, std::size_t alignment, void* caller) {
  const auto place = reinterpret_cast<std::uintptr_t>(caller);
  if (place >= first && place < last && count++ == failure) throw std::bad_alloc();
  void* memory = std::aligned_alloc(alignment, (size + alignment) / alignment * alignment);
  if (!memory) throw std::bad_alloc();
  ++living;
  return memory;
}

void release(void* memory) {
  if (memory) --living;
  std::free(memory);
}

constexpr std::size_t usual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

extern "C" {
// Watches the library at these addresses.
void faults_watch(std::uintptr_t from, std::uintptr_t to) {
  first = from;
  last = to;
}
// Counts from 0 and lets one allocation fail; none if the number is negative.
void faults_begin(long number) {
  count = 0;
  failure = number;
}
// Ends the failures; returns the number of allocations since `faults_begin`.
long faults_end() {
  failure = -1;
  return count;
}
// Returns the number of allocations that nobody has released.
long faults_living() { return living; }
}

void* operator new(std::size_t n) { return take(n, usual, __builtin_return_address(0)); }
void* operator new[](std::size_t n) { return take(n, usual, __builtin_return_address(0)); }
void* operator new(std::size_t n, std::align_val_t a) {
  return take(n, static_cast<std::size_t>(a), __builtin_return_address(0));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return take(n, static_cast<std::size_t>(a), __builtin_return_address(0));
}
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { release(p); }
