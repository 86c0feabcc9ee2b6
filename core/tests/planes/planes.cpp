// Test the planar model in both precisions, over two and over three axes.
#include <cstddef>

#include "tests/check.hpp"

namespace bilateral {

// tests/planes.hpp; each instance has a source of its own.
template <class T, std::size_t D>
void test_plane_model(Random& random);
extern template void test_plane_model<float, 2>(Random& random);
extern template void test_plane_model<float, 3>(Random& random);
extern template void test_plane_model<double, 2>(Random& random);
extern template void test_plane_model<double, 3>(Random& random);

void test_planes(Random& random) {
  test_plane_model<float, 2>(random);
  test_plane_model<float, 3>(random);
  test_plane_model<double, 2>(random);
  test_plane_model<double, 3>(random);
}

}  // namespace bilateral
