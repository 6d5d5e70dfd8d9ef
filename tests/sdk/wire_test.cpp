// What comes from the other end is not trusted: QP infos and control datagrams, cut, changed and random.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sdk/control_message.hpp"
#include "sdk/qp_info.hpp"
#include "tests/core/seed.hpp"
#include "tests/sdk/pair.hpp"

namespace sdr {
namespace {

using namespace testing_support;
using transport::Site;

QueuePairOptions base() {
  return {.mtu = 1024_B,
          .packets_per_chunk = 4,
          .max_message = 1_MiB,
          .slots = 64,
          .channels = 2,
          .generations = 8,
          .token = 5};
}

struct Difference {
  std::string field;
  std::function<void(QueuePairOptions&)> change;
  std::string here, there;
};

TEST(Connect, MismatchOfAnyField_NamesItAndBothValues) {
  const std::vector<Difference> differences{
      {"MTU", [](auto& o) { o.mtu = 512_B; }, "1024", "512"},
      {"packets per chunk", [](auto& o) { o.packets_per_chunk = 8; }, "4", "8"},
      {"largest message", [](auto& o) { o.max_message = 2_MiB; }, "1048576", "2097152"},
      {"message slots", [](auto& o) { o.slots = 128; }, "64", "128"},
      {"channels", [](auto& o) { o.channels = 3; }, "2", "3"},
      {"generations", [](auto& o) { o.generations = 9; }, "8", "9"},
      {"message id bits", [](auto& o) { o.message_id_bits = 9, o.packet_offset_bits = 19; }, "10", "9"},
      {"packet offset bits", [](auto& o) { o.packet_offset_bits = 20, o.user_bits = 2; }, "18", "20"},
  };
  for (const Difference& difference : differences) {
    Pair pair({.qp = base(), .connected = false});
    QueuePairOptions options = base();
    difference.change(options);
    const auto other = QueuePair::create(pair.device(Site::B), options);
    ASSERT_TRUE(other.ok()) << other.error().message;
    const Result<void> connected = pair.a().connect((*other)->info());
    ASSERT_FALSE(connected.ok()) << difference.field;
    EXPECT_EQ(connected.error().code, ErrorCode::Mismatch);
    for (const std::string& part : {difference.field, difference.here, difference.there})
      EXPECT_NE(connected.error().message.find(part), std::string::npos)
          << part << " in: " << connected.error().message;
    EXPECT_TRUE(pair.a().connect(pair.b().info()).ok()) << "a refused info leaves the QP as it was";
  }
}

TEST(Connect, UserBits_MustAgreeToo) {
  sdk::QpInfo local;
  sdk::QpInfo remote;
  remote.layout.user_bits = 2;
  const Result<void> fits = sdk::check_compatible(local, remote);
  ASSERT_FALSE(fits.ok());
  EXPECT_NE(fits.error().message.find("user bits"), std::string::npos);
}

TEST(Connect, AnotherProtocolVersion_IsNamed) {
  Pair pair({.qp = base(), .connected = false});
  std::vector<std::byte> info = pair.b().info();
  info[7] = std::byte{77};
  const Result<void> connected = pair.a().connect(info);
  ASSERT_FALSE(connected.ok());
  EXPECT_EQ(connected.error().code, ErrorCode::Mismatch);
  for (const std::string part : {"version", "1 here", "77 at the peer"})
    EXPECT_NE(connected.error().message.find(part), std::string::npos) << connected.error().message;
}

TEST(QpInfo, CutAtAnyLength_IsRefused) {
  Pair pair({.qp = base(), .connected = false});
  const std::vector<std::byte> info = pair.b().info();
  for (std::size_t size = 0; size < info.size(); ++size) {
    const Result<void> connected = pair.a().connect(std::span(info).first(size));
    ASSERT_FALSE(connected.ok()) << size;
    ASSERT_FALSE(connected.error().message.empty());
  }
  EXPECT_TRUE(pair.a().connect(info).ok());
}

TEST(QpInfo, RandomAndChangedBytes_AreRefusedOrRead) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  Pair pair({.qp = base(), .connected = false});
  const std::vector<std::byte> info = pair.b().info();
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes = round % 2 == 0 ? info : std::vector<std::byte>(random() % 120);
    if (round % 2 == 0) {
      for (std::uint64_t n = 1 + random() % 3; n > 0; --n)
        bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    } else {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
      if (bytes.size() > 8 && round % 4 == 1) std::copy_n(info.begin(), 8, bytes.begin());
    }
    const auto decoded = sdk::QpInfo::decode(bytes);
    if (decoded.ok()) {
      ASSERT_LE(decoded->endpoint_info.size(), bytes.size());
    } else {
      ASSERT_FALSE(decoded.error().message.empty());
    }
  }
}

