// Implements the queue pairs of sdr.h: attributes, exchange, connect, destroy.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "capi/call.hpp"
#include "capi/objects.hpp"
#include "runtime/entropy.hpp"
#include "units/byte_codec.hpp"

namespace {

using sdr::Error;
using sdr::ErrorCode;
using sdr::Result;

// One size for all QPs: the two ends of an exchange with different attributes (or address families) still read as many
// bytes as the other wrote, and connect can then say what differs. Room for 255 channels.
constexpr std::size_t kInfoBytes = 1024;
constexpr std::uint32_t kInfoMagic = 0x53445243;  // "SDRC"
constexpr std::size_t kInfoHeader = 4 + 2;        // magic, length of the QueuePair's info, which follows

constexpr std::uint32_t kMostLogMessages = 10;  // the message id of the default immediate split
constexpr std::uint32_t kMostLogMessageBytes = 32;

template <typename... Args>
Error invalid(fmt::format_string<Args...> format, Args&&... args) {
  return {ErrorCode::InvalidArgument, fmt::format(format, std::forward<Args>(args)...)};
}

// Attributes of the C API as options of a QueuePair. What they have in common is checked there.
Result<sdr::QueuePairOptions> options_of(const sdr_qp_attr& attr, const sdr_dev_attr& device,
                                         const sdr::capi::Environment& environment) {
  const auto mtu_value = static_cast<std::uint32_t>(attr.mtu);
  if (mtu_value > SDR_MTU_4096) return invalid("mtu {} is none of SDR_MTU_64 (0) to SDR_MTU_4096 (6)", mtu_value);
  const std::uint64_t mtu = std::uint64_t{64} << mtu_value;
  if (attr.max_log_num_msgs > kMostLogMessages)
    return invalid("max_log_num_msgs {} is more than {}", attr.max_log_num_msgs, kMostLogMessages);
  if (attr.max_in_flight_log_bytes < attr.max_log_num_msgs)
    return invalid("max_in_flight_log_bytes {} is less than max_log_num_msgs {}: messages of less than a byte",
                   attr.max_in_flight_log_bytes, attr.max_log_num_msgs);
  const std::size_t log_message = attr.max_in_flight_log_bytes - attr.max_log_num_msgs;
  if (log_message > kMostLogMessageBytes)
    return invalid("max_in_flight_log_bytes {} and max_log_num_msgs {} make messages of 2^{} bytes, more than 2^{}",
                   attr.max_in_flight_log_bytes, attr.max_log_num_msgs, log_message, kMostLogMessageBytes);
  const std::uint32_t log_chunk = attr.bitmap_chunk_size_log_bytes;
  if (log_chunk > kMostLogMessageBytes - 1 || std::uint64_t{1} << log_chunk < mtu)
    return invalid("chunk size 2^{} is not a power-of-two multiple of the MTU {}", log_chunk, mtu);
  if (log_chunk > log_message)
    return invalid("chunk size 2^{} is larger than the largest message, 2^{} bytes", log_chunk, log_message);
  if (attr.send_enable == 0 && attr.recv_enable == 0)
    return invalid("send_enable and recv_enable are both 0: this QP could do nothing");
  sdr::QueuePairOptions options;
  options.mtu = sdr::Bytes{mtu};
  options.packets_per_chunk = static_cast<std::uint32_t>((std::uint64_t{1} << log_chunk) / mtu);
  options.max_message = sdr::Bytes{std::uint64_t{1} << log_message};
  options.slots = 1U << attr.max_log_num_msgs;
  options.channels = static_cast<std::uint8_t>(device.num_channels);
  if (environment.generations) options.generations = *environment.generations;
  options.rate = sdr::Bandwidth{attr.rate_limit * 1e6};
  options.rate_counts_overhead = false;
  options.token = sdr::runtime::random_u64();
  return options;
}

// Takes one of the QPs that a context may have; gives it back unless keep() was called.
class QueuePairPlace {
 public:
  explicit QueuePairPlace(sdr_context& context) : context_(context) {
    context_.open_queue_pairs.fetch_add(1, std::memory_order_acq_rel);
  }
  ~QueuePairPlace() {
    if (!kept_) context_.open_queue_pairs.fetch_sub(1, std::memory_order_acq_rel);
  }
  QueuePairPlace(const QueuePairPlace&) = delete;
  QueuePairPlace& operator=(const QueuePairPlace&) = delete;

  [[nodiscard]] Result<void> check() const {
    const std::uint32_t limit = 1U << context_.attributes.log_max_qps;
    if (context_.open_queue_pairs.load(std::memory_order_acquire) <= limit) return {};
    return invalid("the context has its {} QPs already (log_max_qps {})", limit, context_.attributes.log_max_qps);
  }
  void keep() { kept_ = true; }

