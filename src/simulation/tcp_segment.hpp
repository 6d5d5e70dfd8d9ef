// What simulated TCP ends say to each other. Everything is counted in segments of one size from 0 on: the models need
// no bytes, no handshake and no end of a connection.
//
// Plain values.
#pragma once

#include <array>
#include <cstdint>

#include "sdr/units.hpp"

namespace sdr::simulation {

struct TcpData {
  std::uint64_t number = 0;
};

// Half open: begin is in it, end is not.
struct TcpRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct TcpAck {
  static constexpr std::size_t kBlocks = 3;  // as many as fit beside timestamps, RFC 2018

  std::uint64_t next = 0;  // all before it are there
  std::array<TcpRange, kBlocks> blocks;
  std::uint8_t block_count = 0;
  std::uint64_t marks = 0;  // segments that came with "congestion experienced", ever
};

}  // namespace sdr::simulation
