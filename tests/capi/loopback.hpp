// Two connected QPs in one process over loopback, each with a context and threads of its own, for the tests of the C
// API. Waiting is for events and has a generous limit in wall time, so that a hang is a failure with a name.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "sdr/sdr.h"
#include "sdr/sdr_mr.h"

namespace sdr::capi {

inline constexpr std::chrono::seconds kPatience{60};

// Asks until `done()`; false when patience ran out.
template <typename Done>
bool eventually(Done done) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// Calls until it says something else than "not now".
template <typename Call>
int until_accepted(Call call) {
  int code = SDR_RETRY;
  eventually([&] { return (code = call()) != SDR_RETRY; });
  return code;
}

inline std::uint64_t address_of(const void* bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes);
}

inline sdr_qp_attr usual_attributes() {
  return {.bitmap_chunk_size_log_bytes = 12,
          .max_in_flight_log_bytes = 24,
          .max_log_num_msgs = 3,
          .mtu = SDR_MTU_1024,
          .send_enable = 1,
          .recv_enable = 1,
          .rate_limit = 0};
}

// Memory registered for as long as it lives.
class Memory {
 public:
  Memory(sdr_context* context, std::size_t size) : bytes_(size) {
    region_ = sdr_mr_reg(context, bytes_.data(), bytes_.size(), SDR_ACCESS_REMOTE_WRITE);
    EXPECT_NE(region_, nullptr) << sdr_last_error();
    if (region_ != nullptr) {
      EXPECT_EQ(sdr_mr_lkey_get(region_, &lkey_), SDR_SUCCESS);
    }
  }
  ~Memory() { EXPECT_EQ(sdr_mr_dereg(region_), SDR_SUCCESS); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::vector<std::uint8_t>& bytes() { return bytes_; }
  [[nodiscard]] std::uint32_t lkey() const { return lkey_; }
  void fill(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::uint8_t& byte : bytes_) byte = static_cast<std::uint8_t>(random());
  }
  [[nodiscard]] sdr_recv_wr receive(std::size_t from, std::size_t length) const {
    return {.max_length = static_cast<std::uint32_t>(length), .lkey = lkey_, .address = address_of(&bytes_[0] + from)};
  }
  [[nodiscard]] sdr_send_wr send(std::size_t from, std::size_t length, std::uint64_t chunk = 0) const {
    return {.opcode = SDR_WR_WRITE,
            .imm_value = 0,
            .length = static_cast<std::uint32_t>(length),
            .lkey = lkey_,
            .local_addr = address_of(&bytes_[0] + from),
            .remote_offset = chunk};
  }
  [[nodiscard]] sdr_send_continue_wr part(std::size_t from, std::size_t length, std::uint64_t chunk) const {
    return {.length = static_cast<std::uint32_t>(length),
            .local_addr = address_of(&bytes_[0] + from),
            .lkey = lkey_,
            .remote_offset = chunk};
  }

 private:
  std::vector<std::uint8_t> bytes_;
  sdr_mr* region_ = nullptr;
  std::uint32_t lkey_ = 0;
};

// The devices of the two ends: SDR_TEST_DEVICES, "rxa,rxb", or UDP over loopback.
inline std::string test_device(std::size_t which) {
  const char* given = std::getenv("SDR_TEST_DEVICES");
  if (given == nullptr) return "udp:127.0.0.1";
  const std::string names = given;
  const std::size_t comma = std::min(names.find(','), names.size() - 1);
  return which == 0 ? names.substr(0, comma) : names.substr(comma + 1);
}

