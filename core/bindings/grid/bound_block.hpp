// BoundBlock: the block that Python holds, a grid without edges.
#pragma once

#include "grid/grid.hpp"

namespace bilateral {

struct BoundBlock {
  Grid grid;
};

}  // namespace bilateral