TEST(QpInfo, RoundTrips) {
  sdk::QpInfo info{.mtu = 1440,
                   .packets_per_chunk = 16,
                   .max_message = 1ULL << 40,
                   .slots = 1024,
                   .channels = 255,
                   .generations = 255,
                   .layout = {8, 22, 2},
                   .receive_buffer = 212992,
                   .endpoint_info = pattern(300, 1)};
  const std::vector<std::byte> blob = info.encode();
  EXPECT_EQ(blob.size(), sdk::QpInfo::encoded_size(300));
  const auto back = sdk::QpInfo::decode(blob);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(sdk::check_compatible(info, *back).ok());
  EXPECT_EQ(back->endpoint_info, info.endpoint_info);
  EXPECT_EQ(back->receive_buffer, info.receive_buffer);
}

TEST(Options, OutsideTheirLimits_AreRefusedWithTheValue) {
  const std::vector<std::pair<std::string, std::function<void(QueuePairOptions&)>>> cases{
      {"1020", [](auto& o) { o.mtu = 1020_B; }},
      {"56", [](auto& o) { o.mtu = 56_B; }},
      {"65536", [](auto& o) { o.mtu = 65536_B; }},
      {"3 packets per chunk", [](auto& o) { o.packets_per_chunk = 3; }},
      {"0 packets per chunk", [](auto& o) { o.packets_per_chunk = 0; }},
      {"4000", [](auto& o) { o.max_message = 4000_B; }},
      {"2147483648", [](auto& o) { o.max_message = 2_GiB; }},
      {"4294967296",
       [](auto& o) {
         o.mtu = 4096_B;
         o.packets_per_chunk = 1U << 20;
         o.packet_offset_bits = 24;
         o.message_id_bits = 4;
         o.slots = 8;
         o.max_message = 4_GiB;
       }},
      {"48 message slots", [](auto& o) { o.slots = 48; }},
      {"0 message slots", [](auto& o) { o.slots = 0; }},
      {"2048 message slots", [](auto& o) { o.slots = 2048; }},
      {"0", [](auto& o) { o.channels = 0; }},
      {"1 generations", [](auto& o) { o.generations = 1; }},
      {"10+18+3", [](auto& o) { o.user_bits = 3; }},
  };
  Pair pair;
  for (const auto& [value, change] : cases) {
    QueuePairOptions options = base();
    change(options);
    const auto made = QueuePair::create(pair.device(Site::A), options);
    ASSERT_FALSE(made.ok()) << value;
    EXPECT_EQ(made.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(made.error().message.find(value), std::string::npos) << value << " in: " << made.error().message;
  }
}

std::vector<std::vector<std::byte>> one_of_each_control() {
  std::vector<std::vector<std::byte>> all;
  const auto add = [&](auto&& write) {
    std::vector<std::byte> bytes(200);
    ByteWriter writer(bytes);
    write(writer);
    bytes.resize(writer.size());
    all.push_back(std::move(bytes));
  };
  add([](ByteWriter& w) {
    sdk::begin_cts(w, 12, 10);
    sdk::Announcement announcement{.max_length = 4096, .tag = 3};
    announcement.aim.size = 16;
    EXPECT_TRUE(sdk::put_announcement(w, announcement, 1));
    EXPECT_TRUE(sdk::put_announcement(w, {.max_length = 17}, 1));
  });
  add([](ByteWriter& w) { sdk::write_control(w, sdk::GrantsKnown{.known = 9, .wanted = true}); });
  add([](ByteWriter& w) { sdk::write_control(w, sdk::LandingReport{.landed = 1, .probe = 2}); });
  add([](ByteWriter& w) { sdk::write_control(w, sdk::LandingProbe{.sent = 3}); });
  return all;
}

TEST(Control, CutAtAnyLength_IsRefusedOrAShorterStatement) {
  for (const auto& whole : one_of_each_control()) {
    ASSERT_TRUE(sdk::parse_control(whole).has_value());
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const auto message = sdk::parse_control(std::span(whole).first(size));
      if (!message) continue;
      // Only a CTS has no fixed length: of its announcements the whole ones are read.
      ASSERT_TRUE(std::holds_alternative<sdk::ClearToSend>(*message)) << size;
      ByteReader reader(std::get<sdk::ClearToSend>(*message).announcements);
      int runs = 0;
      while (sdk::next_announcement(reader)) ++runs;
      ASSERT_LE(runs, 1);
    }
  }
}

TEST(Control, OneByteTooMany_IsRefused) {
  const auto all = one_of_each_control();
  for (std::size_t i = 1; i < all.size(); ++i) {
    std::vector<std::byte> longer = all[i];
    longer.push_back(std::byte{0});
    EXPECT_FALSE(sdk::parse_control(longer).has_value()) << i;
  }
}

