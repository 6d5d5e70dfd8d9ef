// Messages through the C API, over loopback, with the library's own threads.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/capi/loopback.hpp"

namespace sdr::capi {
namespace {

constexpr std::size_t kChunk = 4096;  // of usual_attributes()

// UDP on loopback may lose a packet when a socket is not read in time; a chunk that is missing is sent again, as a
// reliability layer would, by a stream into the same message.
struct Transfer {
  sdr_qp* from;
  sdr_qp* to;
  const Memory& out;
  const Memory& in;

  void run(std::size_t offset, std::size_t length, std::optional<std::uint32_t> immediate) const {
    sdr_recv_handle* receive = post(to, in.receive(offset, length));
    const Bitmap bitmap(receive);
    const std::size_t chunks = (length + kChunk - 1) / kChunk;
    EXPECT_EQ(bitmap.size(), (chunks + 7) / 8);
    sdr_send_start_wr start = {.opcode = immediate ? SDR_WR_WRITE_WITH_IMM : SDR_WR_WRITE,
                               .imm_value = immediate.value_or(0)};
    sdr_send_handle* stream = nullptr;
    ASSERT_EQ(until_accepted([&] { return sdr_streaming_send_start(from, &start, &stream); }), SDR_SUCCESS)
        << sdr_last_error();
    put(stream, offset, length, 0);
    for (std::size_t c = 0; c < chunks; ++c) {
      while (!arrives(bitmap, c)) put(stream, offset + c * kChunk, std::min(kChunk, length - c * kChunk), c);
    }
    ASSERT_EQ(until_accepted([&] { return sdr_streaming_send_end(stream); }), SDR_SUCCESS) << sdr_last_error();
    ASSERT_TRUE(wait_sent(stream));
    if (immediate) {
      std::uint32_t got = 0;
      ASSERT_EQ(until_accepted([&] { return sdr_recv_imm_get(receive, &got); }), SDR_SUCCESS) << sdr_last_error();
      EXPECT_EQ(got, *immediate);
    }
    ASSERT_EQ(sdr_recv_complete(receive), SDR_SUCCESS) << sdr_last_error();
  }

  void put(sdr_send_handle* stream, std::size_t offset, std::size_t length, std::size_t chunk) const {
    sdr_send_continue_wr part = out.part(offset, length, chunk);
    ASSERT_EQ(until_accepted([&] { return sdr_streaming_send_continue(stream, &part); }), SDR_SUCCESS)
        << sdr_last_error();
    ASSERT_TRUE(wait_sent(stream));
  }

