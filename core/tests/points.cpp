// Test the interpolation between scattered pixels: nearest pixels against brute force, planes, and
// values between those of the points.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "points/interpolate.hpp"
#include "tests/check.hpp"

namespace bilateral {

namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::size_t squared_distance(std::size_t p, std::size_t q, std::size_t width) {
  const auto dx = static_cast<std::ptrdiff_t>(p % width) - static_cast<std::ptrdiff_t>(q % width);
  const auto dy = static_cast<std::ptrdiff_t>(p / width) - static_cast<std::ptrdiff_t>(q / width);
  return static_cast<std::size_t>(dx * dx + dy * dy);
}

// Whether no known pixel is nearer to p than `nearest`.
bool is_nearest(const std::vector<float>& z, std::size_t width, std::size_t p,
                std::size_t nearest) {
  const std::size_t distance = squared_distance(p, nearest, width);
  for (std::size_t q = 0; q < z.size(); ++q)
    if (z[q] == z[q] && squared_distance(p, q, width) < distance) return false;
  return z[nearest] == z[nearest];
}

void check_points(const std::vector<float>& z, std::size_t height, std::size_t width) {
  std::vector<float> out(z.size());
  std::vector<std::uint32_t> nearest(z.size());
  interpolate_points(z.data(), height, width, out.data(), nearest.data());
  float low = std::numeric_limits<float>::infinity(), high = -low;
  for (const float value : z)
    if (value == value) low = std::min(low, value), high = std::max(high, value);
  bool right = true;
  for (std::size_t p = 0; p < z.size(); ++p) {
    right = right && is_nearest(z, width, p, nearest[p]);
    right = right && out[p] >= low - 1e-3f && out[p] <= high + 1e-3f;
    right = right && (z[p] != z[p] || out[p] == z[p]);
  }
  CHECK(right);
}

// Points at the corners and anywhere inside: the map is a plane again.
void test_plane(Random& random) {
  const std::size_t height = 23, width = 31, size = height * width;
  std::vector<float> truth(size), z(size, nan), out(size);
  std::vector<std::uint32_t> nearest(size);
  for (std::size_t p = 0; p < size; ++p) {
    truth[p] = 2 + 0.25f * static_cast<float>(p % width) - 0.5f * static_cast<float>(p / width);
    if (below(random, 20) == 0) z[p] = truth[p];
  }
  for (const std::size_t p : {std::size_t{0}, width - 1, size - width, size - 1}) z[p] = truth[p];
  interpolate_points(z.data(), height, width, out.data(), nearest.data());
  bool right = true;
  for (std::size_t p = 0; p < size; ++p) right = right && std::abs(out[p] - truth[p]) < 1e-4f;
  CHECK(right);
}

}  // namespace

void test_points(Random& random) {
  for (int round = 0; round < 20; ++round) {
    const std::size_t height = 1 + below(random, 20), width = 1 + below(random, 20);
    const std::size_t spacing = 1 + below(random, 30);  // mean number of pixels per point
    std::vector<float> z(height * width, nan);
    for (float& value : z)
      if (below(random, spacing) == 0) value = static_cast<float>(below(random, 100));
    z[below(random, z.size())] = 50;
    check_points(z, height, width);
    test_plane(random);
  }
  // Lines and lattices: points are collinear, and four lie on one circle.
  std::vector<float> line(15 * 17, nan), lattice(15 * 17, nan);
  for (std::size_t p = 0; p < line.size(); ++p) {
    if (p / 17 == 7) line[p] = static_cast<float>(p % 5);
    if (p % 17 % 4 == 0 && p / 17 % 4 == 0) lattice[p] = static_cast<float>(p % 7);
  }
  check_points(line, 15, 17);
  check_points(lattice, 15, 17);
}

}  // namespace bilateral
