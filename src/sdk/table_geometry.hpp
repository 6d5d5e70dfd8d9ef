// What a QueuePair's options make of its message table.
#pragma once

#include <cstdint>

#include "core/message_table.hpp"
#include "sdr/queue_pair.hpp"
#include "sdr/result.hpp"

namespace sdr::sdk {

// The largest message that packets of `options.mtu` bytes can address.
inline Bytes addressable(const QueuePairOptions& options) {
  return {options.mtu.count << options.packet_offset_bits};
}

// InvalidArgument names the option, its value and the limit. `mtu`: from 64 on.
Result<core::TableGeometry> table_geometry(const QueuePairOptions& options, std::uint32_t mtu);

}  // namespace sdr::sdk