  static bool arrives(const Bitmap& bitmap, std::size_t chunk) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (!bitmap.has(chunk)) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }
};

TEST(CTransfer, MessagesOfManySizes_ArriveBothWays) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE("SDR_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  Loopback pair;
  constexpr std::size_t kSize = 1 << 20;
  Memory a_out(pair.a.context, kSize), a_in(pair.a.context, kSize);
  Memory b_out(pair.b.context, kSize), b_in(pair.b.context, kSize);
  a_out.fill(seed);
  b_out.fill(seed + 1);
  std::vector<std::size_t> sizes = {1, 7, 1023, 1024, 1025, 4095, 4096, 4097, 12345, 65536, 300001};
  for (int i = 0; i < 6; ++i) sizes.push_back(1 + random() % 100000);
  const auto both = [&](std::size_t offset, std::size_t size) {
    std::thread other([&] { Transfer{pair.b.qp, pair.a.qp, b_out, a_in}.run(offset, size, 0x89ABCDEF); });
    Transfer{pair.a.qp, pair.b.qp, a_out, b_in}.run(offset, size, std::nullopt);
    other.join();
    const auto same = [&](Memory& x, Memory& y) {
      return std::memcmp(&x.bytes()[offset], &y.bytes()[offset], size) == 0;
    };
    EXPECT_TRUE(same(a_out, b_in)) << size;
    EXPECT_TRUE(same(b_out, a_in)) << size;
  };
  for (const std::size_t size : sizes) both(random() % 1000, size);
}

TEST(CTransfer, OneShotSends_CarryEveryUserImmediate) {
  Loopback pair;
  Memory out(pair.a.context, 64 * 1024), in(pair.b.context, 64 * 1024);
  std::uint32_t imm = 0xA5A50001;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1024}, std::size_t{5000}, kChunk * 4}) {
    for (const std::size_t chunk : {std::size_t{0}, std::size_t{3}}) {
      out.fill(imm);
      sdr_recv_handle* receive = post(pair.b.qp, in.receive(0, 64 * 1024));
      sdr_send_wr wr = out.send(11, size, chunk);
      wr.opcode = SDR_WR_WRITE_WITH_IMM;
      wr.imm_value = imm;
      ASSERT_TRUE(wait_sent(send(pair.a.qp, wr)));
      std::uint32_t got = 0;
      ASSERT_EQ(until_accepted([&] { return sdr_recv_imm_get(receive, &got); }), SDR_SUCCESS) << sdr_last_error();
      EXPECT_EQ(got, imm) << size << " bytes at chunk " << chunk;
      const Bitmap bitmap(receive);
      ASSERT_TRUE(eventually([&] {
        for (std::size_t c = 0; c < (size + kChunk - 1) / kChunk; ++c) {
          if (!bitmap.has(chunk + c)) return false;
        }
        return true;
      }));
      EXPECT_FALSE(chunk > 0 && bitmap.has(0)) << "nothing was sent there";
      ASSERT_EQ(sdr_recv_complete(receive), SDR_SUCCESS);
      EXPECT_EQ(std::memcmp(&in.bytes()[chunk * kChunk], &out.bytes()[11], size), 0) << size;
      imm = imm * 2654435761U + 1;
    }
  }
}

TEST(CTransfer, Send_WithoutAReceivePosted_IsRetryAndThenGoes) {
  Loopback pair;
  Memory out(pair.a.context, 100), in(pair.b.context, 100);
  sdr_send_wr wr = out.send(0, 100);
  sdr_send_handle* handle = nullptr;
  EXPECT_EQ(sdr_send_post(pair.a.qp, &wr, &handle), SDR_RETRY);
  EXPECT_EQ(handle, nullptr) << "nothing has happened";
  EXPECT_NE(std::string(sdr_last_error()).find("CTS"), std::string::npos) << sdr_last_error();
  sdr_send_start_wr start = {.opcode = SDR_WR_WRITE, .imm_value = 0};
  EXPECT_EQ(sdr_streaming_send_start(pair.a.qp, &start, &handle), SDR_RETRY);
  sdr_recv_handle* receive = post(pair.b.qp, in.receive(0, 100));
  std::uint32_t imm = 0;
  EXPECT_EQ(sdr_recv_imm_get(receive, &imm), SDR_RETRY);
  ASSERT_TRUE(wait_sent(send(pair.a.qp, wr)));
  const Bitmap bitmap(receive);
  EXPECT_TRUE(eventually([&] { return bitmap.has(0); }));
  EXPECT_EQ(sdr_recv_complete(receive), SDR_SUCCESS);
}

TEST(CTransfer, ReceivePost_WithoutAFreeSlot_IsRetryUntilOneCompletes) {
  Loopback pair;
  Memory in(pair.b.context, 100);
  std::vector<sdr_recv_handle*> handles;
  for (int i = 0; i < 8; ++i) handles.push_back(post(pair.b.qp, in.receive(0, 100)));
  sdr_recv_wr wr = in.receive(0, 100);
  sdr_recv_handle* extra = nullptr;
  EXPECT_EQ(sdr_recv_post(pair.b.qp, &wr, &extra), SDR_RETRY);
  EXPECT_EQ(extra, nullptr);
  EXPECT_EQ(sdr_recv_complete(handles[0]), SDR_SUCCESS);
  EXPECT_EQ(sdr_recv_complete(handles[0]), SDR_ERROR) << "complete already";
  EXPECT_EQ(sdr_recv_post(pair.b.qp, &wr, &extra), SDR_SUCCESS) << sdr_last_error();
}

