// Stores: how a kernel writes its outputs.
//
// A cached store first reads the line that it is going to overwrite, and drives another one out of the caches: for
// results that nobody reads before they have left the caches anyway, that is memory traffic for nothing.
// A streaming store goes straight to memory. It wants whole, aligned vectors: kernels stream where all outputs of a
// pass stand alike to a vector boundary, and use cached stores for the ends and everywhere else. The bytes are the
// same. A kernel that has streamed ends with a store fence, so that a release store publishes its bytes like any other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sdr::coding {

enum class Stores { Cached, Streaming };

// Blocks, inputs and outputs together, from which on results are streamed: what is about the size of a second-level
// cache does not stay there until it is sent.
inline constexpr std::size_t kStreamFrom = std::size_t{1} << 20;

inline Stores stores_for(std::size_t shards, std::size_t bytes) {
  return shards * bytes >= kStreamFrom ? Stores::Streaming : Stores::Cached;
}

// Bytes up to the vector boundary at which streaming into all of the outputs can begin; `bytes` when it never can.
inline std::size_t streaming_from(std::span<std::byte* const> out, std::size_t bytes, std::size_t vector) {
  const auto off = [vector](const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at) % vector; };
  for (const std::byte* one : out)
    if (off(one) != off(out.front())) return bytes;
  const std::size_t head = (vector - off(out.front())) % vector;
  return head < bytes ? head : bytes;
}

}  // namespace sdr::coding
