#include "tests/planes/planes.hpp"

namespace bilateral {

template void test_plane_model<float, 2>(Random& random);

}  // namespace bilateral