TEST(CTransfer, Stream_FillsChunksInAnyOrderAndMoreThanOnce) {
  Loopback pair;
  constexpr std::size_t kSize = 5 * kChunk + 100;
  Memory out(pair.a.context, kSize), in(pair.b.context, kSize);
  out.fill(5);
  sdr_recv_handle* receive = post(pair.b.qp, in.receive(0, kSize));
  const Bitmap bitmap(receive);
  sdr_send_start_wr start = {.opcode = SDR_WR_WRITE_WITH_IMM, .imm_value = 0x12345678};
  sdr_send_handle* stream = nullptr;
  ASSERT_EQ(until_accepted([&] { return sdr_streaming_send_start(pair.a.qp, &start, &stream); }), SDR_SUCCESS);
  for (const std::size_t chunk : std::vector<std::size_t>{5, 0, 2, 2, 4, 1}) {
    sdr_send_continue_wr part = out.part(chunk * kChunk, std::min(kChunk, kSize - chunk * kChunk), chunk);
    ASSERT_EQ(sdr_streaming_send_continue(stream, &part), SDR_SUCCESS) << sdr_last_error();
    ASSERT_TRUE(wait_sent(stream));
  }
  EXPECT_TRUE(eventually([&] { return bitmap.has_first(3) && bitmap.has(4) && bitmap.has(5); }));
  EXPECT_FALSE(bitmap.has(3)) << "was never sent";
  std::uint64_t packets = ~std::uint64_t{0};
  EXPECT_EQ(sdr_recv_bitmap_chunk_expand(receive, 3, &packets), SDR_SUCCESS);
  EXPECT_EQ(packets, 0U);
  EXPECT_EQ(sdr_recv_bitmap_chunk_expand(receive, 5, &packets), SDR_SUCCESS);
  EXPECT_EQ(packets, 0xFU) << "one packet, three past the end of the buffer";
  EXPECT_EQ(sdr_recv_bitmap_chunk_expand(receive, 6, &packets), SDR_ERROR);

  // Two of the four packets of chunk 3.
  sdr_send_continue_wr half = out.part(3 * kChunk, 2048, 3);
  ASSERT_EQ(sdr_streaming_send_continue(stream, &half), SDR_SUCCESS);
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(sdr_recv_bitmap_chunk_expand(receive, 3, &packets), SDR_SUCCESS);
    return (packets & 3) == 3;
  }));
  sdr_send_continue_wr beyond = out.part(0, 101, 5);
  EXPECT_EQ(sdr_streaming_send_continue(stream, &beyond), SDR_ERROR) << "one byte past the receive";
  EXPECT_EQ(sdr_streaming_send_end(stream), SDR_SUCCESS);
  EXPECT_EQ(sdr_streaming_send_end(stream), SDR_ERROR) << "ended already";
  EXPECT_EQ(sdr_streaming_send_continue(stream, &half), SDR_ERROR) << "ended already";
  EXPECT_EQ(sdr_recv_complete(receive), SDR_SUCCESS);
  EXPECT_EQ(std::memcmp(in.bytes().data(), out.bytes().data(), 3 * kChunk + 2048), 0);
}

// What is sent again while the first copy is under way lands through whichever channel has it first, two workers at a
// time: the same bytes in the same place.
TEST(CTransfer, AChunkSentAgainAtOnce_LandsWhole) {
  Loopback pair;
  constexpr std::size_t kSize = 4 * kChunk;
  Memory out(pair.a.context, kSize), in(pair.b.context, kSize);
  out.fill(6);
  sdr_recv_handle* receive = post(pair.b.qp, in.receive(0, kSize));
  const Bitmap bitmap(receive);
  sdr_send_start_wr start = {.opcode = SDR_WR_WRITE, .imm_value = 0};
  sdr_send_handle* stream = nullptr;
  ASSERT_EQ(until_accepted([&] { return sdr_streaming_send_start(pair.a.qp, &start, &stream); }), SDR_SUCCESS);
  sdr_send_continue_wr part = out.part(0, kSize, 0);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(sdr_streaming_send_continue(stream, &part), SDR_SUCCESS) << sdr_last_error();
  }
  ASSERT_TRUE(wait_sent(stream));
  EXPECT_TRUE(eventually([&] { return bitmap.has_first(4); }));
  EXPECT_EQ(sdr_streaming_send_end(stream), SDR_SUCCESS);
  EXPECT_EQ(sdr_recv_complete(receive), SDR_SUCCESS);
  EXPECT_EQ(in.bytes(), out.bytes());
}

