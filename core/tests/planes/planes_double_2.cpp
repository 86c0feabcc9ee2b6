#include "tests/planes/planes.hpp"

namespace bilateral {

template void test_plane_model<double, 2>(Random& random);

}  // namespace bilateral
