// Implements the devices of sdr.h and the memory regions of sdr_mr.h.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "capi/call.hpp"
#include "capi/objects.hpp"

namespace {

using sdr::Error;
using sdr::ErrorCode;
using sdr::Result;

constexpr std::uint32_t kMostChannels = UINT8_MAX;
constexpr std::uint32_t kMostLogQps = 16;

Result<void> check(const sdr_dev_attr& attributes) {
  if (attributes.num_channels < 1 || attributes.num_channels > kMostChannels)
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("num_channels {} is not from 1 to {}", attributes.num_channels, kMostChannels)};
  if (attributes.log_max_qps > kMostLogQps)
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("log_max_qps {} is more than {}", attributes.log_max_qps, kMostLogQps)};
  return {};
}

}  // namespace

struct sdr_context* sdr_context_create(const char* dev_name, struct sdr_dev_attr* attr) {
  return sdr::capi::make<sdr_context>("sdr_context_create", [&]() -> Result<std::unique_ptr<sdr_context>> {
    if (auto given = sdr::capi::require({{"attr", attr}}); !given) return given.error();
    if (auto fits = check(*attr); !fits) return fits.error();
    const auto environment = sdr::capi::Environment::of_process();
    if (!environment) return environment.error();
    const std::string_view name = dev_name == nullptr || *dev_name == '\0' ? "udp" : dev_name;
    auto device = sdr::open_device(name, {.link = environment->link});
    if (!device) return device.error();
    // A worker for each agent that there may be; the pool takes no more than there are cores.
    const unsigned agents = (attr->num_channels + 1) << attr->log_max_qps;
    return std::make_unique<sdr_context>(std::move(device).value(), *attr, agents);
  });
}

int sdr_context_destroy(struct sdr_context* context) {
  return sdr::capi::answer("sdr_context_destroy", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"context", context}}); !given) return given;
    const std::uint32_t queue_pairs = context->open_queue_pairs.load(std::memory_order_acquire);
    const std::size_t regions = context->regions.count();
    if (queue_pairs != 0 || regions != 0)
      return Error{
          ErrorCode::InvalidArgument,
          fmt::format("the context still has {} QPs and {} memory regions; destroy them first", queue_pairs, regions)};
    delete context;
    return {};
  });
}

struct sdr_mr* sdr_mr_reg(struct sdr_context* context, void* addr, size_t length, enum sdr_access_flags access) {
  return sdr::capi::make<sdr_mr>("sdr_mr_reg", [&]() -> Result<std::unique_ptr<sdr_mr>> {
    if (auto given = sdr::capi::require({{"context", context}, {"addr", addr}}); !given) return given.error();
    if (access != SDR_ACCESS_REMOTE_WRITE)
      return Error{ErrorCode::InvalidArgument,
                   fmt::format("access {} is not SDR_ACCESS_REMOTE_WRITE", static_cast<int>(access))};
    auto region = std::make_unique<sdr_mr>();
    const auto lkey = context->regions.add({static_cast<std::byte*>(addr), length});
    if (!lkey) return lkey.error();
    *region = {.context = context, .lkey = *lkey};
    return region;
  });
}

int sdr_mr_dereg(struct sdr_mr* mr) {
  return sdr::capi::answer("sdr_mr_dereg", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"mr", mr}}); !given) return given;
    mr->context->regions.remove(mr->lkey);
    delete mr;
    return {};
  });
}

int sdr_mr_lkey_get(struct sdr_mr* mr, uint32_t* lkey) {
  return sdr::capi::answer("sdr_mr_lkey_get", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"mr", mr}, {"lkey", lkey}}); !given) return given;
    *lkey = mr->lkey;
    return {};
  });
}

int sdr_mr_rkey_get(struct sdr_mr* mr, uint32_t* rkey) {
  return sdr::capi::answer("sdr_mr_rkey_get", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"mr", mr}, {"rkey", rkey}}); !given) return given;
    *rkey = mr->lkey;
    return {};
  });
}
