#include "sdk/table_geometry.hpp"

#include <fmt/format.h>

#include <bit>
#include <string>
#include <utility>

namespace sdr::sdk {

Result<core::TableGeometry> table_geometry(const QueuePairOptions& options, std::uint32_t mtu) {
  const auto invalid = [](std::string message) { return Error{ErrorCode::InvalidArgument, std::move(message)}; };
  const core::ImmediateLayout layout{options.message_id_bits, options.packet_offset_bits, options.user_bits};
  if (!layout.valid())
    return invalid(
        fmt::format("immediate split {}+{}+{} is not valid: message id 1 to 16 bits, user 0, 1, 2, 4 or 8 bits, "
                    "32 in all",
                    layout.message_id_bits, layout.packet_offset_bits, layout.user_bits));
  if (!std::has_single_bit(options.packets_per_chunk) || options.packets_per_chunk > layout.max_packets())
    return invalid(fmt::format("{} packets per chunk is not a power of two from 1 to {}", options.packets_per_chunk,
                               layout.max_packets()));
  if (!std::has_single_bit(options.slots) || options.slots > layout.max_slots())
    return invalid(fmt::format("{} message slots is not a power of two from 1 to {}, what {} message id bits can name",
                               options.slots, layout.max_slots(), layout.message_id_bits));
  if (options.generations < 2)
    return invalid(
        fmt::format("{} generations cannot tell a late packet from a current one: at least 2", options.generations));
  if (options.channels == 0) return invalid("a QP needs at least 1 channel, not 0");
  const std::uint64_t chunk = std::uint64_t{mtu} * options.packets_per_chunk;
  if (chunk > UINT32_MAX)
    return invalid(fmt::format("a chunk of {} packets of {} bytes is {} bytes, more than {}", options.packets_per_chunk,
                               mtu, chunk, UINT32_MAX));
  const std::uint64_t chunks = options.max_message.count / chunk;
  if (chunks == 0)
    return invalid(fmt::format("largest message of {} bytes is smaller than one chunk of {} bytes",
                               options.max_message.count, chunk));
  const std::uint64_t packets = chunks * options.packets_per_chunk;
  if (packets > layout.max_packets())
    return invalid(
        fmt::format("largest message of {} bytes is {} packets of {} bytes; {} packet offset bits address {}",
                    options.max_message.count, packets, mtu, layout.packet_offset_bits, layout.max_packets()));
  return core::TableGeometry{
      .layout = layout,
      .slots = options.slots,
      .packets_per_slot = static_cast<std::uint32_t>(packets),
      .log_packets_per_chunk = static_cast<std::uint8_t>(std::countr_zero(options.packets_per_chunk))};
}

}  // namespace sdr::sdk
