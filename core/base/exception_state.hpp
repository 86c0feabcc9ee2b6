// Set up a thread's exception state before memory runs out. The C++ library allocates the state of
// a thread at its first throw. Without memory for it, the dynamic loader ends the process.
#pragma once

#include <cstdlib>

#if __has_include(<cxxabi.h>)  // the Microsoft library has no such state
#include <cxxabi.h>
#define BILATERAL_EXCEPTION_STATE
#endif

#ifdef _LIBCPP_VERSION  // libc++abi has the function, and its header does not declare it
namespace __cxxabiv1 {
struct __cxa_eh_globals;
extern "C" __cxa_eh_globals* __cxa_get_globals();
}  // namespace __cxxabiv1
#endif

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
#ifdef BILATERAL_EXCEPTION_STATE
  [[maybe_unused]] void* volatile state = abi::__cxa_get_globals();
#endif
  return true;
}

}  // namespace bilateral
