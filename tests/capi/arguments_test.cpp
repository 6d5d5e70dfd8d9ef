// What the C API refuses, and in which words.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>
#include <memory>
#include <thread>

#include "offload/process.hpp"
#include "tests/capi/loopback.hpp"
#include "tests/offload/emulators.hpp"

namespace sdr::capi {
namespace {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

AssertionResult says(std::string_view words) {
  const std::string text = sdr_last_error();
  if (text.find(words) != std::string::npos) return AssertionSuccess();
  return AssertionFailure() << "sdr_last_error() is \"" << text << "\", without \"" << words << '"';
}

// Sets an environment variable for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(CArguments, NullPointers_AreErrorsNeverCrashes) {
  Loopback pair;
  Memory memory(pair.b.context, 100);
  sdr_recv_wr receive_wr = memory.receive(0, 100);
  sdr_send_wr send_wr = memory.send(0, 100);
  sdr_send_start_wr start = {.opcode = SDR_WR_WRITE, .imm_value = 0};
  sdr_send_continue_wr part = memory.part(0, 1, 0);
  sdr_qp_attr attributes = usual_attributes();
  sdr_recv_handle* receive = post(pair.b.qp, receive_wr);
  sdr_send_handle* sent = nullptr;
  std::size_t size = 0;
  std::uint32_t number = 0;
  std::uint64_t bits = 0;
  std::uint8_t* bitmap = nullptr;
  int completed = 0;