 private:
  sdr_context& context_;
  bool kept_ = false;
};

void report(sdr_qp& qp) {
  const sdr::QueuePairCounters c = qp.driven.use([](sdr::QueuePair& queue_pair) { return queue_pair.counters(); });
  std::string text;
  if (qp.environment.report_send)
    text += fmt::format("libsdr: QP sent: {} packets, {} payload bytes, {} system calls, {} lost by an emulated link\n",
                        c.packets_sent, c.payload_bytes_sent, c.send_calls, c.link_drops);
  if (qp.environment.report_receive)
    text += fmt::format(
        "libsdr: QP received: {} packets, {} duplicate, {} late, {} out of range, {} rejected, {} dropped by this "
        "host, "
        "{} system calls\n",
        c.packets_received, c.duplicate_packets, c.late_packets, c.out_of_range_packets, c.rejected_packets,
        c.host_drops, c.receive_calls);
  if (const auto& offload = qp.environment.offload) {
    const auto failure = qp.driven.use([](sdr::QueuePair& queue_pair) { return queue_pair.offload_failure(); });
    text += fmt::format("libsdr: QP's device: {}, {} threads, {}{}{}; {}\n", sdr::to_string(offload->device),
                        std::min<std::uint32_t>(offload->threads, qp.geometry.channels),
                        offload->receive ? "receives" : "", offload->receive && offload->send ? " and " : "",
                        offload->send ? "sends" : "", failure ? "left: " + failure->message : "worked to the end");
  }
  std::fputs(text.c_str(), stderr);
}

}  // namespace

struct sdr_qp* sdr_qp_create(struct sdr_context* context, struct sdr_qp_attr* attr) {
  return sdr::capi::make<sdr_qp>("sdr_qp_create", [&]() -> Result<std::unique_ptr<sdr_qp>> {
    if (auto given = sdr::capi::require({{"context", context}, {"attr", attr}}); !given) return given.error();
    const auto environment = sdr::capi::Environment::of_process();
    if (!environment) return environment.error();
    auto options = options_of(*attr, context->attributes, *environment);
    if (!options) return options.error();
    if (environment->offload) {
      auto offload = sdr::open_offload(*environment->offload);
      if (!offload) return offload.error();
      options->offload = std::move(offload).value();
    }
    QueuePairPlace place(*context);
    if (auto free = place.check(); !free) return free.error();
    auto queue_pair = sdr::QueuePair::create(context->device, *options);
    if (!queue_pair) return queue_pair.error();
    auto qp = std::make_unique<sdr_qp>(*context, *attr, *environment, std::move(queue_pair).value());
    place.keep();
    return qp;
  });
}

int sdr_qp_destroy(struct sdr_qp* qp) {
  return sdr::capi::answer("sdr_qp_destroy", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"qp", qp}}); !given) return given;
    if (qp->environment.report_send || qp->environment.report_receive) report(*qp);
    sdr_context* context = qp->context;
    delete qp;
    context->open_queue_pairs.fetch_sub(1, std::memory_order_acq_rel);
    return {};
  });
}

int sdr_qp_info_size_get(struct sdr_qp* qp, size_t* size) {
  return sdr::capi::answer("sdr_qp_info_size_get", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"qp", qp}, {"size", size}}); !given) return given;
    *size = kInfoBytes;
    return {};
  });
}

int sdr_qp_info_get(struct sdr_qp* qp, void* info) {
  return sdr::capi::answer("sdr_qp_info_get", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"qp", qp}, {"info", info}}); !given) return given;
    const auto blob = qp->driven.use([](sdr::QueuePair& queue_pair) { return queue_pair.info(); });
    if (blob.size() > kInfoBytes - kInfoHeader)
      return invalid("the QP's info of {} bytes does not fit the {} bytes of the C API", blob.size(),
                     kInfoBytes - kInfoHeader);
    std::array<std::byte, kInfoBytes> out{};
    sdr::ByteWriter writer(out);
    writer.u32(kInfoMagic);
    writer.u16(static_cast<std::uint16_t>(blob.size()));
    writer.bytes(blob);
    std::memcpy(info, out.data(), out.size());
    return {};
  });
}

int sdr_qp_connect(struct sdr_qp* qp, void* remote_info) {
  return sdr::capi::answer("sdr_qp_connect", [&]() -> Result<void> {
    if (auto given = sdr::capi::require({{"qp", qp}, {"remote_info", remote_info}}); !given) return given;
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(remote_info), kInfoBytes);
    sdr::ByteReader reader(bytes);
    const std::uint32_t magic = reader.u32();
    const std::uint16_t size = reader.u16();
    if (magic != kInfoMagic || size > kInfoBytes - kInfoHeader)
      return invalid("remote_info does not come from sdr_qp_info_get(): it begins with {:#010x}", magic);
    return qp->driven.connect(reader.bytes(size));
  });
}