TEST(Control, OfAnotherVersionOrKind_IsCountedAndDropped) {
  Pair pair({.qp = base()});
  for (const int kind : {0, 6, 200}) {
    const std::array<std::byte, 4> datagram{static_cast<std::byte>(kind), std::byte{sdk::kControlVersion}};
    pair.endpoint_a().inject_control(datagram, pair.endpoint_a().token(), pair.now());
  }
  const std::array<std::byte, 4> other_version{std::byte{5}, std::byte{sdk::kControlVersion + 1}};
  pair.endpoint_a().inject_control(other_version, pair.endpoint_a().token(), pair.now());
  pair.endpoint_a().inject_control({}, pair.endpoint_a().token(), pair.now());
  pair.run_for(std::chrono::milliseconds(1));
  EXPECT_EQ(pair.a().counters().malformed_controls, 5U);
  EXPECT_FALSE(pair.a().receive_control().has_value());
}

TEST(Control, RandomDatagrams_NeverStopTheTraffic) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  const auto known = one_of_each_control();
  for (int round = 0; round < 30; ++round) {
    Pair pair({.qp = base()});
    std::vector<std::byte> target(100000);
    for (std::uint64_t message = 0; message < 5; ++message) {
      for (int i = 0; i < 60; ++i) {
        std::vector<std::byte> datagram(random() % 64);
        for (std::byte& byte : datagram) byte = static_cast<std::byte>(random());
        if (datagram.size() > 1 && random() % 2 == 0) {
          datagram[0] = static_cast<std::byte>(1 + random() % 5);
          datagram[1] = std::byte{sdk::kControlVersion};
        }
        ASSERT_NO_FATAL_FAILURE((void)sdk::parse_control(datagram));
        // Statements with random numbers may well be lies about this connection; those of unknown form may not matter.
        if (const auto message_read = sdk::parse_control(datagram);
            message_read && !std::holds_alternative<sdk::UpperDatagram>(*message_read) &&
            !std::holds_alternative<sdk::LandingProbe>(*message_read))
          continue;
        auto& endpoint = random() % 2 == 0 ? pair.endpoint_a() : pair.endpoint_b();
        endpoint.inject_control(datagram, endpoint.token(), pair.now());
      }
      const RecvHandle receive = *pair.b().post_receive(target);
      const std::vector<std::byte> source = pattern(target.size(), message);
      const auto read_all = [&] {
        while (pair.a().receive_control() || pair.b().receive_control()) {
        }
      };
      ASSERT_TRUE(pair.run_until([&] {
        read_all();
        return pair.a().next_grant().has_value();
      }));
      pair.send(source);
      ASSERT_TRUE(pair.run_until([&] {
        read_all();
        return pair.chunks(receive) == 25;
      }));
      ASSERT_EQ(source, target);
      ASSERT_TRUE(pair.b().complete(receive).ok());
    }
  }
}

// A peer that lies breaks its own messages, never memory, time or the process.
TEST(Control, LyingStatements_AreHarmless) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    Pair pair({.qp = base()});
    std::vector<std::byte> target(5000);
    ASSERT_TRUE(pair.b().post_receive(target).ok());
    for (int i = 0; i < 50; ++i) {
      std::vector<std::byte> datagram = one_of_each_control()[random() % 4];
      for (std::uint64_t n = random() % 4; n > 0; --n)
        datagram[2 + random() % (datagram.size() - 2)] = static_cast<std::byte>(random());
      auto& endpoint = random() % 2 == 0 ? pair.endpoint_a() : pair.endpoint_b();
      endpoint.inject_control(datagram, endpoint.token(), pair.now());
      if (pair.a().next_grant()) (void)pair.a().post_send(std::span(target).first(random() % 5000), 1);
      (void)pair.b().post_receive(target);
      pair.run_for(std::chrono::milliseconds(1));
    }
  }
}

TEST(Control, DatagramsOfTheLayerAbove_ComeThroughWholeAndInOrder) {
  Pair pair({.qp = base()});
  std::vector<std::vector<std::byte>> sent;
  for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{500}, pair.a().max_control()}) {
    sent.push_back(pattern(size, size));
    ASSERT_TRUE(pair.a().send_control(sent.back(), pair.now()));
  }
  EXPECT_FALSE(pair.a().send_control(std::vector<std::byte>(pair.a().max_control() + 1), pair.now()));
  std::vector<std::vector<std::byte>> received;
  ASSERT_TRUE(pair.run_until([&] {
    while (const auto datagram = pair.b().receive_control()) received.emplace_back(datagram->begin(), datagram->end());
    return received.size() == sent.size();
  }));
  EXPECT_EQ(received, sent);
}

TEST(Control, DatagramsThatNobodyFetches_DoNotHoldUpTheCts) {
  Pair pair({.qp = base()});
  std::vector<std::byte> target(64);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(pair.b().send_control(target, pair.now()));
  ASSERT_TRUE(pair.b().post_receive(target).ok());
  EXPECT_TRUE(pair.run_until([&] { return pair.a().next_grant().has_value(); }, std::chrono::milliseconds(20)));
}

}  // namespace
}  // namespace sdr
