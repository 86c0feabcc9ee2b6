// Set up a thread's exception state before memory runs out. The C++ library allocates the state of
// a thread at its first throw. Without memory for it, the dynamic loader ends the process.
#pragma once

#include <cxxabi.h>

#include <cstdlib>

namespace bilateral {

// Sets up the exception state of the calling thread, which may throw from then on. Returns false if
// memory is short.
inline bool prepare_to_throw() noexcept {
  // The small block goes to the cache of this thread, and from there to the state, which has the
  // same size. The large block leaves room for the cache itself. The compiler must not remove them.
  void* volatile large = std::malloc(4096);
  void* volatile small = std::malloc(32);
  const bool enough = large && small;
  std::free(small);
  std::free(large);
  if (!enough) return false;
  [[maybe_unused]] void* volatile state = abi::__cxa_get_globals();
  return true;
}

}  // namespace bilateral
