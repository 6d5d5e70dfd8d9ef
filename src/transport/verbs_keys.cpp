#include "transport/verbs_keys.hpp"

#include <fmt/core.h>

#include <cerrno>

namespace sdr::transport {
namespace {

// A bind takes a NIC a few microseconds. Looks at a completion queue cost no less than some nanoseconds each, so this
// many are far beyond that, and still an end.
constexpr int kMostLooks = 20'000'000;

}  // namespace

Result<std::unique_ptr<VerbsWindowBinder>> VerbsWindowBinder::make(const VerbsPort& port, const VerbsGid& own) {
  std::unique_ptr<VerbsWindowBinder> made(new VerbsWindowBinder);
  made->device_ = port.name();
  made->completions_.reset(ibv_create_cq(port.context(), 4, nullptr, nullptr, 0));
  if (!made->completions_) {
    return verbs::verbs_error(fmt::format("no completion queue for windows on RDMA device {}", port.name()), errno);
  }
  auto queue_pair = UcQueuePair::make(port, made->completions_.get(), made->completions_.get(), {.sends = 4});
  if (!queue_pair) return queue_pair.error();
  made->queue_pair_ = std::move(queue_pair).value();
  if (Result<void> connected = made->queue_pair_->connect(port, {.own = own, .peer = own}, made->queue_pair_->number());
      !connected) {
    return connected.error();
  }
  return made;
}

Result<void> VerbsWindowBinder::bind(ibv_mw& window, ibv_mr& region, std::uint64_t address, std::uint64_t length) {
  ibv_mw_bind bind{};
  bind.wr_id = ++binds_;
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_info = {.mr = &region,
                    .addr = address,
                    .length = length,
                    .mw_access_flags = length == 0 ? 0U : static_cast<unsigned>(IBV_ACCESS_REMOTE_WRITE)};
  const auto failed = [&](const char* reason) {
    return Error{ErrorCode::System, fmt::format("a memory window cannot be bound to {} bytes on RDMA device {}: {}",
                                                length, device_, reason)};
  };
  if (ibv_bind_mw(queue_pair_->get(), &window, &bind) != 0) return failed("the request was refused");
  for (int look = 0; look < kMostLooks; ++look) {
    ibv_wc done{};
    const int got = ibv_poll_cq(completions_.get(), 1, &done);
    if (got < 0) return failed("its completion queue is broken");
    if (got == 0 || done.wr_id != binds_) continue;
    if (done.status == IBV_WC_SUCCESS) return {};
    return failed(ibv_wc_status_str(done.status));
  }
  return failed("it does not complete");
}

Result<std::unique_ptr<VerbsReceiveKeys>> VerbsReceiveKeys::make(std::shared_ptr<VerbsPort> port,
                                                                 std::shared_ptr<VerbsMemory> memory,
                                                                 std::uint32_t slots, VerbsKeys keys,
                                                                 const VerbsGid& own) {
  const VerbsPort& on = *port;
  std::unique_ptr<VerbsReceiveKeys> made(new VerbsReceiveKeys(std::move(port), std::move(memory), slots));
  if (keys != VerbsKeys::Window) return made;
  for (Key& key : made->keys_) {
    if (Result<void> allocated = made->allocate_window(key); !allocated) return allocated.error();
  }
  auto binder = VerbsWindowBinder::make(on, own);
  if (!binder) return binder.error();
  made->binder_ = std::move(binder).value();
  return made;
}

Result<void> VerbsReceiveKeys::allocate_window(Key& key) const {
  key.window.reset();
  key.window.reset(ibv_alloc_mw(port_->domain(), IBV_MW_TYPE_1));
  if (key.window) return {};
  return verbs::verbs_error(fmt::format("no memory window on RDMA device {} for each of {} slots; keys=region does "
                                        "without",
                                        port_->name(), keys_.size()),
                            errno);
}

Result<verbs_wire::Target> VerbsReceiveKeys::take(core::SlotIndex slot, std::span<std::byte> buffer) {
  Key& key = keys_[slot.value];
  if (buffer.empty()) return verbs_wire::Target{};
  if (key.window) {
    VerbsMemory::View view(*memory_);
    if (const VerbsRegion* within = view.find(buffer.data(), buffer.size())) {
      const std::uint64_t address = within->address_of(buffer.data());
      if (Result<void> bound = binder_->bind(*key.window, *within->region, address, buffer.size()); !bound)
        return bound.error();
      key.bound_to = within->region.get();
      return verbs_wire::Target{.rkey = key.window->rkey, .address = address, .length = buffer.size()};
    }
  }
  auto region = VerbsRegion::make(*port_, buffer, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (!region) return region.error();
  key.region = std::move(region).value();
  return verbs_wire::Target{.rkey = key.region.region->rkey, .address = key.region.iova, .length = buffer.size()};
}

void VerbsReceiveKeys::drop(core::SlotIndex slot) {
  Key& key = keys_[slot.value];
  key.region = {};
  if (key.bound_to == nullptr) return;
  // A window that is given back is as dead as one bound to nothing; only slower.
  if (!binder_->bind(*key.window, *key.bound_to, 0, 0)) (void)allocate_window(key);
  key.bound_to = nullptr;
}

}  // namespace sdr::transport
