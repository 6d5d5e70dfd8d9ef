#include "transport/verbs_queue_pair.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sdr::transport {

ibv_ah_attr VerbsPath::address(const VerbsPort& port) const {
  ibv_ah_attr attributes{};
  std::memcpy(attributes.grh.dgid.raw, peer.bytes.data(), peer.bytes.size());
  attributes.grh.sgid_index = static_cast<std::uint8_t>(own.index);
  attributes.grh.hop_limit = 64;
  attributes.is_global = 1;
  attributes.port_num = port.number();
  return attributes;
}

Result<std::unique_ptr<UcQueuePair>> UcQueuePair::make(const VerbsPort& port, ibv_cq* send, ibv_cq* receive,
                                                       const Depths& depths) {
  std::unique_ptr<UcQueuePair> made(new UcQueuePair);
  made->depths_ = depths;
  ibv_qp_init_attr wanted{};
  wanted.send_cq = send;
  wanted.recv_cq = receive;
  wanted.qp_type = IBV_QPT_UC;
  wanted.cap = {.max_send_wr = depths.sends,
                .max_recv_wr = depths.receives,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = depths.inline_bytes};
  made->qp_.reset(ibv_create_qp(port.domain(), &wanted));
  if (!made->qp_ && depths.inline_bytes != 0) {
    wanted.cap.max_inline_data = made->depths_.inline_bytes = 0;
    made->qp_.reset(ibv_create_qp(port.domain(), &wanted));
  }
  if (!made->qp_) {
    return verbs::verbs_error(fmt::format("no unreliable connected QP of {} sends and {} receives on RDMA device {}",
                                          depths.sends, depths.receives, port.name()),
                              errno);
  }
  if (Result<void> init = made->to_init(port); !init) return init.error();
  return made;
}

Result<void> UcQueuePair::to_init(const VerbsPort& port) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.pkey_index = 0;
  attributes.port_num = port.number();
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  const int failed =
      ibv_modify_qp(get(), &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (failed == 0) return {};
  return verbs::verbs_error(fmt::format("QP {} on RDMA device {} does not become INIT", number(), port.name()), failed);
}

Result<void> UcQueuePair::connect(const VerbsPort& port, const VerbsPath& path, std::uint32_t peer_qpn) {
  if (!fresh_) {
    ibv_qp_attr reset{};
    reset.qp_state = IBV_QPS_RESET;
    if (const int failed = ibv_modify_qp(get(), &reset, IBV_QP_STATE); failed != 0) {
      return verbs::verbs_error(fmt::format("QP {} on RDMA device {} cannot be reset", number(), port.name()), failed);
    }
    if (Result<void> init = to_init(port); !init) return init;
  }
  fresh_ = false;
  ++life_;
  missing_ = 0;
  post_receives(depths_.receives);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.ah_attr = path.address(port);
  attributes.path_mtu = path.mtu;
  attributes.dest_qp_num = peer_qpn;
  if (const int failed = ibv_modify_qp(get(), &attributes,
                                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
      failed != 0) {
    return verbs::verbs_error(
        fmt::format("QP {} on RDMA device {} cannot be connected from {} to {} (can this address be reached from "
                    "there?)",
                    number(), port.name(), path.own.to_string(), path.peer.to_string()),
        failed);
  }
  attributes.qp_state = IBV_QPS_RTS;
  if (const int failed = ibv_modify_qp(get(), &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN); failed != 0) {
    return verbs::verbs_error(fmt::format("QP {} on RDMA device {} does not become RTS", number(), port.name()),
                              failed);
  }
  failure_.store(IBV_WC_SUCCESS, std::memory_order_release);
  return {};
}

void UcQueuePair::refill() {
  if (missing_ < kRefill || failed()) return;
  post_receives(missing_);
  missing_ = 0;
}

void UcQueuePair::post_receives(std::uint32_t count) {
  std::array<ibv_recv_wr, kRefill> requests;
  while (count > 0) {
    const std::uint32_t now = std::min(count, kRefill);
    for (std::uint32_t i = 0; i < now; ++i) {
      requests[i] = {
          .wr_id = life_, .next = i + 1 < now ? &requests[i + 1] : nullptr, .sg_list = nullptr, .num_sge = 0};
    }
    ibv_recv_wr* refused = nullptr;
    if (const int failed = ibv_post_recv(get(), requests.data(), &refused); failed != 0) {
      // The queue holds what it is made for; anything else is a QP that no longer works.
      fail(IBV_WC_GENERAL_ERR);
      return;
    }
    count -= now;
  }
}

void UcQueuePair::fail(ibv_wc_status why) {
  int none = IBV_WC_SUCCESS;
  failure_.compare_exchange_strong(none, why, std::memory_order_acq_rel);  // the first reason is the reason
  if (depths_.alarm != nullptr) depths_.alarm->store(true, std::memory_order_release);
}

}  // namespace sdr::transport