TEST(CTransfer, ExpandOfAChunkOfManyPackets_GivesABitForEachPart) {
  sdr_qp_attr attributes = usual_attributes();
  attributes.bitmap_chunk_size_log_bytes = 16;  // 256 packets of 256 bytes: four packets a bit
  attributes.mtu = SDR_MTU_256;
  Loopback pair(attributes);
  Memory out(pair.a.context, 1 << 16), in(pair.b.context, 1 << 17);
  sdr_recv_handle* receive = post(pair.b.qp, in.receive(0, 1 << 17));
  sdr_send_start_wr start = {.opcode = SDR_WR_WRITE, .imm_value = 0};
  sdr_send_handle* stream = nullptr;
  ASSERT_EQ(until_accepted([&] { return sdr_streaming_send_start(pair.a.qp, &start, &stream); }), SDR_SUCCESS);
  const auto expanded = [&](std::uint32_t chunk) {
    std::uint64_t bits = 0;
    EXPECT_EQ(sdr_recv_bitmap_chunk_expand(receive, chunk, &bits), SDR_SUCCESS) << sdr_last_error();
    return bits;
  };
  EXPECT_EQ(expanded(0), 0U);
  // Into chunk 1; the stream of 10 packets is short of the chunk, and so marks an end: what is behind counts as there.
  sdr_send_continue_wr part = out.part(0, 10 * 256, 1);
  ASSERT_EQ(sdr_streaming_send_continue(stream, &part), SDR_SUCCESS);
  EXPECT_TRUE(eventually([&] { return (expanded(1) & 7) == 7; }));
  EXPECT_EQ(expanded(0), 0U);
  part = out.part(0, 1 << 16, 0);
  ASSERT_EQ(sdr_streaming_send_continue(stream, &part), SDR_SUCCESS);
  EXPECT_TRUE(eventually([&] { return expanded(0) == ~std::uint64_t{0}; }));
  EXPECT_EQ(sdr_streaming_send_end(stream), SDR_SUCCESS);
  EXPECT_EQ(sdr_recv_complete(receive), SDR_SUCCESS);
}

TEST(CTransfer, EarlyComplete_LeavesTheBufferAlone) {
  Loopback pair;
  constexpr std::size_t kSize = 1 << 20;
  Memory out(pair.a.context, kSize), in(pair.b.context, kSize);
  out.fill(9);
  for (int round = 0; round < 20; ++round) {
    std::fill(in.bytes().begin(), in.bytes().end(), std::uint8_t{0});
    sdr_recv_handle* receive = post(pair.b.qp, in.receive(0, kSize));
    sdr_send_handle* handle = send(pair.a.qp, out.send(0, kSize));
    const Bitmap bitmap(receive);
    ASSERT_TRUE(eventually([&] { return bitmap.has(static_cast<std::size_t>(round)) || bitmap.has(0); }));
    ASSERT_EQ(sdr_recv_complete(receive), SDR_SUCCESS);
    // Written without any order against the workers: ThreadSanitizer sees every late touch, a canary most.
    std::fill(in.bytes().begin(), in.bytes().end(), std::uint8_t{0xEE});
    ASSERT_TRUE(wait_sent(handle));
    EXPECT_TRUE(std::all_of(in.bytes().begin(), in.bytes().end(), [](std::uint8_t b) { return b == 0xEE; })) << round;
  }
}

