// Implements the send calls of sdr.h, one shot and streaming.
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

#include "capi/call.hpp"
#include "capi/objects.hpp"

namespace {

using sdr::Error;
using sdr::ErrorCode;
using sdr::QueuePair;
using sdr::Result;

Result<void> check_sender(const sdr_qp& qp) {
  if (qp.attributes.send_enable == 0) return Error{ErrorCode::InvalidArgument, "this QP was made with send_enable 0"};
  return {};
}

// A C program may have written any number into the field: it is looked at as one before it counts as an opcode.
Result<std::optional<std::uint32_t>> user_immediate(const sdr_wr_opcode& field, std::uint32_t value) {
  std::underlying_type_t<sdr_wr_opcode> opcode;
  std::memcpy(&opcode, &field, sizeof opcode);
  if (opcode == SDR_WR_WRITE) return std::optional<std::uint32_t>();
  if (opcode == SDR_WR_WRITE_WITH_IMM) return std::optional<std::uint32_t>(value);
  return Error{ErrorCode::InvalidArgument,
               fmt::format("opcode {} is neither SDR_WR_WRITE (0) nor SDR_WR_WRITE_WITH_IMM (1)", opcode)};
}

Result<std::uint32_t> chunk_of(const sdr_qp& qp, std::uint64_t remote_offset) {
  const std::uint64_t chunks = qp.geometry.max_message / qp.geometry.chunk_bytes;
  if (remote_offset <= chunks) return static_cast<std::uint32_t>(remote_offset);
  return Error{ErrorCode::InvalidArgument,
               fmt::format("remote_offset {} is past the largest message of {} chunks", remote_offset, chunks)};
}

// Keeps what was started in its place among the QP's handles.
Result<void> keep(sdr_qp& qp, const Result<sdr::SendHandle>& started, sdr_send_handle** handle) {
  if (!started) return started.error();
  sdr_send_handle& place = qp.sends[started->number % qp.geometry.slots];
  place.send = *started;
  *handle = &place;
  return {};
}

}  // namespace

int sdr_send_post(struct sdr_qp* qp, struct sdr_send_wr* wr, struct sdr_send_handle** handle) {
  return sdr::capi::answer("sdr_send_post", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"qp", qp}, {"wr", wr}, {"handle", handle}}); !given) return given;
    if (auto may = check_sender(*qp); !may) return may;
    const auto immediate = user_immediate(wr->opcode, wr->imm_value);
    if (!immediate) return immediate.error();
    const auto chunk = chunk_of(*qp, wr->remote_offset);
    if (!chunk) return chunk.error();
    const auto bytes = qp->context->regions.locate(wr->lkey, wr->local_addr, wr->length);
    if (!bytes) return bytes.error();
    return qp->driven.use_and_wake(
        [&](QueuePair& queue_pair) { return keep(*qp, queue_pair.post_send(*bytes, *immediate, *chunk), handle); });
  });
}

int sdr_streaming_send_start(struct sdr_qp* qp, struct sdr_send_start_wr* wr, struct sdr_send_handle** handle) {
  return sdr::capi::answer("sdr_streaming_send_start", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"qp", qp}, {"wr", wr}, {"handle", handle}}); !given) return given;
    if (auto may = check_sender(*qp); !may) return may;
    const auto immediate = user_immediate(wr->opcode, wr->imm_value);
    if (!immediate) return immediate.error();
    return qp->driven.use_and_wake(
        [&](QueuePair& queue_pair) { return keep(*qp, queue_pair.start_stream(*immediate), handle); });
  });
}

int sdr_streaming_send_continue(struct sdr_send_handle* handle, struct sdr_send_continue_wr* wr) {
  return sdr::capi::answer("sdr_streaming_send_continue", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"handle", handle}, {"wr", wr}}); !given) return given;
    const auto chunk = chunk_of(*handle->qp, wr->remote_offset);
    if (!chunk) return chunk.error();
    const auto bytes = handle->qp->context->regions.locate(wr->lkey, wr->local_addr, wr->length);
    if (!bytes) return bytes.error();
    return handle->qp->driven.use_and_wake(
        [&](QueuePair& queue_pair) { return queue_pair.continue_stream(handle->send, *chunk, *bytes); });
  });
}

int sdr_streaming_send_end(struct sdr_send_handle* handle) {
  return sdr::capi::answer("sdr_streaming_send_end", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"handle", handle}}); !given) return given;
    return handle->qp->driven.use_and_wake([&](QueuePair& queue_pair) { return queue_pair.end_stream(handle->send); });
  });
}

int sdr_send_poll(struct sdr_send_handle* handle, int* completed, struct sdr_send_status* status) {
  return sdr::capi::answer("sdr_send_poll", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"handle", handle}, {"completed", completed}}); !given) return given;
    const bool sent = handle->qp->driven.use([&](QueuePair& queue_pair) { return queue_pair.sent(handle->send); });
    *completed = sent ? 1 : 0;
    if (status != nullptr) status->flags = 0;
    return {};
  });
}
