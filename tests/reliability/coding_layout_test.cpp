#include "reliability/coding_layout.hpp"

#include <gtest/gtest.h>

#include <set>

namespace sdr::reliability {
namespace {

using coding::CodeKind;
using coding::CodeShape;

TEST(CodingLayout, EveryChunkIsOneShard_AndSubmessagesAreEven) {
  for (const CodeKind kind : {CodeKind::Xor, CodeKind::ReedSolomon})
    for (const unsigned k : {1U, 2U, 5U, 32U})
      for (const unsigned m : {1U, 2U, 5U}) {
        if (kind == CodeKind::Xor && m > k) continue;
        for (std::uint32_t chunks = 0; chunks <= 200; ++chunks) {
          const CodingLayout layout(chunks, CodeShape{kind, k, m});
          EXPECT_EQ(layout.submessages, (chunks + k - 1) / k);
          std::uint32_t total = 0, least = UINT32_MAX, most = 0;
          for (std::uint32_t s = 0; s < layout.submessages; ++s) {
            const std::uint32_t shards = layout.data_shards(s);
            for (std::uint32_t j = 0; j < shards; ++j) {
              const std::uint32_t chunk = layout.chunk_at(s, j);
              ASSERT_LT(chunk, chunks);
              ASSERT_EQ(layout.submessage_of(chunk), s);
              ASSERT_EQ(layout.shard_of(chunk), j);
            }
            total += shards;
            least = std::min(least, shards);
            most = std::max(most, shards);
            EXPECT_EQ(layout.holds_last_chunk(s), shards > 0 && layout.chunk_at(s, shards - 1) == chunks - 1);
          }
          EXPECT_EQ(total, chunks);
          EXPECT_LE(most, k);
          if (chunks > 0) {
            EXPECT_LE(most - least, 1U);
            EXPECT_GE(layout.parity_each, 1U);
            EXPECT_EQ(layout.parity_each, kind == CodeKind::Xor ? std::min(m, most) : m);
          }
          EXPECT_EQ(layout.parity_chunks(), layout.submessages * layout.parity_each);
        }
      }
}

// A burst no longer than the submessages are many costs each of them one chunk at most.
TEST(CodingLayout, BurstOfLosses_IsSpread) {
  const CodingLayout layout(1000, CodeShape{CodeKind::ReedSolomon, 32, 8});
  for (std::uint32_t from = 0; from + layout.submessages <= 1000; ++from) {
    std::set<std::uint32_t> hit;
    for (std::uint32_t chunk = from; chunk < from + layout.submessages; ++chunk)
      hit.insert(layout.submessage_of(chunk));
    ASSERT_EQ(hit.size(), layout.submessages);
  }
}

}  // namespace
}  // namespace sdr::reliability
