#include "coding/xor_code.hpp"

#include <array>
#include <cstring>

namespace sdr::coding {

bool XorCode::encode(std::span<const std::byte* const> data, std::span<std::byte* const> parity, ShardLength length,
                     unsigned first_parity) const {
  const Stores stores = stores_for(data.size() + parity.size(), length.full);
  for (std::size_t row = 0; row < parity.size(); ++row) {
    const Group group{first_parity + row, data.size(), nullptr};
    sum_up(group, data, parity[row], length, stores);
  }
  return true;
}

bool XorCode::decode(std::span<std::byte* const> data, const ShardSet& data_present,
                     std::span<const std::byte* const> parity, const ShardSet&, ShardLength length) const {
  const Stores stores = stores_for(data.size() + data.size() / m_, length.full);
  for (std::size_t missing = 0; missing < data.size(); ++missing) {
    if (data_present[missing]) continue;
    const Group group{missing % m_, missing, parity[missing % m_]};
    // The last shard may be short: it has nothing beyond its end.
    const bool short_one = missing + 1 == data.size();
    sum_up(group, data, data[missing], short_one ? ShardLength(length.last) : length, stores);
  }
  return true;
}

// Up to the end of the last data shard all of the group's shards count, beyond it all but that one.
void XorCode::sum_up(const Group& group, std::span<const std::byte* const> data, std::byte* into, ShardLength length,
                     Stores stores) const {
  const auto range = [&](std::size_t begin, std::size_t end, std::size_t shards) {
    if (begin == end) return;
    std::array<const std::byte*, kMaxShards + 1> sources;
    std::size_t count = 0;
    if (group.parity != nullptr) sources[count++] = group.parity + begin;
    for (std::size_t j = group.first; j < shards; j += m_)
      if (j != group.without) sources[count++] = data[j] + begin;
    if (count == 0) {  // a group that a short block has nothing of
      std::memset(into + begin, 0, end - begin);
      return;
    }
    sum_.apply({sources.data(), count}, into + begin, end - begin, stores);
  };
  range(0, length.last, data.size());
  range(length.last, length.full, data.size() - 1);
}

ShardSet XorCode::needed(const ShardSet& missing, const ShardSet& parity_present) const {
  ShardSet wanted = missing;
  for (std::size_t group = 0; group < m_; ++group) {
    if (!parity_present[group]) continue;
    for (std::size_t j = group; j < kMaxShards; j += m_) {
      if (!missing[j]) continue;
      wanted.reset(j);  // the parity restores this one, once the others of the group are here
      break;
    }
  }
  return wanted;
}

}  // namespace sdr::coding
