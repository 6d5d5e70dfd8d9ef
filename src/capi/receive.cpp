// Implements the receive calls of sdr.h.
#include <atomic>
#include <bit>
#include <cstdint>

#include "capi/call.hpp"
#include "capi/objects.hpp"

namespace {

using sdr::Error;
using sdr::ErrorCode;
using sdr::QueuePair;
using sdr::Result;

static_assert(std::endian::native == std::endian::little, "the C API shows the bitmap's 64-bit words as bytes");

constexpr std::uint32_t kExpandBits = 64;

// The packets of a chunk of more than 64, folded: bit i for a 64th of the chunk, set when all of it has arrived.
Result<std::uint64_t> folded_packets(const QueuePair& queue_pair, sdr::RecvHandle receive, std::uint32_t chunk,
                                     std::uint32_t packets) {
  const std::uint32_t group = packets / kExpandBits;
  std::uint64_t folded = ~std::uint64_t{0};
  for (std::uint32_t from = 0; from < packets; from += kExpandBits) {
    const auto bits = queue_pair.chunk_packets(receive, chunk, from);
    if (!bits) return bits.error();
    for (std::uint64_t missing = ~*bits; missing != 0; missing &= missing - 1) {
      const auto packet = from + static_cast<std::uint32_t>(std::countr_zero(missing));
      folded &= ~(std::uint64_t{1} << (packet / group));
    }
  }
  return folded;
}

}  // namespace

int sdr_recv_post(struct sdr_qp* qp, struct sdr_recv_wr* wr, struct sdr_recv_handle** handle) {
  return sdr::capi::answer("sdr_recv_post", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"qp", qp}, {"wr", wr}, {"handle", handle}}); !given) return given;
    if (qp->attributes.recv_enable == 0)
      return Error{ErrorCode::InvalidArgument, "this QP was made with recv_enable 0"};
    const auto buffer = qp->context->regions.locate(wr->lkey, wr->address, wr->max_length);
    if (!buffer) return buffer.error();
    return qp->driven.use_and_wake([&](QueuePair& queue_pair) -> Result<void> {
      const auto posted = queue_pair.post_receive(*buffer);
      if (!posted) return posted.error();
      sdr_recv_handle& place = qp->receives[posted->number % qp->geometry.slots];
      place.receive = *posted;
      place.max_length = wr->max_length;
      *handle = &place;
      return {};
    });
  });
}

int sdr_recv_imm_get(struct sdr_recv_handle* handle, uint32_t* imm) {
  return sdr::capi::answer("sdr_recv_imm_get", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"handle", handle}, {"imm", imm}}); !given) return given;
    return handle->qp->driven.use([&](QueuePair& queue_pair) -> Result<void> {
      const auto value = queue_pair.user_immediate(handle->receive);
      if (!value) return value.error();
      *imm = *value;
      return {};
    });
  });
}

int sdr_recv_bitmap_get(struct sdr_recv_handle* handle, uint8_t** bitmap, size_t* size) {
  return sdr::capi::answer("sdr_recv_bitmap_get", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"handle", handle}, {"bitmap", bitmap}, {"size", size}}); !given) return given;
    return handle->qp->driven.use([&](QueuePair& queue_pair) -> Result<void> {
      const auto words = queue_pair.chunk_bitmap(handle->receive);
      if (!words) return words.error();
      const std::uint64_t chunk_bytes = handle->qp->geometry.chunk_bytes;
      const std::uint64_t chunks = (handle->max_length + chunk_bytes - 1) / chunk_bytes;
      // The published signature says uint8_t *, not const; the words are written by the workers alone.
      auto* live = const_cast<std::atomic<std::uint64_t>*>(words->data());
      *bitmap = reinterpret_cast<std::uint8_t*>(live);
      *size = static_cast<std::size_t>((chunks + 7) / 8);
      return {};
    });
  });
}

int sdr_recv_bitmap_chunk_expand(struct sdr_recv_handle* handle, uint32_t chunk, uint64_t* packets) {
  return sdr::capi::answer("sdr_recv_bitmap_chunk_expand", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"handle", handle}, {"packets", packets}}); !given) return given;
    return handle->qp->driven.use([&](QueuePair& queue_pair) -> Result<void> {
      const std::uint32_t per_chunk = handle->qp->geometry.packets_per_chunk;
      const auto bits = per_chunk <= kExpandBits ? queue_pair.chunk_packets(handle->receive, chunk)
                                                 : folded_packets(queue_pair, handle->receive, chunk, per_chunk);
      if (!bits) return bits.error();
      *packets = *bits;
      return {};
    });
  });
}

int sdr_recv_complete(struct sdr_recv_handle* handle) {
  return sdr::capi::answer("sdr_recv_complete", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"handle", handle}}); !given) return given;
    return handle->qp->driven.use([&](QueuePair& queue_pair) { return queue_pair.complete(handle->receive); });
  });
}
