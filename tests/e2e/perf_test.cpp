// sdr perf and sdr info as their users run them: processes over loopback, with an emulated link where loss matters.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/e2e/sdr_command.hpp"
#include "tests/e2e/tcp_peer.hpp"

namespace sdr::testing {
namespace {

using Arguments = std::vector<std::string>;

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

Outcome run(const Arguments& arguments) {
  SdrCommand command(arguments);
  const int code = command.wait();
  return {code, command.out(), command.err()};
}

// A field of the JSON that a command printed, or of the object `within` it.
std::string field(const std::string& json, const std::string& name, const std::string& within = "") {
  const std::size_t from = within.empty() ? 0 : json.find("\"" + within + "\": {");
  const std::string mark = "\"" + name + "\": ";
  const std::size_t at = from == std::string::npos ? from : json.find(mark, from);
  if (at == std::string::npos) return "(missing)";
  return json.substr(at + mark.size(), json.find_first_of(",\n", at) - at - mark.size());
}

double number(const std::string& json, const std::string& name, const std::string& within = "") {
  return std::strtod(field(json, name, within).c_str(), nullptr);
}

// One line, that begins with the command's name.
bool is_one_line(const std::string& text, const std::string& beginning) {
  return text.starts_with(beginning) && !text.empty() && text.find('\n') == text.size() - 1;
}

// Descendants of this process that run `sdr`: the child of `perf --self` among them.
pid_t only_child_of(pid_t parent) {
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  pid_t child = -1;
  return file >> child ? child : -1;
}

bool is_gone(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return !(file >> number >> name >> state) || state == "Z";
}

// --- measuring ---

class EveryScheme : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryScheme, OnLoopback_DeliversAndVerifiesEveryWrite) {
  const Outcome result =
      run({"perf", "--self", "--json", "--scheme", GetParam(), "--size", "300001", "--iters", "30", "--inflight", "4"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(field(result.out, "verified"), "true");
  EXPECT_EQ(number(result.out, "writes_complete"), 30);
  EXPECT_EQ(field(result.out, "size_bytes"), "300001");
  EXPECT_GT(number(result.out, "goodput_gbps"), 0);
  EXPECT_EQ(field(result.out, "ideal_ms"), "null") << "without a rate there is no ideal";
  EXPECT_LE(number(result.out, "p50", "completion_ms"), number(result.out, "max", "completion_ms"));
}

INSTANTIATE_TEST_SUITE_P(Schemes, EveryScheme,
                         ::testing::Values("none", "sr-rto", "sr-nack", "ec-xor", "ec-rs", "adaptive"),
                         [](const auto& scheme) {
                           std::string name = scheme.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

class EveryReliableScheme : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryReliableScheme, OverALossyLink_RepairsWhatIsLost) {
  const Outcome result = run({"perf", "--self", "--json", "--scheme", GetParam(), "--size", "1MiB", "--iters", "4",
                              "--warmup", "0", "--link", "rtt=20ms,rate=400Mbit,loss=1e-2,seed=5"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(field(result.out, "verified"), "true");
  EXPECT_EQ(field(result.out, "mtu"), "1456") << "what a link of 1500 bytes carries";
  // packets_lost goes by when an end took in what had come, which a busy host settles: tests/reliability looks at it.
  EXPECT_GT(number(result.out, "chunks_retransmitted") + number(result.out, "chunks_recovered"), 0);
  // 8 Mibit at 400 Mbit/s, and the RTT.
  EXPECT_NEAR(number(result.out, "ideal_ms"), 40.97, 0.01);
  EXPECT_GE(number(result.out, "mean", "slowdown"), 1.0);
  EXPECT_GE(number(result.out, "rtt_ms"), 19.0);
}

INSTANTIATE_TEST_SUITE_P(Schemes, EveryReliableScheme,
                         ::testing::Values("sr-rto", "sr-nack", "ec-xor", "ec-rs:16:6", "adaptive"),
                         [](const auto& scheme) {
                           std::string name = scheme.param;
                           for (char& c : name) c = c == '-' || c == ':' ? '_' : c;
                           return name;
                         });

TEST(Perf, SchemeNone_OverALossyLink_CountsTheLostMessagesAndEnds) {
  const Outcome result = run({"perf", "--self", "--json", "--scheme", "none", "--size", "1MiB", "--iters", "3",
                              "--inflight", "3", "--link", "rtt=5ms,rate=1Gbit,loss=5e-2"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(field(result.out, "verified"), "false");
  EXPECT_EQ(number(result.out, "messages_lost"), 3);
  EXPECT_GT(number(result.out, "packets_lost"), 0);
  EXPECT_TRUE(is_one_line(result.err, "sdr perf: ")) << result.err;
}

TEST(Perf, OddSizesAndChannels_Verify) {
  for (const char* size : {"1", "1455", "1457", "65537"}) {
    const Outcome result = run({"perf", "--self", "--json", "--size", size, "--iters", "5", "--mtu", "1456", "--chunk",
                                "2p", "--channels", "3", "--scheme", "ec-xor"});
    EXPECT_EQ(result.code, 0) << size << ": " << result.err;
    EXPECT_EQ(field(result.out, "verified"), "true") << size;
    EXPECT_EQ(field(result.out, "chunk_bytes"), "2912");
  }
}

TEST(Perf, KAndM_AreOptionsToo) {
  const Outcome result =
      run({"perf", "--self", "--json", "--size", "1MiB", "--iters", "2", "--scheme", "ec-rs", "--k", "8", "--m", "3"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(field(result.out, "scheme"), "\"ec-rs:8:3\"");
}

TEST(Perf, ForAPerson_PrintsATable) {
  const Outcome result = run({"perf", "--self", "--size", "64KiB", "--iters", "3", "--rate", "1Gbit"});
  ASSERT_EQ(result.code, 0) << result.err;
  for (const char* word : {"scheme", "completion", "slowdown", "goodput", "verified", "Writes"}) {
    EXPECT_NE(result.out.find(word), std::string::npos) << word << " is not in\n" << result.out;
  }
}

// --- two hosts ---

TEST(PerfListener, ServesOneClientAfterAnother) {
  SdrCommand listener({"perf", "--listen", "127.0.0.1:0"});
  const std::string at = listener.address();
  ASSERT_FALSE(at.empty()) << listener.err();
  for (const char* scheme : {"sr-nack", "none", "ec-rs"}) {
    const Outcome client = run({"perf", at, "--json", "--size", "200KB", "--iters", "3", "--scheme", scheme});
    EXPECT_EQ(client.code, 0) << client.err;
    EXPECT_EQ(field(client.out, "verified"), "true");
  }
  EXPECT_FALSE(listener.ended());
}

TEST(PerfListener, Once_EndsAfterOneClientAndReports) {
  SdrCommand listener({"perf", "--listen", "127.0.0.1:0", "--once", "--json"});
  const Outcome client = run({"perf", listener.address(), "--size", "200KB", "--iters", "3"});
  EXPECT_EQ(client.code, 0) << client.err;
  EXPECT_EQ(listener.wait(), 0) << listener.err();
  EXPECT_EQ(number(listener.out(), "writes"), 3);
}

TEST(PerfListener, Once_CountsNoneWhoDoesNotSpeakTheProtocol) {
  SdrCommand listener({"perf", "--listen", "127.0.0.1:0", "--once"});
  const std::string at = listener.address();
  TcpPeer::connect(at).send("GET / HTTP/1.1\r\n\r\n");
  { const TcpPeer scanner = TcpPeer::connect(at); }
  const Outcome client = run({"perf", at, "--size", "20KB", "--iters", "1"});
  EXPECT_EQ(client.code, 0) << client.err;
  EXPECT_EQ(listener.wait(), 0) << listener.err();
}

TEST(PerfListener, OnIpv6_Serves) {
  SdrCommand listener({"perf", "--listen", "[::1]:0", "--once"});
  const std::string at = listener.address();
  if (at.empty()) GTEST_SKIP() << "no IPv6 here: " << listener.err();
  const Outcome client = run({"perf", at, "--json", "--size", "200KB", "--iters", "3"});
  EXPECT_EQ(client.code, 0) << client.err;
  EXPECT_EQ(field(client.out, "verified"), "true");
}

TEST(PerfListener, OnAnyAddress_ServesAClientByName) {
  SdrCommand listener({"perf", "--listen", "[::]:0", "--once"});
  const std::string at = listener.address();
  if (at.empty()) GTEST_SKIP() << "no IPv6 here: " << listener.err();
  const Outcome client = run({"perf", "127.0.0.1" + at.substr(at.rfind(':')), "--size", "200KB", "--iters", "3"});
  EXPECT_EQ(client.code, 0) << client.err;
}

TEST(PerfListener, GarbageSilenceAndScanners_DoNotStopIt) {
  SdrCommand listener({"perf", "--listen", "127.0.0.1:0"});
  const std::string at = listener.address();
  const TcpPeer garbage = TcpPeer::connect(at);
  garbage.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(garbage.receive_all(), "");
  const TcpPeer liar = TcpPeer::connect(at);
  liar.send(TcpPeer::frame(R"({"command":"perf","path":{"mtu":-1},"plan":[1]})", 1));
  EXPECT_NE(liar.receive_all().find("error"), std::string::npos);
  const TcpPeer greedy = TcpPeer::connect(at);
  greedy.send(TcpPeer::frame(
      R"({"command":"perf","path":{"scheme":"sr-nack","mtu":1456,"mtu_given":false,"chunk":"auto","channels":1,"link":"",)"
      R"("rate_bits_per_second":0,"timeout_ns":1000000000},"plan":{"size_bytes":99999999999999,"iterations":1,)"
      R"("warmup":0,"inflight":1,"verify":true,"seed":1}})",
      1));
  EXPECT_NE(greedy.receive_all().find("memory"), std::string::npos);
  const TcpPeer deep = TcpPeer::connect(at);
  deep.send(
      TcpPeer::frame(R"({"command":"perf","path":)" + std::string(500'000, '[') + std::string(500'000, ']') + "}", 1));
  EXPECT_NE(deep.receive_all().find("nested deeper"), std::string::npos);
  const TcpPeer silent = TcpPeer::connect(at);  // until its time is up
  const Outcome client = run({"perf", at, "--size", "200KB", "--iters", "3"});
  EXPECT_EQ(client.code, 0) << client.err;
  EXPECT_FALSE(listener.ended());
}

TEST(PerfListener, ThoseWhoSayNothing_KeepNobodyWaiting) {
  SdrCommand listener({"perf", "--listen", "127.0.0.1:0"});
  const std::string at = listener.address();
  std::vector<TcpPeer> silent;
  silent.reserve(100);
  // More than a client's patience has room for, one after another.
  for (int i = 0; i < 20; ++i) silent.push_back(TcpPeer::connect(at));
  for (int i = 0; i < 2; ++i) {
    const Outcome client = run({"perf", at, "--size", "20KB", "--iters", "2", "--timeout", "20s"});
    EXPECT_EQ(client.code, 0) << client.err;
  }
  EXPECT_TRUE(eventually([&] { return listener.says("said nothing for 3"); })) << listener.err();
  EXPECT_FALSE(listener.ended());
}

TEST(PerfListener, MeetsSend_SaysSoAtBothEnds) {
  SdrCommand listener({"perf", "--listen", "127.0.0.1:0", "--once"});
  const Outcome client = run({"send", SDR_BINARY_DIR "/CMakeCache.txt", listener.address()});
  EXPECT_EQ(client.code, 1);
  EXPECT_NE(client.err.find("sdr perf"), std::string::npos) << client.err;
  EXPECT_EQ(listener.wait(), 1);
}

TEST(PerfListener, GivenWhatTheClientDoesNotSay_NamesBothValuesAtBothEnds) {
  struct Case {
    Arguments listener, client;
    std::string says;
  };
  const std::vector<Case> cases = {
      {{"--mtu", "1024"}, {"--mtu", "2048"}, "MTU: 1024 at the listener, 2048 at its peer"},
      {{"--chunk", "4p"}, {"--chunk", "8p"}, "packets per chunk: 4 at the listener, 8 at its peer"},
      {{"--channels", "2"}, {}, "channels: 2 at the listener, 1 at its peer"},
      {{"--scheme", "ec-rs:16:4"}, {"--scheme", "ec-rs"}, "scheme: ec-rs:16:4 at the listener, ec-rs:32:8 at its peer"},
      {{"--link", "rtt=5ms"}, {}, "link: rtt=5ms at the listener, none at its peer"},
      {{"--rate", "1Gbit"}, {"--rate", "2Gbit"}, "rate: 1.00 Gbit/s at the listener, 2.00 Gbit/s at its peer"},
  };
  for (const Case& mismatch : cases) {
    Arguments listens = {"perf", "--listen", "127.0.0.1:0", "--once"};
    listens.insert(listens.end(), mismatch.listener.begin(), mismatch.listener.end());
    SdrCommand listener(listens);
    Arguments asks = {"perf", listener.address(), "--size", "20KB", "--iters", "1"};
    asks.insert(asks.end(), mismatch.client.begin(), mismatch.client.end());
    const Outcome client = run(asks);
    EXPECT_EQ(client.code, 1) << mismatch.says;
    EXPECT_TRUE(is_one_line(client.err, "sdr perf: ")) << client.err;
    EXPECT_NE(client.err.find(mismatch.says), std::string::npos) << client.err;
    EXPECT_EQ(listener.wait(), 1) << mismatch.says;
    EXPECT_TRUE(listener.says(mismatch.says)) << listener.err();
  }
}

TEST(PerfListener, GivenWhatTheClientSaysToo_Serves) {
  SdrCommand listener({"perf", "--listen", "127.0.0.1:0", "--once", "--mtu", "1024", "--chunk", "4KiB", "--link",
                       "rate=1Gbit,rtt=2ms", "--scheme", "ec-xor"});
  // The MTU is the smaller one where the client leaves it open.
  const Outcome client = run({"perf", listener.address(), "--size", "20KB", "--iters", "1", "--chunk", "4p", "--link",
                              "rtt=2ms,rate=1Gbit", "--scheme", "ec-xor:32:8"});
  EXPECT_EQ(client.code, 0) << client.err;
  EXPECT_EQ(listener.wait(), 0) << listener.err();
}

TEST(Perf, PeerOfAnotherVersion_IsNamedWithBothVersions) {
  TcpPeer server = TcpPeer::listen();
  SdrCommand client({"perf", server.address(), "--size", "1KB"});
  server.accept();
  server.send(TcpPeer::frame("{}", 77));
  EXPECT_EQ(client.wait(), 1);
  EXPECT_TRUE(is_one_line(client.err(), "sdr perf: ")) << client.err();
  EXPECT_NE(client.err().find("77"), std::string::npos);
  EXPECT_NE(client.err().find("version 1"), std::string::npos);

  SdrCommand listener({"perf", "--listen", "127.0.0.1:0", "--once"});
  const TcpPeer old = TcpPeer::connect(listener.address());
  old.send(TcpPeer::frame("{}", 77));
  EXPECT_TRUE(old.receive_all().starts_with("SDRS")) << "the other end learns our version from a frame of ours";
  EXPECT_EQ(listener.wait(), 1);
  EXPECT_NE(listener.err().find("77"), std::string::npos);
}

TEST(Perf, ServerThatSaysNothing_IsAnErrorInBoundedTime) {
  const TcpPeer server = TcpPeer::listen();
  const Outcome client = run({"perf", server.address(), "--size", "1KB", "--timeout", "1s"});
  EXPECT_EQ(client.code, 1);
  EXPECT_TRUE(is_one_line(client.err, "sdr perf: ")) << client.err;
}

TEST(Perf, WhenOneOfThePairDies_TheOtherFollows) {
  const Arguments endless = {"perf", "--self", "--size", "64KiB", "--iters", "100000000"};
  SdrCommand parent_dies(endless);
  pid_t child = -1;
  ASSERT_TRUE(eventually([&] { return (child = only_child_of(parent_dies.pid())) > 0; }));
  parent_dies.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return is_gone(child); }));

  SdrCommand child_dies(endless);
  ASSERT_TRUE(eventually([&] { return (child = only_child_of(child_dies.pid())) > 0; }));
  kill(child, SIGKILL);
  EXPECT_EQ(child_dies.wait(), 1);
  EXPECT_TRUE(is_one_line(child_dies.err(), "sdr perf: ")) << child_dies.err();
}

// --- wrong usage, and what cannot be ---

struct Wrong {
  Arguments arguments;
  std::string says;
};

TEST(PerfUsage, WrongUsage_IsOneLineAndExitCode2) {
  const std::vector<Wrong> cases = {
      {Arguments{}, "subcommand"},
      {{"frob"}, "frob"},
      {{"perf"}, "--self"},
      {{"perf", "--self", "127.0.0.1:7000"}, "one of"},
      {{"perf", "--frob"}, "--frob"},
      {{"perf", "--self", "--size", "banana"}, "banana"},
      {{"perf", "--self", "--size", "0"}, "size 0"},
      {{"perf", "--self", "--iters", "0"}, "--iters"},
      {{"perf", "--self", "--inflight", "513"}, "512"},
      {{"perf", "--self", "--scheme", "tcp"}, "sr-nack"},
      {{"perf", "--self", "--scheme", "ec-rs:0:8"}, "255"},
      {{"perf", "--self", "--scheme", "ec-rs:200:100"}, "255"},
      {{"perf", "--self", "--mtu", "1457"}, "multiple of 8"},
      {{"perf", "--self", "--link", "rtt=fast"}, "fast"},
      {{"perf", "--self", "--rate", "1furlong"}, "1furlong"},
      {{"perf", "--self", "--timeout", "5"}, "unit"},
      {{"perf", "--self", "--timeout", "0s"}, "above zero"},
      {{"perf", "--self", "--rate", "0"}, "from 1kbit to 1000Tbit"},
      {{"perf", "--self", "--scheme", "sr-nack", "--k", "4"}, "erasure codes"},
      {{"perf", "--listen", "127.0.0.1:65535"}, "65535"},
      {{"perf", "--self", "--transport", "carrier-pigeon"}, "udp"},
      {{"perf", "--self", "--transport", "verbs"}, "--device"},
      {{"perf", "--self", "--transport", "verbs", "--device", "rxe0", "--gid", "256"}, "255"},
      {{"perf", "--self", "--gid", "1"}, "--transport verbs"},
      {{"perf", "127.0.0.1"}, "ADDRESS:PORT"},
      {{"perf", "127.0.0.1:70000"}, "65535"},
      {{"perf", "--listen", "127.0.0.1"}, "ADDRESS:PORT"},
      {{"info", "--frob"}, "--frob"},
  };
  for (const Wrong& wrong : cases) {
    const Outcome result = run(wrong.arguments);
    std::string line = "sdr";
    for (const std::string& argument : wrong.arguments) line += " " + argument;
    EXPECT_EQ(result.code, 2) << line << "\n" << result.err;
    EXPECT_TRUE(is_one_line(result.err, "sdr")) << line << "\n" << result.err;
    EXPECT_NE(result.err.find(wrong.says), std::string::npos) << line << "\n" << result.err;
    EXPECT_EQ(result.out, "") << line;
  }
}

TEST(PerfUsage, Failures_AreOneLineAndExitCode1) {
  const TcpPeer taken = TcpPeer::listen();
  for (const Arguments& arguments :
       {Arguments{"perf", "--self", "--mtu", "1456", "--chunk", "6000"},
        Arguments{"perf", "--self", "--mtu", "1456", "--chunk", "3p"}, Arguments{"perf", "--listen", taken.address()},
        Arguments{"perf", "--listen", "203.0.113.1:7000"}, Arguments{"perf", TcpPeer::unused_address()},
        Arguments{"perf", "--self", "--transport", "verbs", "--device", "no-such-device"},
        Arguments{"perf", "no-such-host.invalid:7000"}}) {
    const Outcome result = run(arguments);
    EXPECT_EQ(result.code, 1) << arguments.back() << "\n" << result.err;
    EXPECT_TRUE(is_one_line(result.err, "sdr perf: ")) << result.err;
  }
}

TEST(PerfUsage, TakenUdpPort_IsNamedAtBothEnds) {
  SdrCommand listener({"perf", "--listen", "127.0.0.1:0"});
  const std::string at = listener.address();
  const std::string port = at.substr(at.rfind(':') + 1);
  const int squatter = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoul(port)));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(squatter, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const Outcome client = run({"perf", at, "--size", "1KB"});
  close(squatter);
  EXPECT_EQ(client.code, 1);
  EXPECT_NE(client.err.find(port), std::string::npos) << client.err;
  EXPECT_TRUE(eventually([&] { return listener.says("in use"); })) << listener.err();
}

TEST(Perf, PacketsOfTheLeastMtu_Arrive) {
  for (const char* scheme : {"adaptive", "none"}) {
    const Outcome result =
        run({"perf", "--self", "--json", "--mtu", "64", "--size", "20KB", "--iters", "2", "--scheme", scheme});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(field(result.out, "verified"), "true");
  }
}

TEST(Perf, AMaxRateBelowTheRate_IsTheRate) {
  const Outcome result =
      run({"perf", "--self", "--json", "--rate", "1Gbit", "--max-rate", "100Mbit", "--size", "20KB", "--iters", "2"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NEAR(number(result.out, "rate_gbps"), 0.1, 1e-9);
  SdrCommand listener({"perf", "--listen", "127.0.0.1:0", "--once", "--rate", "50Mbit"});
  const Outcome faster =
      run({"perf", listener.address(), "--rate", "1Gbit", "--max-rate", "100Mbit", "--size", "20KB"});
  EXPECT_EQ(faster.code, 1) << "more than the listener's line has";
  EXPECT_NE(faster.err.find("differ in rate"), std::string::npos) << faster.err;
}

TEST(PerfUsage, AProfileThatCannotBeWritten_IsSaidBeforeTheRun) {
  // Nobody listens there: the file is looked at first.
  const Outcome result = run({"perf", "127.0.0.1:1", "--profile", "/nonexistent/path.json"});
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("cannot write /nonexistent/path.json"), std::string::npos) << result.err;
  const TemporaryDirectory directory;
  const std::string file = (directory / "path.json").string();
  EXPECT_EQ(run({"perf", "127.0.0.1:1", "--profile", file}).code, 1);
  EXPECT_FALSE(std::filesystem::exists(file)) << "nothing is left of a run that came to nothing";
}

TEST(PerfUsage, WhatIsBeyondItsLimit_IsRefusedWithTheLimit) {
  const std::pair<Arguments, std::string> cases[] = {
      {{"--link", "trace=/dev/zero"}, "longer than 16"},
      {{"--rate", "1bit"}, "1kbit"},
      {{"--rate", "2000Tbit"}, "1000Tbit"},
  };
  for (const auto& [more, words] : cases) {
    Arguments arguments = {"perf", "--self", "--size", "1KB"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome result = run(arguments);
    EXPECT_EQ(result.code, 2) << result.err;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  }
  const Outcome chunk = run({"perf", "--self", "--size", "1KB", "--chunk", "1TiB"});
  EXPECT_NE(chunk.err.find("is more than 262144 packets"), std::string::npos) << chunk.err;
}

TEST(Help, OfEverySubcommand_HasExamples) {
  EXPECT_EQ(run({"--help"}).code, 0);
  for (const char* subcommand : {"perf", "info", "send", "recv"}) {
    const Outcome help = run({subcommand, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.out.find("Examples:"), std::string::npos) << subcommand;
    EXPECT_NE(help.out.find(std::string("  sdr ") + subcommand), std::string::npos) << subcommand;
  }
}

// --- what was learned ---

TEST(Perf, Profile_IsWhatTheSenderLearned_AndThePlannerTakesIt) {
  const TemporaryDirectory directory;
  const std::string file = (directory / "path.json").string();
  const Outcome measured = run({"perf", "--self", "--size", "4MiB", "--iters", "6", "--link",
                                "rtt=5ms,rate=400Mbit,loss=2e-2", "--profile", file});
  ASSERT_EQ(measured.code, 0) << measured.err;
  const Outcome planned = run({"plan", "--link-profile", file, "--size", "4MiB", "--json"});
  ASSERT_EQ(planned.code, 0) << planned.err;
  // How near it comes goes by how busy the host is; that it comes near on an idle one is LinkEstimator's to show.
  EXPECT_GT(number(planned.out, "loss"), 2e-3);
  EXPECT_LT(number(planned.out, "loss"), 2e-1);
  EXPECT_GE(number(planned.out, "rtt_ms"), 5);
  const Outcome bare = run({"perf", "--self", "--scheme", "none", "--profile", file});
  EXPECT_EQ(bare.code, 2);
  EXPECT_NE(bare.err.find("--profile"), std::string::npos) << bare.err;
}

// --- info ---

TEST(Info, InJson_HasDevicesKernelAndLimits) {
  const Outcome info = run({"info", "--json"});
  ASSERT_EQ(info.code, 0) << info.err;
  EXPECT_NE(info.out.find("\"udp:127.0.0.1\""), std::string::npos) << info.out;
  for (const char* name : {"udp_segment", "udp_gro"}) {
    EXPECT_TRUE(field(info.out, name) == "true" || field(info.out, name) == "false") << name;
  }
  EXPECT_EQ(field(info.out, "payload_min_bytes"), "64");
  EXPECT_GT(number(info.out, "state_bytes"), 0);
  EXPECT_EQ(field(info.out, "late_packet_reuses"), "7");
}

TEST(Info, ForAPerson_PrintsATable) {
  const Outcome info = run({"info"});
  ASSERT_EQ(info.code, 0) << info.err;
  for (const char* word : {"device", "kernel", "limits", "late packets"}) {
    EXPECT_NE(info.out.find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace sdr::testing