  EXPECT_EQ(sdr_context_create("udp", nullptr), nullptr);
  EXPECT_TRUE(says("sdr_context_create: argument attr is NULL"));
  EXPECT_EQ(sdr_context_destroy(nullptr), SDR_ERROR);
  EXPECT_EQ(sdr_qp_create(nullptr, &attributes), nullptr);
  EXPECT_EQ(sdr_qp_create(pair.a.context, nullptr), nullptr);
  EXPECT_EQ(sdr_qp_destroy(nullptr), SDR_ERROR);
  EXPECT_EQ(sdr_qp_info_size_get(nullptr, &size), SDR_ERROR);
  EXPECT_EQ(sdr_qp_info_size_get(pair.a.qp, nullptr), SDR_ERROR);
  EXPECT_EQ(sdr_qp_info_get(nullptr, &size), SDR_ERROR);
  EXPECT_EQ(sdr_qp_info_get(pair.a.qp, nullptr), SDR_ERROR);
  EXPECT_EQ(sdr_qp_connect(nullptr, &size), SDR_ERROR);
  EXPECT_EQ(sdr_qp_connect(pair.a.qp, nullptr), SDR_ERROR);
  EXPECT_EQ(sdr_recv_post(nullptr, &receive_wr, &receive), SDR_ERROR);
  EXPECT_EQ(sdr_recv_post(pair.b.qp, nullptr, &receive), SDR_ERROR);
  EXPECT_EQ(sdr_recv_post(pair.b.qp, &receive_wr, nullptr), SDR_ERROR);
  EXPECT_EQ(sdr_recv_imm_get(nullptr, &number), SDR_ERROR);
  EXPECT_EQ(sdr_recv_imm_get(receive, nullptr), SDR_ERROR);
  EXPECT_EQ(sdr_recv_bitmap_get(nullptr, &bitmap, &size), SDR_ERROR);
  EXPECT_EQ(sdr_recv_bitmap_get(receive, nullptr, &size), SDR_ERROR);
  EXPECT_EQ(sdr_recv_bitmap_get(receive, &bitmap, nullptr), SDR_ERROR);
  EXPECT_EQ(sdr_recv_bitmap_chunk_expand(nullptr, 0, &bits), SDR_ERROR);
  EXPECT_EQ(sdr_recv_bitmap_chunk_expand(receive, 0, nullptr), SDR_ERROR);
  EXPECT_EQ(sdr_recv_complete(nullptr), SDR_ERROR);
  EXPECT_EQ(sdr_send_post(nullptr, &send_wr, &sent), SDR_ERROR);
  EXPECT_EQ(sdr_send_post(pair.a.qp, nullptr, &sent), SDR_ERROR);
  EXPECT_EQ(sdr_send_post(pair.a.qp, &send_wr, nullptr), SDR_ERROR);
  EXPECT_EQ(sdr_streaming_send_start(nullptr, &start, &sent), SDR_ERROR);
  EXPECT_EQ(sdr_streaming_send_start(pair.a.qp, nullptr, &sent), SDR_ERROR);
  EXPECT_EQ(sdr_streaming_send_start(pair.a.qp, &start, nullptr), SDR_ERROR);
  EXPECT_EQ(sdr_streaming_send_continue(nullptr, &part), SDR_ERROR);
  EXPECT_EQ(sdr_streaming_send_end(nullptr), SDR_ERROR);
  EXPECT_EQ(sdr_send_poll(nullptr, &completed, nullptr), SDR_ERROR);
  EXPECT_EQ(sdr_mr_reg(nullptr, &size, 1, SDR_ACCESS_REMOTE_WRITE), nullptr);
  EXPECT_EQ(sdr_mr_reg(pair.a.context, nullptr, 1, SDR_ACCESS_REMOTE_WRITE), nullptr);
  EXPECT_EQ(sdr_mr_reg(pair.a.context, &size, 0, SDR_ACCESS_REMOTE_WRITE), nullptr);
  EXPECT_EQ(sdr_mr_dereg(nullptr), SDR_ERROR);
  EXPECT_EQ(sdr_mr_lkey_get(nullptr, &number), SDR_ERROR);
  EXPECT_EQ(sdr_mr_rkey_get(nullptr, &number), SDR_ERROR);
}

TEST(CArguments, Context_RefusesUnknownDevicesAndAttributes) {
  sdr_dev_attr device = {.num_channels = 1, .log_max_qps = 0};
  EXPECT_EQ(sdr_context_create("mlx5_0", &device), nullptr);
  EXPECT_TRUE(says("mlx5_0"));
  EXPECT_TRUE(says("\"udp\"")) << "lists what is there";
  device.num_channels = 0;
  EXPECT_EQ(sdr_context_create("udp", &device), nullptr);
  EXPECT_TRUE(says("num_channels 0 is not from 1 to 255"));
  device = {.num_channels = 1, .log_max_qps = 17};
  EXPECT_EQ(sdr_context_create("", &device), nullptr);
  EXPECT_TRUE(says("log_max_qps 17"));
}

TEST(CArguments, Context_WithQueuePairsOrRegions_IsNotDestroyed) {
  sdr_dev_attr device = {.num_channels = 1, .log_max_qps = 0};
  sdr_context* context = sdr_context_create("", &device);
  ASSERT_NE(context, nullptr) << sdr_last_error();
  sdr_qp_attr attributes = usual_attributes();
  sdr_qp* qp = sdr_qp_create(context, &attributes);
  ASSERT_NE(qp, nullptr) << sdr_last_error();
  EXPECT_EQ(sdr_qp_create(context, &attributes), nullptr) << "log_max_qps 0: one";
  EXPECT_TRUE(says("its 1 QPs already"));
  int memory = 0;
  sdr_mr* region = sdr_mr_reg(context, &memory, sizeof memory, SDR_ACCESS_REMOTE_WRITE);
  EXPECT_EQ(sdr_context_destroy(context), SDR_ERROR);
  EXPECT_TRUE(says("1 QPs and 1 memory regions"));
  EXPECT_EQ(sdr_qp_destroy(qp), SDR_SUCCESS);
  qp = sdr_qp_create(context, &attributes);
  EXPECT_NE(qp, nullptr) << "the place is free again: " << sdr_last_error();
  EXPECT_EQ(sdr_qp_destroy(qp), SDR_SUCCESS);
  EXPECT_EQ(sdr_context_destroy(context), SDR_ERROR);
  EXPECT_EQ(sdr_mr_dereg(region), SDR_SUCCESS);
  EXPECT_EQ(sdr_context_destroy(context), SDR_SUCCESS);
}

TEST(CArguments, QueuePair_RefusesAttributesByName) {
  sdr_dev_attr device = {.num_channels = 1, .log_max_qps = 0};
  sdr_context* context = sdr_context_create("", &device);
  ASSERT_NE(context, nullptr) << sdr_last_error();
  const auto refused = [&](auto change, const char* words) {
    sdr_qp_attr attributes = usual_attributes();
    change(attributes);
    EXPECT_EQ(sdr_qp_create(context, &attributes), nullptr);
    EXPECT_TRUE(says(words));
  };
  refused([](sdr_qp_attr& a) { a.mtu = static_cast<sdr_mtu>(7); }, "mtu 7");
  refused([](sdr_qp_attr& a) { a.bitmap_chunk_size_log_bytes = 9; },
          "chunk size 2^9 is not a power-of-two multiple of the MTU 1024");
  refused([](sdr_qp_attr& a) { a.bitmap_chunk_size_log_bytes = 40; }, "chunk size 2^40");
  refused([](sdr_qp_attr& a) { a.bitmap_chunk_size_log_bytes = 22; }, "larger than the largest message, 2^21");
  refused([](sdr_qp_attr& a) { a.max_log_num_msgs = 11; }, "max_log_num_msgs 11");
  refused([](sdr_qp_attr& a) { a.max_in_flight_log_bytes = 2; }, "max_in_flight_log_bytes 2");
  refused([](sdr_qp_attr& a) { a.max_in_flight_log_bytes = 200; }, "2^197");
  refused([](sdr_qp_attr& a) { a.max_in_flight_log_bytes = 33; }, "packets of 1024 bytes");
  refused([](sdr_qp_attr& a) { a.send_enable = a.recv_enable = 0; }, "send_enable");
  EXPECT_EQ(sdr_context_destroy(context), SDR_SUCCESS) << "failures took no place: " << sdr_last_error();
}

TEST(CArguments, Connect_RefusesWhatDiffersAndWhatIsNoInfo) {
  sdr_qp_attr attributes = usual_attributes();
  End a(attributes, 1);
  attributes.bitmap_chunk_size_log_bytes = 13;
  End b(attributes, 1);
  End c(usual_attributes(), 3);
  std::vector<std::uint8_t> info = b.info();
  EXPECT_EQ(sdr_qp_connect(a.qp, info.data()), SDR_ERROR);
  EXPECT_TRUE(says("4 here, 8 at the peer"));
  info = c.info();
  EXPECT_EQ(sdr_qp_connect(a.qp, info.data()), SDR_ERROR);
  EXPECT_TRUE(says("1 here, 3 at the peer"));
  std::fill(info.begin(), info.end(), std::uint8_t{0});
  EXPECT_EQ(sdr_qp_connect(a.qp, info.data()), SDR_ERROR);
  EXPECT_TRUE(says("sdr_qp_info_get()"));
}

TEST(CArguments, Connect_Twice_IsAnError) {
  Loopback pair;
  std::vector<std::uint8_t> info = pair.b.info();
  EXPECT_EQ(sdr_qp_connect(pair.a.qp, info.data()), SDR_ERROR);
  EXPECT_TRUE(says("connected already"));
}

TEST(CArguments, Messages_MustLieInsideTheirRegion) {
  Loopback pair;
  Memory memory(pair.b.context, 1000);
  sdr_recv_handle* handle = nullptr;
  const auto refused = [&](sdr_recv_wr wr, const char* words) {
    EXPECT_EQ(sdr_recv_post(pair.b.qp, &wr, &handle), SDR_ERROR);
    EXPECT_TRUE(says(words));
  };
  refused(memory.receive(1, 1000), "1000 bytes at");
  refused({.max_length = UINT32_MAX, .lkey = memory.lkey(), .address = UINT64_MAX - 5}, "do not lie inside the region");
  refused({.max_length = 1, .lkey = memory.lkey(), .address = memory.receive(0, 0).address - 1}, "do not lie inside");
  refused({.max_length = 1, .lkey = 77, .address = memory.receive(0, 0).address}, "lkey 77 names no memory region");
  Memory of_a(pair.a.context, 1000);
  sdr_send_wr wr = of_a.send(999, 2);
  sdr_send_handle* sent = nullptr;
  EXPECT_EQ(sdr_send_post(pair.a.qp, &wr, &sent), SDR_ERROR);
  EXPECT_TRUE(says("2 bytes at"));
  EXPECT_NE(post(pair.b.qp, {.max_length = 0, .lkey = 0, .address = 0}), nullptr) << "no bytes lie everywhere";
}

TEST(CArguments, Messages_LargerThanAllowed_AreErrors) {
  Loopback pair;
  constexpr std::size_t kMost = 1 << 21;
  Memory in(pair.b.context, kMost + 1), out(pair.a.context, kMost + 1);
  sdr_recv_wr receive_wr = in.receive(0, kMost + 1);
  sdr_recv_handle* receive = nullptr;
  EXPECT_EQ(sdr_recv_post(pair.b.qp, &receive_wr, &receive), SDR_ERROR);
  EXPECT_TRUE(says("2097153"));
  sdr_send_wr wr = out.send(0, kMost + 1);
  sdr_send_handle* sent = nullptr;
  EXPECT_EQ(sdr_send_post(pair.a.qp, &wr, &sent), SDR_ERROR);
  wr = out.send(0, 1, std::uint64_t{1} << 40);
  EXPECT_EQ(sdr_send_post(pair.a.qp, &wr, &sent), SDR_ERROR);
  EXPECT_TRUE(says("remote_offset"));
  post(pair.b.qp, in.receive(0, 100));
  wr = out.send(0, 101);
  EXPECT_EQ(until_accepted([&] { return sdr_send_post(pair.a.qp, &wr, &sent); }), SDR_ERROR);
  EXPECT_TRUE(says("100 bytes"));
  const std::uint32_t unknown = 2;  // which a C program may well write there
  std::memcpy(&wr.opcode, &unknown, sizeof unknown);
  EXPECT_EQ(sdr_send_post(pair.a.qp, &wr, &sent), SDR_ERROR);
  EXPECT_TRUE(says("opcode 2"));
}

TEST(CArguments, ADisabledDirection_IsRefused) {
  sdr_qp_attr attributes = usual_attributes();
  attributes.recv_enable = 0;
  End sender(attributes, 1);
  Memory memory(sender.context, 100);
  sdr_recv_wr wr = memory.receive(0, 100);
  sdr_recv_handle* receive = nullptr;
  EXPECT_EQ(sdr_recv_post(sender.qp, &wr, &receive), SDR_ERROR);
  EXPECT_TRUE(says("recv_enable 0"));
  attributes.recv_enable = 1;
  attributes.send_enable = 0;
  End receiver(attributes, 1);
  sdr_send_wr send_wr = memory.send(0, 0);
  sdr_send_start_wr start = {.opcode = SDR_WR_WRITE, .imm_value = 0};
  sdr_send_handle* sent = nullptr;
  EXPECT_EQ(sdr_send_post(receiver.qp, &send_wr, &sent), SDR_ERROR);
  EXPECT_TRUE(says("send_enable 0"));
  EXPECT_EQ(sdr_streaming_send_start(receiver.qp, &start, &sent), SDR_ERROR);
}

TEST(CArguments, LastError_BelongsToItsThread) {
  EXPECT_EQ(sdr_qp_destroy(nullptr), SDR_ERROR);
  EXPECT_TRUE(says("sdr_qp_destroy"));
  std::thread([] { EXPECT_STREQ(sdr_last_error(), ""); }).join();
  EXPECT_TRUE(says("sdr_qp_destroy"));
}

TEST(CEnvironment, Link_EmulatesABadPath) {
  const Variable link("SDR_LINK", "loss=1");
  Loopback pair;
  Memory out(pair.a.context, 4096), in(pair.b.context, 4096);
  sdr_recv_handle* receive = post(pair.b.qp, in.receive(0, 4096));
  sdr_send_wr wr = out.send(0, 4096);
  sdr_send_handle* sent = nullptr;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(sdr_send_post(pair.a.qp, &wr, &sent), SDR_RETRY) << "every CTS is lost";
  EXPECT_EQ(sdr_recv_complete(receive), SDR_SUCCESS);
}

TEST(CEnvironment, ABadLink_IsRefused) {
  const Variable link("SDR_LINK", "speed=very");
  sdr_dev_attr device = {.num_channels = 1, .log_max_qps = 0};
  EXPECT_EQ(sdr_context_create("udp", &device), nullptr);
  EXPECT_TRUE(says("speed"));
}

TEST(CEnvironment, Reports_GoToStderrAtDestroy) {
  const Variable rx("SDR_DPA_RX_PROFILE_STATS_REPORT", "1");
  const Variable tx("SDR_DPA_TX_PROFILE_STATS_REPORT", "1");
  Loopback pair;
  Memory out(pair.a.context, 4096), in(pair.b.context, 4096);
  sdr_recv_handle* receive = post(pair.b.qp, in.receive(0, 4096));
  ASSERT_TRUE(wait_sent(send(pair.a.qp, out.send(0, 4096))));
  const Bitmap bitmap(receive);
  ASSERT_TRUE(eventually([&] { return bitmap.has(0); }));
  testing::internal::CaptureStderr();
  pair.a.destroy_qp();
  pair.b.destroy_qp();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("sent: 4 packets, 4096 payload bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("received: 4 packets, 0 duplicate"), std::string::npos) << text;
}

TEST(CEnvironment, Offload_MovesTheDataAndIsReported) {
  const Variable device("SDR_OFFLOAD_DEVICE", "host");
  const Variable sending("SDR_DPA_TX_OFFLOADING_ENABLE", "1");
  const Variable workers("SDR_DPA_TX_NUM_WORKERS", "2");
  const Variable rx("SDR_DPA_RX_PROFILE_STATS_REPORT", "1");
  const Variable tx("SDR_DPA_TX_PROFILE_STATS_REPORT", "1");
  Loopback pair;
  constexpr std::uint32_t kBytes = 200'000;
  Memory out(pair.a.context, kBytes), in(pair.b.context, kBytes);
  out.fill(5);
  sdr_recv_handle* receive = post(pair.b.qp, in.receive(0, kBytes));
  ASSERT_TRUE(wait_sent(send(pair.a.qp, out.send(0, kBytes))));
  const Bitmap bitmap(receive);
  for (std::uint32_t chunk = 0; chunk * 4096 < kBytes; ++chunk)
    ASSERT_TRUE(eventually([&] { return bitmap.has(chunk); })) << chunk;
  EXPECT_EQ(in.bytes(), out.bytes());
  EXPECT_EQ(sdr_recv_complete(receive), SDR_SUCCESS);
  testing::internal::CaptureStderr();
  pair.a.destroy_qp();
  pair.b.destroy_qp();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("sent: 196 packets, 200000 payload bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("received: 196 packets, 0 duplicate"), std::string::npos) << text;
  EXPECT_NE(text.find("device: host, 2 threads, receives and sends; worked to the end"), std::string::npos) << text;
}

// On a path that leaves the machine nothing but the next CTS would wake who looks after the device.
TEST(CEnvironment, OffloadDeviceThatStandsStill_IsLeftWithinItsSilence) {
  if (!offload::riscv_available()) GTEST_SKIP() << offload::riscv_available().error().message;
  const Variable device("SDR_OFFLOAD_DEVICE", "riscv");
  const Variable link("SDR_LINK", "rtt=1ms,rate=1Gbit");
  // One channel: its worker is not the one that does what is due.
  Loopback pair(usual_attributes(), 1);
  constexpr std::uint32_t kBytes = 200'000;
  Memory out(pair.a.context, kBytes), in(pair.b.context, kBytes);
  out.fill(6);
  sdr_recv_handle* receive = post(pair.b.qp, in.receive(0, kBytes));
  // The CTS has arrived, and that it has is known: nobody has anything to do.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  for (const pid_t emulator : offload::emulators()) ::kill(emulator, SIGSTOP);
  ASSERT_TRUE(wait_sent(send(pair.a.qp, out.send(0, kBytes))));
  const Bitmap bitmap(receive);
  EXPECT_TRUE(eventually([&] { return bitmap.has_first((kBytes + 4095) / 4096); }));
  EXPECT_EQ(in.bytes(), out.bytes());
  EXPECT_EQ(sdr_recv_complete(receive), SDR_SUCCESS);
}

TEST(CEnvironment, Generations_MustAgreeAndReachThePeer) {
  std::unique_ptr<End> a;
  {
    const Variable generations("SDR_QP_NUM_GENERATIONS", "3");
    a = std::make_unique<End>(usual_attributes(), 1);
  }
  End b(usual_attributes(), 1);
  std::vector<std::uint8_t> info = a->info();
  EXPECT_EQ(sdr_qp_connect(b.qp, info.data()), SDR_ERROR);
  EXPECT_TRUE(says("generations"));
  EXPECT_TRUE(says("3 at the peer"));
}

}  // namespace
}  // namespace sdr::capi
