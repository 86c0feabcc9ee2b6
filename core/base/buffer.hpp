// Buffer: a large array that is left uninitialised and uses huge pages. A std::vector would write
// zeros that the next loop overwrites, and huge pages save one page fault per 4 KiB.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace bilateral {

template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : size_(size) {
    constexpr std::size_t line = 64, page = 4096, huge = std::size_t{1} << 21;
    if (size > (std::numeric_limits<std::size_t>::max() - huge) / sizeof(T) / 2)
      throw std::bad_alloc();
    const std::size_t bytes = size * sizeof(T) + page;
    const std::size_t alignment = bytes >= 2 * huge ? huge : line;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    memory_ = {::operator new(rounded, std::align_val_t{alignment}), Free{alignment}};
#if defined(__linux__)
    if (alignment == huge) madvise(memory_.get(), rounded, MADV_HUGEPAGE);
#endif
    // Large allocations all start at the same offset within a page. A loop over several arrays
    // would then delay loads behind unrelated stores (4 KiB aliasing), so each buffer starts at a
    // different cache line.
    const auto block = reinterpret_cast<std::uintptr_t>(memory_.get()) / page;
    const std::size_t stagger = block * 2654435761u % (page / line) * line;
    data_ = reinterpret_cast<T*>(static_cast<std::byte*>(memory_.get()) + stagger);
  }
  Buffer(std::size_t size, T value) : Buffer(size) { std::fill_n(data_, size, value); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  struct Free {
    std::size_t alignment = 1;
    void operator()(void* p) const { ::operator delete(p, std::align_val_t{alignment}); }
  };
  std::unique_ptr<void, Free> memory_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace bilateral
