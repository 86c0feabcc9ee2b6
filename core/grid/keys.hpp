// Pack the range coordinates of a vertex into one integer key, and rank keys.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
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
  return widest_version<rank_passes_body>(keys, n, limit, ranks, distinct, counts);
}

BILATERAL_INLINE std::uint64_t hash(std::uint64_t key) { return key * 0x9e3779b97f4a7c15u; }
inline std::uint64_t hash(WideKey key) {
  return hash(static_cast<std::uint64_t>(key) ^ hash(static_cast<std::uint64_t>(key >> 64)));
}
inline std::uint64_t hash(NarrowKey key) { return hash(static_cast<std::uint64_t>(key)); }

}  // namespace detail

// Finds the sorted distinct values of some keys, and the rank of each key among these values.
template <class Key>
class Ranker {
 public:
  std::vector<Key> distinct;          // as many are valid as `rank` returned
  std::vector<std::uint32_t> counts;  // the number of keys of each value

  std::size_t rank(const Key* keys, std::size_t n, std::uint32_t* ranks) {
    if (n == 0) return 0;
    if (n <= block) return rank_padded(keys, n, block, ranks);
    if (n <= 16 * block)
      if (const std::size_t count = rank_padded(keys, n, few, ranks)) return count;
    return rank_by_table(keys, n, ranks);
  }

 private:
  static constexpr std::size_t block = 64, few = 8, smallest_table = 128;
  static constexpr std::uint32_t free = ~std::uint32_t{0};

  struct Entry {
    Key key;
    std::uint32_t index;
  };

  void reserve(std::size_t size) {
    if (distinct.size() >= size) return;
    distinct.resize(size);
    counts.resize(size);
  }

  // Ranks keys of at most `limit` distinct values; returns 0 if there are more.
  std::size_t rank_padded(const Key* keys, std::size_t n, std::size_t limit, std::uint32_t* ranks) {
    reserve(limit);
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

  // Ranks many keys: numbers their distinct values in the order of their first appearance, by a
  // hash table that grows with the number of values, then sorts the values and translates.
  std::size_t rank_by_table(const Key* keys, std::size_t n, std::uint32_t* ranks) {
    entries_.clear();
    make_table(std::min(table_.size(), std::bit_ceil(2 * n)));
    for (std::size_t p = 0; p < n;) {
      const Key key = keys[p];
      const std::uint32_t index = index_of(key);
      do ranks[p++] = index;
      while (p < n && keys[p] == key);
    }
    sort_entries();
    const std::size_t count = entries_.size();
    reserve(count);
    translation_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      distinct[i] = entries_[i].key;
      counts[i] = 0;
      translation_[entries_[i].index] = static_cast<std::uint32_t>(i);
    }
    for (std::size_t p = 0; p < n; ++p) ++counts[ranks[p] = translation_[ranks[p]]];
    return count;
  }

  // Sorts the entries: by digits of 8 bits if there are enough to fill the counters.
  void sort_entries() {
    constexpr std::size_t digits = sizeof(NarrowKey), values = 256, enough = 64;
    if (sizeof(Key) != sizeof(NarrowKey) || entries_.size() < enough) {
      std::sort(entries_.begin(), entries_.end(),
                [](const Entry& a, const Entry& b) { return a.key < b.key; });
      return;
    }
    std::array<std::array<std::uint32_t, values>, digits> counters{};
    const auto digit = [](const Entry& entry, std::size_t d) {
      return static_cast<std::size_t>(entry.key >> (8 * d)) % values;
    };
    for (const Entry& entry : entries_)
      for (std::size_t d = 0; d < digits; ++d) ++counters[d][digit(entry, d)];
    sorted_.resize(entries_.size());
    for (std::size_t d = 0; d < digits; ++d) {
      auto& counter = counters[d];
      if (counter[digit(entries_[0], d)] == entries_.size()) continue;  // all have this digit
      std::uint32_t first = 0;
      for (std::uint32_t& count : counter) first += std::exchange(count, first);
      for (const Entry& entry : entries_) sorted_[counter[digit(entry, d)]++] = entry;
      entries_.swap(sorted_);
    }
  }

  // The number of a key's value; a new value gets the next number.
  std::uint32_t index_of(Key key) {
    std::size_t slot = detail::hash(key) >> shift_;
    for (; table_[slot] != free; slot = (slot + 1) & (slots_ - 1))
      if (entries_[table_[slot]].key == key) return table_[slot];
    const auto index = static_cast<std::uint32_t>(entries_.size());
    table_[slot] = index;
    entries_.push_back({key, index});
    if (2 * entries_.size() > slots_) make_table(2 * slots_);
    return index;
  }

  // Makes a table of a power of two slots, with all entries.
  void make_table(std::size_t slots) {
    slots_ = std::max(slots, smallest_table);
    shift_ = 64 - std::countr_zero(slots_);
    if (table_.size() < slots_) table_.resize(slots_);
    std::fill_n(table_.begin(), slots_, free);
    for (const Entry& entry : entries_) {
      std::size_t slot = detail::hash(entry.key) >> shift_;
      while (table_[slot] != free) slot = (slot + 1) & (slots_ - 1);
      table_[slot] = entry.index;
    }
  }

  std::vector<std::uint32_t> table_, translation_;
  std::size_t slots_ = 0;
  int shift_ = 0;
  std::vector<Entry> entries_, sorted_;
  std::vector<Key> padded_keys_;
  std::vector<std::uint32_t> padded_ranks_;
};

}  // namespace bilateral
