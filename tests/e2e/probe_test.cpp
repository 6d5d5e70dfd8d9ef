// sdr probe as its users run it: processes over loopback, with an emulated link whose losses are known.
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/sdr_command.hpp"
#include "tests/e2e/tcp_peer.hpp"

namespace sdr::testing {
namespace {

using Arguments = std::vector<std::string>;
using Json = nlohmann::json;

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;

  [[nodiscard]] Json json() const { return Json::parse(out, nullptr, false); }
};

Outcome run(const Arguments& arguments) {
  SdrCommand command(arguments);
  const int code = command.wait();
  return {code, command.out(), command.err()};
}

Outcome probe(const Arguments& more) {
  Arguments arguments = {"probe", "--self", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run(arguments);
}

bool is_one_line(const std::string& text) {
  return text.starts_with("sdr probe: ") && text.find('\n') == text.size() - 1;
}

void expect_sums(const Json& payload) {
  // What the socket dropped came over the path. A duplicate that it dropped is in the sum, too: none here.
  EXPECT_EQ(payload["arrived"].get<int>() + payload["lost"].get<int>() + payload["host_drops"].get<int>(),
            payload["packets"].get<int>());
}

// --- what is measured ---

TEST(Probe, OfALossyLink_FindsItsLossWithinTheInterval) {
  const Outcome result = probe({"--link", "rtt=4ms,rate=400Mbit,loss=1e-2,seed=3", "--flows", "4", "--payload", "1KiB",
                                "--trials", "2", "--packets", "5000"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json json = result.json();
  const Json& payload = json["payloads"][0];
  EXPECT_EQ(payload["packets"], 2 * 4 * 5000);
  expect_sums(payload);
  // The interval's reach is two deviations; echoes among the load take draws, so that the seed does not settle it.
  const double reach = payload["loss_high"].get<double>() - payload["loss_low"].get<double>();
  EXPECT_NEAR(payload["loss"].get<double>(), 1e-2, reach);
  EXPECT_LT(reach, 3e-3);
  EXPECT_NEAR(payload["mean_burst"].get<double>(), 1, 0.2);
  EXPECT_EQ(payload["reordered"], 0);
  EXPECT_EQ(payload["flow_loss"]["samples"], 8);
  EXPECT_EQ(payload["by_trial"].size(), 2U);
  EXPECT_GE(json["rtt_ms"]["min"].get<double>(), 4.0);
  EXPECT_GE(json["rtt_loaded_ms"]["min"].get<double>(), 4.0);
}

TEST(Probe, OfBursts_FindsTheirMeanLength) {
  const Outcome result = probe({"--link", "rtt=2ms,rate=400Mbit,loss=2e-2,burst=8,seed=4", "--flows", "4", "--payload",
                                "512", "--trials", "2", "--packets", "8000"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json payload = result.json()["payloads"][0];
  expect_sums(payload);
  // About 160 runs, whose lengths vary as much as their mean.
  EXPECT_NEAR(payload["mean_burst"].get<double>(), 8, 2.5);
  EXPECT_GT(payload["bursts_in_order"]["max"].get<int>(), 8);
  EXPECT_LT(payload["bursts_in_flow"]["mean"].get<double>(), 4) << "a flow of four meets a part of each";
}

TEST(Probe, OfReorderingAndDuplicates_CountsThemAndNoLoss) {
  const Outcome result = probe({"--link", "rtt=4ms,rate=200Mbit,reorder=1e-2,dup=2e-2,seed=5", "--flows", "1",
                                "--payload", "1000", "--trials", "1", "--packets", "5000"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json payload = result.json()["payloads"][0];
  EXPECT_EQ(payload["lost"], 0);
  EXPECT_NEAR(payload["reorder"].get<double>(), 1e-2, 5e-3);
  EXPECT_NEAR(payload["duplicates"].get<double>() / 5000, 2e-2, 1e-2);
}

TEST(Probe, WithLossBySize_FindsThatLargerPacketsAreLostMore) {
  const Outcome result = probe({"--link", "rtt=1ms,rate=400Mbit,loss=5e-3,losssize=1052,seed=6", "--flows", "2",
                                "--payload", "8KiB,1KiB", "--trials", "1", "--packets", "2000"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json payloads = result.json()["payloads"];
  ASSERT_EQ(payloads.size(), 2U);
  EXPECT_EQ(payloads[0]["bytes"], 1024) << "ascending";
  EXPECT_GT(payloads[1]["loss"].get<double>(), 2 * payloads[0]["loss"].get<double>());
}

TEST(Probe, OnLoopback_LosesNothingOnThePath) {
  const Outcome result = probe({"--flows", "3", "--duration", "200ms", "--rate", "100Mbit", "--trials", "1"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json json = result.json();
  ASSERT_EQ(json["payloads"].size(), 4U) << "1, 2, 4 and 8 KiB";
  for (const Json& payload : json["payloads"]) {
    EXPECT_EQ(payload["lost"], 0) << payload;
    expect_sums(payload);
  }
}

TEST(Probe, ASenderThatStops_OverrunsNoQueue) {
  SdrCommand listener({"probe", "--listen", "127.0.0.1:0", "--once"});
  SdrCommand client({"probe", listener.address(), "--json", "--link", "rtt=4ms,rate=100Mbit", "--flows", "1",
                     "--payload", "1000", "--trials", "1", "--packets", "15000", "--timeout", "30s"});
  // Through the idle echoes into the load of 1.2 s.
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  for (int stop = 0; stop < 10; ++stop) {
    client.signal(SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    client.signal(SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  ASSERT_EQ(client.wait(), 0) << client.err();
  EXPECT_EQ(listener.wait(), 0) << listener.err();
  EXPECT_EQ(Json::parse(client.out())["payloads"][0]["lost"], 0);
}

TEST(Probe, AReceiverThatStops_ExplainsItsOwnDrops) {
  SdrCommand listener({"probe", "--listen", "127.0.0.1:0", "--once"});
  SdrCommand client({"probe", listener.address(), "--json", "--flows", "1", "--payload", "8KiB", "--trials", "1",
                     "--packets", "30000", "--rate", "1Gbit", "--timeout", "30s"});
  // Through the idle echoes into the load, which is longer than the stop.
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  listener.signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  listener.signal(SIGCONT);
  ASSERT_EQ(client.wait(), 0) << client.err();
  EXPECT_EQ(listener.wait(), 0) << listener.err();
  const Json payload = Json::parse(client.out())["payloads"][0];
  EXPECT_EQ(payload["lost"], 0) << payload;
  // Ends of the flow that found no room are among the drops as well.
  EXPECT_GE(payload["arrived"].get<int>() + payload["host_drops"].get<int>(), 30000);
}

// --- what is written ---

TEST(Probe, Profile_IsReadByPlan_AndPlotIsAPicture) {
  const TemporaryDirectory files;
  const std::string profile = (files / "link.json").string();
  const std::string plot = (files / "loss.svg").string();
  const Outcome result =
      run({"probe", "--self", "--link", "rtt=5ms,rate=200Mbit,loss=1e-2", "--flows", "2", "--payload", "1KiB,4KiB",
           "--trials", "2", "--packets", "500", "--profile", profile, "--plot", plot});
  ASSERT_EQ(result.code, 0) << result.err;
  for (const char* word : {"RTT, idle", "p25", "burst", "reorder", "host drop", "1024", "4096"}) {
    EXPECT_NE(result.out.find(word), std::string::npos) << word << " is not in\n" << result.out;
  }
  const Outcome plan = run({"plan", "--link-profile", profile, "--size", "1MiB"});
  EXPECT_EQ(plan.code, 0) << plan.err;
  const Json json = Json::parse(read_file(profile));
  EXPECT_GE(json["rtt_ms"]["p50"].get<double>(), 5.0);
  EXPECT_LT(json["rate_bits_per_second"].get<double>(), 200e6 * 1.2);
  EXPECT_EQ(json["payloads"][1]["packets"], 2000);
  EXPECT_TRUE(read_file(plot).starts_with("<svg"));
}

// --- two hosts ---

TEST(ProbeListener, ServesOneAfterAnother_AndSurvivesWhoDoesNotSpeakItsProtocol) {
  SdrCommand listener({"probe", "--listen", "127.0.0.1:0", "--json"});
  const std::string at = listener.address();
  TcpPeer::connect(at).send("GET / HTTP/1.1\r\n\r\n");
  const TcpPeer liar = TcpPeer::connect(at);
  liar.send(TcpPeer::frame(R"({"command":"probe","version":1,"plan":{"flows":99}})", 1));
  EXPECT_NE(liar.receive_all().find("error"), std::string::npos);
  for (int i = 0; i < 2; ++i) {
    const Outcome client = run({"probe", at, "--json", "--flows", "2", "--payload", "100", "--trials", "2", "--packets",
                                "10", "--rate", "10Mbit"});
    EXPECT_EQ(client.code, 0) << client.err;
  }
  EXPECT_FALSE(listener.ended());
}

TEST(ProbeListener, OnIpv6_Serves) {
  SdrCommand listener({"probe", "--listen", "[::1]:0", "--once"});
  const std::string at = listener.address();
  if (at.empty()) GTEST_SKIP() << "no IPv6 here: " << listener.err();
  const Outcome client =
      run({"probe", at, "--json", "--flows", "2", "--payload", "1KiB", "--trials", "1", "--packets", "100"});
  EXPECT_EQ(client.code, 0) << client.err;
  EXPECT_EQ(client.json()["packet_overhead_bytes"], 48);
}

TEST(ProbeListener, MeetsPerfOrAnotherVersion_SaysSoAtBothEnds) {
  SdrCommand perf({"perf", "--listen", "127.0.0.1:0", "--once"});
  const Outcome met = run({"probe", perf.address(), "--trials", "1"});
  EXPECT_EQ(met.code, 1);
  EXPECT_NE(met.err.find("sdr perf"), std::string::npos) << met.err;
  EXPECT_EQ(perf.wait(), 1);

  SdrCommand listener({"probe", "--listen", "127.0.0.1:0", "--once"});
  const TcpPeer other = TcpPeer::connect(listener.address());
  other.send(TcpPeer::frame(R"({"command":"probe","version":9,"plan":{}})", 1));
  EXPECT_NE(other.receive_all().find("version 1 at one end and 9 at the other"), std::string::npos);
  EXPECT_EQ(listener.wait(), 1);
  EXPECT_TRUE(is_one_line(listener.err().substr(listener.err().find('\n') + 1))) << listener.err();

  TcpPeer server = TcpPeer::listen();
  SdrCommand client({"probe", server.address()});
  server.accept();
  server.send(TcpPeer::frame(R"({"version":9,"ports":[1,2]})", 1));
  EXPECT_EQ(client.wait(), 1);
  EXPECT_TRUE(is_one_line(client.err())) << client.err();
  EXPECT_NE(client.err().find("version 1 at one end and 9 at the other"), std::string::npos) << client.err();
}

TEST(Probe, WhenOneEndDies_TheOtherSaysWho) {
  const Arguments endless = {"--flows", "2", "--payload", "1KiB", "--rate", "10Mbit", "--duration", "60min"};
  for (const bool client_dies : {true, false}) {
    SdrCommand listener({"probe", "--listen", "127.0.0.1:0", "--once"});
    const std::string at = listener.address();
    Arguments arguments = {"probe", at};
    arguments.insert(arguments.end(), endless.begin(), endless.end());
    SdrCommand client(arguments);
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    (client_dies ? client : listener).signal(client_dies ? SIGINT : SIGKILL);
    SdrCommand& left = client_dies ? listener : client;
    EXPECT_EQ(left.wait(), 1);
    EXPECT_TRUE(left.says("the peer")) << left.err();
    EXPECT_EQ((client_dies ? client : listener).wait(), client_dies ? -SIGINT : -SIGKILL) << "at once";
  }
}

TEST(Probe, APeerThatFallsSilent_IsAnErrorThatNamesIt) {
  SdrCommand listener({"probe", "--listen", "127.0.0.1:0", "--once"});
  const std::string at = listener.address();
  SdrCommand client(
      {"probe", at, "--flows", "1", "--payload", "1KiB", "--rate", "10Mbit", "--packets", "1000", "--timeout", "1s"});
  ASSERT_TRUE(eventually([&] { return !listener.ended(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  client.signal(SIGSTOP);
  EXPECT_EQ(listener.wait(), 1);
  EXPECT_TRUE(listener.says("said nothing for")) << listener.err();

  const TcpPeer silent = TcpPeer::listen();
  const Outcome alone = run({"probe", silent.address(), "--timeout", "500ms"});
  EXPECT_EQ(alone.code, 1);
  EXPECT_TRUE(is_one_line(alone.err)) << alone.err;
  EXPECT_NE(alone.err.find(silent.address()), std::string::npos) << alone.err;
}

TEST(Probe, WithUdpBlocked_SaysThatNoEchoCameBack) {
  const Outcome result =
      probe({"--link", "loss=1", "--flows", "1", "--payload", "1KiB", "--packets", "10", "--timeout", "500ms"});
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(is_one_line(result.err)) << result.err;
  EXPECT_NE(result.err.find("no echo"), std::string::npos) << result.err;
}

// --- wrong usage, and what cannot be ---

TEST(ProbeUsage, WrongUsage_IsOneLineAndExitCode2) {
  struct Wrong {
    Arguments arguments;
    std::string says;
  };
  for (const Wrong& wrong : std::vector<Wrong>{{{}, "one of"},
                                               {{"--self", "127.0.0.1:7000"}, "one of"},
                                               {{"--self", "--flows", "65"}, "64"},
                                               {{"--self", "--trials", "0"}, "1000"},
                                               {{"--self", "--payload", "big"}, "big"},
                                               {{"--self", "--payload", "70000"}, "70000"},
                                               {{"--self", "--duration", "0s"}, "above zero"},
                                               {{"--self", "--duration", "1s", "--packets", "5"}, "--duration"},
                                               {{"--self", "--duration", "1200min"}, "packets"},
                                               {{"--self", "--link", "rtt=fast"}, "fast"},
                                               {{"--listen", "127.0.0.1:0", "--flows", "3"}, "--listen"},
                                               {{"127.0.0.1"}, "ADDRESS:PORT"}}) {
    Arguments arguments = {"probe"};
    arguments.insert(arguments.end(), wrong.arguments.begin(), wrong.arguments.end());
    const Outcome result = run(arguments);
    EXPECT_EQ(result.code, 2) << wrong.says << "\n" << result.err;
    EXPECT_TRUE(is_one_line(result.err)) << result.err;
    EXPECT_NE(result.err.find(wrong.says), std::string::npos) << result.err;
  }
}

TEST(ProbeUsage, Failures_AreOneLineAndExitCode1) {
  for (const Arguments& arguments :
       {Arguments{"probe", "--self", "--link", "mtu=1500", "--payload", "2KiB"},
        Arguments{"probe", "--self", "--profile", "/nonexistent/link.json"},
        Arguments{"probe", "--listen", "203.0.113.1:7000"}, Arguments{"probe", TcpPeer::unused_address()}}) {
    const Outcome result = run(arguments);
    EXPECT_EQ(result.code, 1) << arguments.back() << "\n" << result.err;
    EXPECT_TRUE(is_one_line(result.err)) << result.err;
  }
}

}  // namespace
}  // namespace sdr::testing
