// Pack the range coordinates of a vertex into one integer key, and rank keys.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/lanes.hpp"
#include "base/multiversion.hpp"

namespace bilateral {

inline constexpr std::size_t max_channels = 8;

using NarrowKey = std::int32_t;                   // 31 bits: photographs at any usual sigma
__extension__ typedef unsigned __int128 WideKey;  // everything else
inline constexpr int most_key_bits = 127;

template <class Key>
constexpr Key highest_key() {
  return static_cast<Key>(~Key{0}) > 0 ? static_cast<Key>(~Key{0})
                                       : static_cast<Key>((std::uint64_t{1} << 31) - 1);
}

// The bit field of each range coordinate in a key. Keys sort like their coordinates. A field has
// room for its largest coordinate + 1, so that adding a unit never carries into the next field.
struct KeyLayout {
  std::size_t channels = 0;
  std::array<int, max_channels> bits{};
  std::array<int, max_channels> shift{};
  std::array<std::int64_t, max_channels> low{};  // the coordinate that a field of 0 stands for

  static KeyLayout of(const std::vector<std::uint64_t>& largest) {
    KeyLayout layout;
    layout.channels = largest.size();
    int next_shift = 0;
    for (std::size_t k = layout.channels; k-- > 0;) {
      layout.bits[k] = static_cast<int>(std::bit_width(largest[k] + 1));
      layout.shift[k] = next_shift;
      next_shift += layout.bits[k];
    }
    return layout;
  }

  int total_bits() const { return channels == 0 ? 0 : shift[0] + bits[0]; }

  template <class Key>
  Key unit(std::size_t channel) const {
    return static_cast<Key>(Key{1} << shift[channel]);
  }

  template <class Key>
  std::int64_t coordinate(Key key, std::size_t channel) const {
    const auto field = static_cast<std::uint64_t>(key >> shift[channel]);
    return static_cast<std::int64_t>(field & ((std::uint64_t{1} << bits[channel]) - 1));
  }

  // The mask that turns key >> 1 into the key of the halved coordinates.
  template <class Key>
  Key halving_mask() const {
    Key mask = 0;
    for (std::size_t k = 0; k < channels; ++k)
      mask = static_cast<Key>(mask | (((Key{1} << (bits[k] - 1)) - 1) << shift[k]));
    return mask;
  }
};

namespace detail {

// Ranks n keys among their distinct values; n is a multiple of `lanes`. Each pass finds the next
// larger value: one pass per distinct value, over an array that stays in the first-level cache.
// Returns the number of distinct keys, or 0 if there are more than `limit`.
template <class Key>
std::size_t rank_passes(const Key* keys, std::size_t n, std::size_t limit, std::uint32_t* ranks,
                        Key* distinct, std::uint32_t* counts) {
  constexpr Key highest = highest_key<Key>();
  Key current = *std::min_element(keys, keys + n);
  std::fill_n(ranks, n, 0u);
  auto remaining = static_cast<std::uint32_t>(n);
  for (std::size_t d = 0; d < limit; ++d) {
    Key next = highest;
    std::uint32_t above = 0;
    for (std::size_t p = 0; p < n; ++p)
      if (keys[p] > current) {
        ++ranks[p];
        ++above;
        next = std::min(next, keys[p]);
      }
    distinct[d] = current;
    counts[d] = remaining - above;
    remaining = above;
    if (above == 0) return d + 1;
    current = next;
  }
  return 0;
}

inline constexpr std::size_t lanes = 8;

// The same for narrow keys, with SIMD vectors. A comparison gives -1 in each lane where it holds.
BILATERAL_INLINE std::size_t rank_passes_body(const NarrowKey* keys, std::size_t n,
                                              std::size_t limit, std::uint32_t* ranks,
                                              NarrowKey* distinct, std::uint32_t* counts) {
  constexpr NarrowKey highest = highest_key<NarrowKey>();
  using Keys = Lanes<NarrowKey, lanes>;
  const Keys none = Keys{} + highest;
  Keys low = none;
  for (std::size_t p = 0; p < n; p += lanes) {
    low = lanes_least(load_lanes<Keys>(keys + p), low);
    store_lanes(ranks + p, Keys{});
  }
  NarrowKey current = fold_lanes<NarrowKey, lanes>(low, lanes_least);
  auto remaining = static_cast<std::uint32_t>(n);
  for (std::size_t d = 0; d < limit; ++d) {
    Keys next = none, above = {};
    for (std::size_t p = 0; p < n; p += lanes) {
      const auto key = load_lanes<Keys>(keys + p);
      const Keys larger = key > current;
      store_lanes(ranks + p, load_lanes<Keys>(ranks + p) - larger);
      above -= larger;
      next = lanes_least(larger ? key : none, next);
    }
    const auto left = static_cast<std::uint32_t>(fold_lanes<NarrowKey, lanes>(above, lanes_sum));
    distinct[d] = current;
    counts[d] = remaining - left;
    remaining = left;
    current = fold_lanes<NarrowKey, lanes>(next, lanes_least);
    if (current == highest) return d + 1;
  }
  return 0;
}
inline std::size_t rank_passes(const NarrowKey* keys, std::size_t n, std::size_t limit,
                               std::uint32_t* ranks, NarrowKey* distinct, std::uint32_t* counts) {
  return multiversion<rank_passes_body>(keys, n, limit, ranks, distinct, counts);
}

}  // namespace detail

// Finds the sorted distinct values of some keys, and the rank of each key among these values.
template <class Key>
class Ranker {
 public:
  std::vector<Key> distinct;          // as many are valid as `rank` returned
  std::vector<std::uint32_t> counts;  // the number of keys of each value

