// QpInfo: what one QueuePair tells the other before they connect, and the check that they fit (paper section 3.1).
//
// The application carries the encoded form. Fields that shape the packets must agree; a difference is an error that
// names the field and both values, at connect and not as a hang later.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/immediate.hpp"
#include "sdr/result.hpp"

namespace sdr::sdk {

inline constexpr std::uint32_t kProtocolVersion = 1;

struct QpInfo {
  std::uint32_t version = kProtocolVersion;
  std::uint32_t mtu = 0;
  std::uint32_t packets_per_chunk = 0;
  std::uint64_t max_message = 0;
  std::uint32_t slots = 0;
  std::uint32_t channels = 0;
  std::uint32_t generations = 0;
  core::ImmediateLayout layout;
  std::uint32_t receive_buffer = 0;      // of the endpoint, see EndpointFacts
  std::vector<std::byte> endpoint_info;  // opaque, of the transport

  [[nodiscard]] std::vector<std::byte> encode() const;
  static Result<QpInfo> decode(std::span<const std::byte> blob);
  // Size of the encoded form, for any info of an endpoint with `endpoint_bytes` of its own.
  static std::size_t encoded_size(std::size_t endpoint_bytes);
};

// Mismatch with the first field that differs.
Result<void> check_compatible(const QpInfo& local, const QpInfo& remote);

}  // namespace sdr::sdk
