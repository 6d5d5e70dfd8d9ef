#include "transport/transport.hpp"

#include <fmt/core.h>

#include <string>
#include <utility>

namespace sdr::transport {

Result<void> check(const EndpointOptions& options, std::uint16_t max_payload) {
  const auto refused = [](std::string message) { return Error{ErrorCode::InvalidArgument, std::move(message)}; };
  const core::ImmediateLayout& layout = options.layout;
  if (!layout.valid()) {
    return refused(fmt::format("immediate split {}+{}+{} does not fill 32 bits with equal user fragments",
                               layout.message_id_bits, layout.packet_offset_bits, layout.user_bits));
  }
  if (options.payload < kMinPayload || options.payload > max_payload || options.payload % 8 != 0) {
    return refused(
        fmt::format("payload {} is not a multiple of 8 between {} and {}", options.payload, kMinPayload, max_payload));
  }
  if (options.slots == 0 || options.slots > layout.max_slots()) {
    return refused(fmt::format("{} slots: 1 to {} fit the {} bits of the message id", options.slots, layout.max_slots(),
                               layout.message_id_bits));
  }
  if (options.channels == 0) return refused("0 channels: at least 1 is needed");
  if (options.generations < 2)
    return refused(fmt::format("{} generations are not within 2 to 255", options.generations));
  return {};
}

}  // namespace sdr::transport