TEST(CTransfer, ASecondThread_MayPollTheBitmapAndReadTheChunks) {
  Loopback pair;
  constexpr std::size_t kSize = 1 << 20;
  Memory out(pair.a.context, kSize), in(pair.b.context, kSize);
  out.fill(3);
  sdr_recv_handle* receive = post(pair.b.qp, in.receive(0, kSize));
  const Bitmap bitmap(receive);
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> wrong{0}, seen{0};
  std::thread reader([&] {
    std::vector<bool> checked(kSize / kChunk);
    while (!stop.load()) {
      for (std::size_t c = 0; c < checked.size(); ++c) {
        if (checked[c] || !bitmap.has(c)) continue;
        checked[c] = true;
        seen.fetch_add(1);
        if (std::memcmp(&in.bytes()[c * kChunk], &out.bytes()[c * kChunk], kChunk) != 0) wrong.fetch_add(1);
      }
      std::this_thread::yield();
    }
  });
  ASSERT_TRUE(wait_sent(send(pair.a.qp, out.send(0, kSize))));
  EXPECT_TRUE(eventually([&] { return seen.load() >= kSize / kChunk / 2; }));
  stop.store(true);
  reader.join();
  EXPECT_EQ(wrong.load(), 0U);
  EXPECT_EQ(sdr_recv_complete(receive), SDR_SUCCESS);
}

TEST(CTransfer, Destroy_WithTrafficInFlight_IsSafe) {
  constexpr std::size_t kSize = 1 << 20;
  for (int round = 0; round < 6; ++round) {
    Loopback pair;
    constexpr std::size_t kMessages = 4;  // each with memory of its own: their packets land at the same time
    Memory out(pair.a.context, kSize), in(pair.b.context, kMessages * kSize);
    std::vector<sdr_recv_handle*> receives;
    for (std::size_t i = 0; i < kMessages; ++i) receives.push_back(post(pair.b.qp, in.receive(i * kSize, kSize)));
    for (std::size_t i = 0; i < kMessages; ++i) send(pair.a.qp, out.send(0, kSize));
    const Bitmap bitmap(receives[0]);
    ASSERT_TRUE(eventually([&] { return bitmap.has(0); }));
    // What the QP that is gone sent from, or received into, is the program's again.
    const bool receiver_first = round % 2 == 0;
    (receiver_first ? pair.b : pair.a).destroy_qp();
    auto& first = (receiver_first ? in : out).bytes();
    std::fill(first.begin(), first.end(), std::uint8_t{1});
    (receiver_first ? pair.a : pair.b).destroy_qp();
    auto& second = (receiver_first ? out : in).bytes();
    std::fill(second.begin(), second.end(), std::uint8_t{2});
  }
}

TEST(CTransfer, RateLimit_IsOfPayloadInMegabits) {
  sdr_qp_attr attributes = usual_attributes();
  attributes.rate_limit = 80;  // 10 MB/s
  Loopback pair(attributes);
  constexpr std::size_t kSize = 1 << 20;
  Memory out(pair.a.context, kSize), in(pair.b.context, kSize);
  sdr_recv_handle* receive = post(pair.b.qp, in.receive(0, kSize));
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(wait_sent(send(pair.a.qp, out.send(0, kSize))));
  // 1 MiB takes 105 ms; a slow machine takes longer, none may be faster than the pacer's catch-up allows.
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(90));
  EXPECT_EQ(sdr_recv_complete(receive), SDR_SUCCESS);
}

TEST(CTransfer, IdleQueuePairs_SleepInsteadOfSpinning) {
  Loopback pair;
  Memory out(pair.a.context, 4096), in(pair.b.context, 4096);
  sdr_recv_handle* receive = post(pair.b.qp, in.receive(0, 4096));
  ASSERT_TRUE(wait_sent(send(pair.a.qp, out.send(0, 4096))));
  const Bitmap bitmap(receive);
  ASSERT_TRUE(eventually([&] { return bitmap.has(0); }));
  const auto cpu_time = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto of = [](const timeval& t) {
      return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
    };
    return of(usage.ru_utime) + of(usage.ru_stime);
  };
  const auto before = cpu_time();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  // One spinning thread would use up to 300 ms.
  EXPECT_LT(cpu_time() - before, std::chrono::milliseconds(60));
  EXPECT_EQ(sdr_recv_complete(receive), SDR_SUCCESS);
}

}  // namespace
}  // namespace sdr::capi
