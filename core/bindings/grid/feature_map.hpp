// Make the map from pixels to features of the arguments that Python passes.
#pragma once

#include <cstddef>
#include <vector>

#include "bindings/arrays.hpp"
#include "grid/reference.hpp"

namespace bilateral {

// The features matrix * pixel + offset. The matrix mixes channels only if there are three.
inline FeatureMap feature_map(const std::vector<std::vector<double>>& matrix,
                              const std::vector<double>& offset,
                              const std::vector<double>& sigmas) {
  const std::size_t channels = sigmas.size();
  require(channels <= max_channels && offset.size() == channels && matrix.size() == channels,
          "matrix, offset and sigmas must agree");
  FeatureMap map;
  for (std::size_t k = 0; k < channels; ++k) {
    require(matrix[k].size() == channels, "matrix must be square");
    for (std::size_t j = 0; j < channels; ++j) {
      if (channels == 3) map.matrix[k][j] = matrix[k][j];
      map.mixed = map.mixed || (j != k && matrix[k][j] != 0);
    }
    map.gain[k] = matrix[k][k];
    map.offset[k] = offset[k];
    map.sigma[k] = sigmas[k];
  }
  require(!map.mixed || channels == 3, "only three channels can be mixed");
  return map;
}

}  // namespace bilateral