  std::size_t rank(const Key* keys, std::size_t n, std::uint32_t* ranks) {
    if (n == 0) return 0;
    const std::size_t padded = (n + detail::lanes - 1) / detail::lanes * detail::lanes;
    if (distinct.size() < padded) {
      distinct.resize(padded);
      counts.resize(padded);
    }
    if (n <= 16 * block) {
      const std::size_t count = rank_padded(keys, n, n <= block ? block : max_passes, ranks);
      if (count > 0) return count;
    }
    return rank_by_blocks(keys, n, ranks);
  }

 private:
  static constexpr std::size_t block = 64, max_passes = 24;

  std::size_t rank_padded(const Key* keys, std::size_t n, std::size_t limit, std::uint32_t* ranks) {
    const std::size_t extra = (detail::lanes - n % detail::lanes) % detail::lanes;
    if (extra == 0)
      return detail::rank_passes(keys, n, limit, ranks, distinct.data(), counts.data());
    padded_keys_.assign(keys, keys + n);
    padded_keys_.resize(n + extra, keys[n - 1]);
    padded_ranks_.resize(n + extra);
    const std::size_t count =
        detail::rank_passes(padded_keys_.data(), n + extra, limit, padded_ranks_.data(),
                            distinct.data(), counts.data());
    if (count == 0) return 0;
    std::copy_n(padded_ranks_.data(), n, ranks);
    counts[ranks[n - 1]] -= static_cast<std::uint32_t>(extra);
    return count;
  }

  // Ranks many keys: ranks each block alone, sorts the union of the distinct keys of all blocks,
  // and translates the ranks.
  std::size_t rank_by_blocks(const Key* keys, std::size_t n, std::uint32_t* ranks) {
    const std::size_t blocks = (n + block - 1) / block;
    starts_.assign(1, 0);
    all_.clear();
    all_counts_.clear();
    for (std::size_t i = 0; i < blocks; ++i) {
      const std::size_t first = i * block, size = std::min(block, n - first);
      const std::size_t count = rank_padded(keys + first, size, block, ranks + first);
      all_.insert(all_.end(), distinct.begin(), distinct.begin() + std::ptrdiff_t(count));
      all_counts_.insert(all_counts_.end(), counts.begin(), counts.begin() + std::ptrdiff_t(count));
      starts_.push_back(all_.size());
    }
    merged_ = all_;
    std::sort(merged_.begin(), merged_.end());
    merged_.erase(std::unique(merged_.begin(), merged_.end()), merged_.end());
    std::fill_n(counts.begin(), merged_.size(), 0u);
    translation_.resize(all_.size());
    for (std::size_t i = 0; i < blocks; ++i) {
      auto at = merged_.begin();
      for (std::size_t j = starts_[i]; j < starts_[i + 1]; ++j) {
        at = std::lower_bound(at, merged_.end(), all_[j]);
        translation_[j] = static_cast<std::uint32_t>(at - merged_.begin());
        counts[translation_[j]] += all_counts_[j];
      }
      const std::size_t first = i * block, size = std::min(block, n - first);
      for (std::size_t p = first; p < first + size; ++p)
        ranks[p] = translation_[starts_[i] + ranks[p]];
    }
    std::copy(merged_.begin(), merged_.end(), distinct.begin());
    return merged_.size();
  }

  std::vector<std::size_t> starts_;
  std::vector<Key> padded_keys_, all_, merged_;
  std::vector<std::uint32_t> padded_ranks_, all_counts_, translation_;
};

}  // namespace bilateral