// One end: a context and a QP.
struct End {
  End(const sdr_qp_attr& given, std::uint32_t channels, const std::string& name = test_device(0)) {
    sdr_dev_attr device = {.num_channels = channels, .log_max_qps = 2};
    context = sdr_context_create(name.c_str(), &device);
    EXPECT_NE(context, nullptr) << sdr_last_error();
    sdr_qp_attr attributes = given;
    qp = sdr_qp_create(context, &attributes);
    EXPECT_NE(qp, nullptr) << sdr_last_error();
  }
  ~End() {
    if (qp != nullptr) {
      EXPECT_EQ(sdr_qp_destroy(qp), SDR_SUCCESS);
    }
    EXPECT_EQ(sdr_context_destroy(context), SDR_SUCCESS) << sdr_last_error();
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  std::vector<std::uint8_t> info() const {
    std::size_t size = 0;
    EXPECT_EQ(sdr_qp_info_size_get(qp, &size), SDR_SUCCESS);
    std::vector<std::uint8_t> bytes(size);
    EXPECT_EQ(sdr_qp_info_get(qp, bytes.data()), SDR_SUCCESS) << sdr_last_error();
    return bytes;
  }
  void destroy_qp() {
    EXPECT_EQ(sdr_qp_destroy(qp), SDR_SUCCESS);
    qp = nullptr;
  }

  sdr_context* context = nullptr;
  sdr_qp* qp = nullptr;
};

struct Loopback {
  explicit Loopback(const sdr_qp_attr& attributes = usual_attributes(), std::uint32_t channels = 2)
      : a(attributes, channels, test_device(0)), b(attributes, channels, test_device(1)) {
    std::vector<std::uint8_t> of_a = a.info();
    std::vector<std::uint8_t> of_b = b.info();
    EXPECT_EQ(sdr_qp_connect(a.qp, of_b.data()), SDR_SUCCESS) << sdr_last_error();
    EXPECT_EQ(sdr_qp_connect(b.qp, of_a.data()), SDR_SUCCESS) << sdr_last_error();
  }
  End a;
  End b;
};

inline sdr_recv_handle* post(sdr_qp* qp, sdr_recv_wr wr) {
  sdr_recv_handle* handle = nullptr;
  EXPECT_EQ(sdr_recv_post(qp, &wr, &handle), SDR_SUCCESS) << sdr_last_error();
  return handle;
}
inline sdr_send_handle* send(sdr_qp* qp, sdr_send_wr wr) {
  sdr_send_handle* handle = nullptr;
  EXPECT_EQ(until_accepted([&] { return sdr_send_post(qp, &wr, &handle); }), SDR_SUCCESS) << sdr_last_error();
  return handle;
}
inline bool wait_sent(sdr_send_handle* handle) {
  return eventually([&] {
    int completed = 0;
    sdr_send_status status = {.flags = 0xFFFF};
    EXPECT_EQ(sdr_send_poll(handle, &completed, &status), SDR_SUCCESS) << sdr_last_error();
    EXPECT_EQ(status.flags, 0U);
    return completed == 1;
  });
}

// The live bitmap of a receive, read as the header says.
class Bitmap {
 public:
  explicit Bitmap(sdr_recv_handle* handle) {
    EXPECT_EQ(sdr_recv_bitmap_get(handle, &bytes_, &size_), SDR_SUCCESS) << sdr_last_error();
    EXPECT_EQ(address_of(bytes_) % 8, 0U);
  }
  // In whole words, which is how ThreadSanitizer recognises the writer's release.
  [[nodiscard]] bool has(std::size_t chunk) const {
    const auto* words = reinterpret_cast<const std::uint64_t*>(bytes_);
    return (__atomic_load_n(&words[chunk / 64], __ATOMIC_ACQUIRE) >> (chunk % 64) & 1) != 0;
  }
  [[nodiscard]] bool has_first(std::size_t chunks) const {
    for (std::size_t c = 0; c < chunks; ++c) {
      if (!has(c)) return false;
    }
    return true;
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::uint8_t* bytes_ = nullptr;
  std::size_t size_ = 0;
};

inline std::uint64_t test_seed() {
  const char* given = std::getenv("SDR_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
}

}  // namespace sdr::capi
