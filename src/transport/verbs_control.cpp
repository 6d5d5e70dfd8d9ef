#include "transport/verbs_control.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>

#include "units/byte_codec.hpp"

namespace sdr::transport {
namespace {

constexpr std::uint64_t kLifeShift = 32;  // wr_id: life above, number of the buffer below

// Q_Keys with the highest bit set are the kernel's.
std::uint32_t qkey_of(std::uint64_t token) {
  return static_cast<std::uint32_t>(token ^ token >> 32) & 0x7FFFFFFF;
}

void count(std::atomic<std::uint64_t>& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

Result<std::unique_ptr<VerbsControl>> VerbsControl::make(const VerbsPort& port, std::uint64_t token,
                                                         VerbsEvents& events) {
  std::unique_ptr<VerbsControl> made(new VerbsControl(token, events));
  made->qkey_ = qkey_of(token);
  auto region = VerbsRegion::make(port, made->memory_, IBV_ACCESS_LOCAL_WRITE);
  if (!region) return region.error();
  made->region_ = std::move(region).value();
  made->sent_.reset(ibv_create_cq(port.context(), static_cast<int>(kSends), nullptr, nullptr, 0));
  if (!made->sent_) return verbs::verbs_error(fmt::format("no completion queue on RDMA device {}", port.name()), errno);
  auto received = WakingQueue::make(port, events, kReceives);
  if (!received) return received.error();
  made->received_ = std::move(received).value();
  ibv_qp_init_attr wanted{};
  wanted.send_cq = made->sent_.get();
  wanted.recv_cq = made->received_->get();
  wanted.qp_type = IBV_QPT_UD;
  wanted.cap = {
      .max_send_wr = kSends, .max_recv_wr = kReceives, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  made->queue_pair_.reset(ibv_create_qp(port.domain(), &wanted));
  if (!made->queue_pair_)
    return verbs::verbs_error(fmt::format("no unreliable datagram QP on RDMA device {}", port.name()), errno);
  return made;
}

Result<void> VerbsControl::connect(const VerbsPort& port, const VerbsPath& path, const Peer& peer) {
  peer_ = peer;
  if (Result<void> ready = to_ready(port); !ready) return ready;
  address_.reset();
  ibv_ah_attr attributes = path.address(port);
  address_.reset(ibv_create_ah(port.domain(), &attributes));
  if (!address_) {
    return verbs::verbs_error(
        fmt::format("RDMA device {} finds no way from {} to {} (can this address be reached from there?)", port.name(),
                    path.own.to_string(), path.peer.to_string()),
        errno);
  }
  failure_ = IBV_WC_SUCCESS;
  return {};
}

Result<void> VerbsControl::to_ready(const VerbsPort& port) {
  ibv_qp_attr attributes{};
  attributes.pkey_index = 0;
  attributes.port_num = port.number();
  attributes.qkey = qkey_;
  const auto move = [&](ibv_qp_state state, int mask) -> Result<void> {
    attributes.qp_state = state;
    const int failed = ibv_modify_qp(queue_pair_.get(), &attributes, mask);
    if (failed == 0) return {};
    return verbs::verbs_error(fmt::format("the control QP {} on RDMA device {} does not reach state {}", number(),
                                          port.name(), static_cast<int>(state)),
                              failed);
  };
  if (life_ != 0) {
    if (Result<void> moved = move(IBV_QPS_RESET, IBV_QP_STATE); !moved) return moved;
  }
  ++life_;
  finished_ = posted_;
  if (Result<void> moved = move(IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY); !moved)
    return moved;
  for (std::uint32_t i = 0; i < kReceives; ++i) post_receive(i);
  if (Result<void> moved = move(IBV_QPS_RTR, IBV_QP_STATE); !moved) return moved;
  return move(IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

void VerbsControl::post_receive(std::uint32_t buffer) {
  const std::span<std::byte> into = receive_buffer(buffer);
  ibv_sge part{.addr = region_.address_of(into.data()),
               .length = static_cast<std::uint32_t>(into.size()),
               .lkey = region_.region->lkey};
  ibv_recv_wr request{.wr_id = life_ << kLifeShift | buffer, .next = nullptr, .sg_list = &part, .num_sge = 1};
  ibv_recv_wr* refused = nullptr;
  if (ibv_post_recv(queue_pair_.get(), &request, &refused) != 0) fail(IBV_WC_GENERAL_ERR);
}

bool VerbsControl::send(std::span<const std::byte> datagram) {
  if (!address_ || failure_ != IBV_WC_SUCCESS || datagram.size() > kMaxControl) return false;
  reap_sends();
  if (posted_ - finished_ == kSends) return false;
  const std::span<std::byte> buffer = send_buffer(posted_);
  ByteWriter writer(buffer);
  writer.u64(peer_.token);
  writer.bytes(datagram);
  ibv_sge part{.addr = region_.address_of(buffer.data()),
               .length = static_cast<std::uint32_t>(writer.size()),
               .lkey = region_.region->lkey};
  ibv_send_wr request{};
  request.wr_id = life_ << kLifeShift;
  request.sg_list = &part;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.ud = {.ah = address_.get(), .remote_qpn = peer_.number, .remote_qkey = peer_.qkey};
  ibv_send_wr* refused = nullptr;
  count(calls_);
  if (ibv_post_send(queue_pair_.get(), &request, &refused) != 0) {
    fail(IBV_WC_GENERAL_ERR);
    return false;
  }
  ++posted_;
  return true;
}

void VerbsControl::reap_sends() {
  ibv_wc done{};
  while (ibv_poll_cq(sent_.get(), 1, &done) > 0) {
    if (done.wr_id >> kLifeShift != life_) continue;
    ++finished_;
    if (done.status != IBV_WC_SUCCESS) fail(done.status);
  }
}

std::optional<std::size_t> VerbsControl::receive(std::span<std::byte> into) {
  reap_sends();
  ibv_wc done{};
  while (ibv_poll_cq(received_->get(), 1, &done) > 0) {
    if (done.wr_id >> kLifeShift != life_) continue;
    if (done.status != IBV_WC_SUCCESS) {
      fail(done.status);
      continue;
    }
    const auto buffer = static_cast<std::uint32_t>(done.wr_id);
    const std::size_t size = done.byte_len;
    std::optional<std::size_t> copied;
    if (size < kGrh + verbs_wire::kControlHeader || size - kGrh - verbs_wire::kControlHeader > into.size()) {
      count(malformed_);
    } else {
      const std::span<std::byte> datagram = receive_buffer(buffer).subspan(kGrh, size - kGrh);
      if (ByteReader(datagram).u64() != token_) {
        count(wrong_token_);
      } else {
        copied = datagram.size() - verbs_wire::kControlHeader;
        if (*copied != 0) std::memcpy(into.data(), datagram.data() + verbs_wire::kControlHeader, *copied);
      }
    }
    post_receive(buffer);
    if (copied) return copied;
  }
  return std::nullopt;
}

void VerbsControl::fail(ibv_wc_status why) {
  if (failure_ == IBV_WC_SUCCESS) failure_ = why;
}

void VerbsControl::add_counters(EndpointCounters& sum) const {
  sum.dropped_wrong_token += wrong_token_.load(std::memory_order_relaxed);
  sum.dropped_malformed += malformed_.load(std::memory_order_relaxed);
  sum.send_calls += calls_.load(std::memory_order_relaxed);
}

}  // namespace sdr::transport
