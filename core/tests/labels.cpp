// Test the operations on label maps.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "labels/label_depth.hpp"
#include "labels/majority.hpp"
#include "labels/object_regions.hpp"
#include "labels/regions.hpp"
#include "tests/check.hpp"
#include "tests/failing_memory.hpp"

namespace bilateral {

namespace {

// Random rectangles of a few labels, with the label -1 among them if `unknown`.
std::vector<std::int32_t> blobs(Random& random, std::size_t height, std::size_t width,
                                bool unknown) {
  std::vector<std::int32_t> labels(height * width, 0);
  for (int blob = 0; blob < 6; ++blob) {
    const std::size_t top = below(random, height), left = below(random, width);
    const std::size_t tall = 1 + below(random, height), wide = 1 + below(random, width);
    const auto label = static_cast<std::int32_t>(below(random, 4)) - (unknown ? 1 : 0);
    for (std::size_t y = top; y < std::min(top + tall, height); ++y)
      for (std::size_t x = left; x < std::min(left + wide, width); ++x)
        labels[y * width + x] = label;
  }
  return labels;
}

// Compares with brute force over all outline pixels.
void test_label_depth(Random& random) {
  for (const auto& shape :
       {std::pair<std::size_t, std::size_t>{1, 1}, {1, 40}, {40, 1}, {37, 45}, {300, 260}})
    for (const std::size_t radius : {0u, 1u, 7u}) {
      const std::size_t height = shape.first, width = shape.second;
      const auto labels = blobs(random, height, width, true);
      const auto at = [&](std::size_t y, std::size_t x) { return labels[y * width + x]; };
      std::vector<std::array<std::size_t, 2>> edges;
      for (std::size_t y = 0; y < height; ++y)
        for (std::size_t x = 0; x < width; ++x) {
          const auto differs = [&](std::size_t v, std::size_t u) {
            return at(v, u) >= 0 && at(y, x) >= 0 && at(v, u) != at(y, x);
          };
          if ((y > 0 && differs(y - 1, x)) || (y + 1 < height && differs(y + 1, x)) ||
              (x > 0 && differs(y, x - 1)) || (x + 1 < width && differs(y, x + 1)))
            edges.push_back({y, x});
        }
      const auto difference = [](std::size_t a, std::size_t b) {
        return static_cast<double>(a) - static_cast<double>(b);
      };
      const bool compare = height * width < 2000;  // brute force takes long
      std::vector<double> distance(height * width), thick(height * width);
      for (std::size_t i = 0; compare && i < distance.size(); ++i) {
        distance[i] = std::numeric_limits<double>::infinity();
        for (const auto& [y, x] : edges)
          distance[i] = std::min(
              distance[i], std::hypot(difference(i / width, y), difference(i % width, x)) + 0.5);
      }
      const auto along = [&](std::vector<double> from, std::size_t step, std::size_t n) {
        std::vector<double> to = from;
        for (std::size_t i = 0; i < to.size(); ++i) {
          const std::size_t place = i / step % n;
          for (std::size_t k = 1; k <= std::min(radius, place); ++k) {
            if (labels[i - k * step] != labels[i]) break;
            to[i] = std::max(to[i], from[i - k * step]);
          }
          for (std::size_t k = 1; k <= radius && place + k < n; ++k) {
            if (labels[i + k * step] != labels[i]) break;
            to[i] = std::max(to[i], from[i + k * step]);
          }
        }
        return to;
      };
      thick = along(along(distance, 1, width), width, height);
      std::vector<float> first(height * width), out(height * width);
      label_depth(labels.data(), height, width, radius, first.data(), 1);
      label_depth(labels.data(), height, width, radius, out.data(), 3);
      CHECK(first == out);
      bool right = true;
      for (std::size_t i = 0; compare && i < out.size(); ++i) {
        const double expected = std::isinf(distance[i]) ? 1 : distance[i] / thick[i];
        right = right && std::abs(static_cast<double>(out[i]) - expected) < 1e-5;
      }
      CHECK(right);
    }
}

void test_majority(Random& random) {
  for (const auto& [height, width] :
       {std::pair<std::size_t, std::size_t>{1, 1}, {1, 30}, {30, 1}, {31, 42}, {280, 260}})
    for (const std::size_t radius : {0u, 1u, 3u}) {
      auto labels = blobs(random, height, width, false);
      for (auto& label : labels)
        if (below(random, 4) == 0) label = static_cast<std::int32_t>(below(random, 4));
      std::vector<std::int32_t> out(labels.size());
      majority(labels.data(), height, width, 4, radius, out.data(), 3);
      bool right = true;
      const auto r = static_cast<std::ptrdiff_t>(radius);
      const auto inside = [](std::size_t i, std::ptrdiff_t by, std::size_t n) {
        const auto moved = static_cast<std::ptrdiff_t>(i) + by;
        return static_cast<std::size_t>(
            std::clamp<std::ptrdiff_t>(moved, 0, static_cast<std::ptrdiff_t>(n) - 1));
      };
      for (std::size_t i = 0; i < out.size(); ++i) {
        std::array<std::ptrdiff_t, 4> count{};
        for (std::ptrdiff_t v = -r; v <= r; ++v)
          for (std::ptrdiff_t u = -r; u <= r; ++u) {
            const std::size_t y = inside(i / width, v, height), x = inside(i % width, u, width);
            ++count[static_cast<std::size_t>(labels[y * width + x])];
          }
        std::int32_t expected = labels[i];
        for (std::size_t k = 0; k < 4; ++k)
          if (2 * count[k] > (2 * r + 1) * (2 * r + 1)) expected = static_cast<std::int32_t>(k);
        right = right && out[i] == expected;
      }
      CHECK(right);
    }
}

void test_regions() {
  const std::vector<float> values = {1, 1, 5, 1,  //
                                     9, 1, 5, 1,  //
                                     1, 1, 1, 1};
  const bool mask[] = {true, true, true, true, true, true, true, true, true, false, true, true};
  std::vector<std::int32_t> labels(12);
  CHECK(find_regions(values.data(), mask, 3, 4, 0.5f, labels.data()) == 5);
  const std::vector<std::int32_t> expected = {1, 1, 2, 3, 4, 1, 2, 3, 5, 0, 3, 3};
  CHECK(labels == expected);
}

// Compares with labels that spread from pixel to pixel.
void test_random_regions(Random& random) {
  for (const auto& [height, width] :
       {std::pair<std::size_t, std::size_t>{1, 1}, {1, 30}, {30, 1}, {25, 37}}) {
    const auto values = blobs(random, height, width, false);
    std::vector<float> levels(values.begin(), values.end());
    const auto mask = std::make_unique<bool[]>(levels.size());
    for (std::size_t i = 0; i < levels.size(); ++i) {
      mask[i] = below(random, 5) > 0;
      if (below(random, 9) == 0) levels[i] = std::numeric_limits<float>::quiet_NaN();
    }
    std::vector<std::int32_t> expected(levels.size(), 0), labels(levels.size());
    std::int32_t count = 0;
    for (std::size_t first = 0; first < levels.size(); ++first) {
      if (!mask[first] || expected[first] != 0) continue;
      expected[first] = ++count;
      std::vector<std::size_t> open{first};
      while (!open.empty()) {
        const std::size_t p = open.back();
        open.pop_back();
        const auto spread = [&](bool inside, std::size_t q) {
          if (!inside || !mask[q] || expected[q] != 0) return;
          if (!(std::abs(levels[p] - levels[q]) <= 0.5f)) return;
          expected[q] = count;
          open.push_back(q);
        };
        spread(p % width > 0, p - 1);
        spread(p % width + 1 < width, p + 1);
        spread(p >= width, p - width);
        spread(p + width < levels.size(), p + width);
      }
    }
    CHECK(find_regions(levels.data(), mask.get(), height, width, 0.5f, labels.data()) == count);
    CHECK(labels == expected);
  }
}

// Compares with a flood fill of the background from the border, then of each region.
void test_object_regions(Random& random) {
  for (const auto& shape :
       {std::pair<std::size_t, std::size_t>{1, 1}, {1, 9}, {9, 1}, {3, 3}, {24, 31}, {60, 20}})
    for (int density = 1; density < 8; ++density) {
      const auto [height, width] = shape;
      const std::size_t pixels = height * width, columns = width;
      std::vector<double> values(pixels);
      for (double& value : values) value = below(random, 8) < std::size_t(density) ? 1.0 : 0.0;
      const auto flood = [&](std::vector<std::int32_t>& map, std::size_t start, std::int32_t from,
                             std::int32_t to) {
        std::vector<std::size_t> open{start};
        while (!open.empty()) {
          const std::size_t p = open.back();
          open.pop_back();
          if (map[p] != from) continue;
          map[p] = to;
          if (p % columns > 0) open.push_back(p - 1);
          if (p % columns + 1 < columns) open.push_back(p + 1);
          if (p >= columns) open.push_back(p - columns);
          if (p + columns < pixels) open.push_back(p + columns);
        }
      };
      std::vector<std::int32_t> expected(pixels), labels(pixels);
      for (std::size_t p = 0; p < pixels; ++p) expected[p] = values[p] > 0.5 ? -1 : -2;
      for (std::size_t p = 0; p < pixels; ++p)
        if (p % width == 0 || p % width + 1 == width || p < width || p + width >= pixels)
          flood(expected, p, -2, 0);
      std::replace(expected.begin(), expected.end(), -2, -1);
      std::int32_t count = 0;
      for (std::size_t p = 0; p < pixels; ++p)
        if (expected[p] == -1) flood(expected, p, -1, ++count);
      const auto sizes = object_regions(values.data(), 0.5, height, width, labels.data());
      CHECK(labels == expected);
      CHECK(sizes.size() == std::size_t(count) + 1);
      for (std::size_t k = 0; k < sizes.size(); ++k)
        CHECK(sizes[k] == std::count(expected.begin(), expected.end(), std::int32_t(k)));
    }
}

// Labels are indices, so that the filter must refuse others.
void test_labels_outside_the_classes() {
  for (const std::int32_t wrong : {-1, 3, std::numeric_limits<std::int32_t>::min()}) {
    std::vector<std::int32_t> labels(30 * 40, 2), out(labels.size());
    labels[700] = wrong;
    bool refused = false;
    try {
      majority(labels.data(), 30, 40, 3, 2, out.data(), 2);
    } catch (const std::invalid_argument&) {
      refused = true;
    }
    CHECK(refused);
  }
}

void test_without_memory(Random& random) {
  const std::size_t height = 365, width = 365;
  const auto labels = blobs(random, height, width, false);
  check_without_memory(24, [&] {
    std::vector<std::int32_t> major(labels.size());
    std::vector<float> depth(labels.size());
    majority(labels.data(), height, width, 4, 2, major.data(), 4);
    label_depth(major.data(), height, width, 9, depth.data(), 4);
    return depth;
  });
}

}  // namespace

void test_labels(Random& random) {
  test_regions();
  test_random_regions(random);
  test_object_regions(random);
  test_label_depth(random);
  test_majority(random);
  test_labels_outside_the_classes();
  test_without_memory(random);
}

}  // namespace bilateral
