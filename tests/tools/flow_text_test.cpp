#include "sdr/flow_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sdr::cli {
namespace {

using namespace std::chrono_literals;
using experiment::FlowKind;

std::string refusal(std::string_view text) {
  const auto flow = parse_flow(text);
  EXPECT_FALSE(flow) << text;
  return flow ? std::string() : flow.error().message;
}

TEST(FlowText, TheKindComesFirst_AndIsOursWithoutOne) {
  EXPECT_EQ(parse_flow("sdr")->kind, FlowKind::Sdr);
  EXPECT_EQ(parse_flow("rtt=40ms")->kind, FlowKind::Sdr);
  EXPECT_EQ(parse_flow("rtt=40ms")->rtt, 40ms);
  EXPECT_EQ(parse_flow("tcp-bbr,start=1s,stop=9s,bytes=1GiB,name=bulk")->kind, FlowKind::TcpBbr);
  const auto cubic = parse_flow("tcp-cubic,hystart=off,ecn=on");
  ASSERT_TRUE(cubic);
  EXPECT_FALSE(cubic->hystart);
  EXPECT_TRUE(cubic->ecn);
}

TEST(FlowText, OurFlows_HaveAScheme_AController_AndSizes) {
  const auto flow = parse_flow("sdr,scheme=ec-rs:32:4,controller=background,maxrate=1Gbit,write=8MiB,start=2s");
  ASSERT_TRUE(flow) << flow.error().message;
  EXPECT_EQ(flow->connection.scheme, Scheme::EcRs);
  EXPECT_EQ(flow->connection.parity_chunks, 4);
  EXPECT_EQ(flow->connection.rate_mode, RateMode::Background);
  EXPECT_EQ(flow->connection.max_rate.bits_per_second, 1e9);
  EXPECT_EQ(flow->write, 8_MiB);
  EXPECT_EQ(flow->start, 2s);
}

TEST(FlowText, ARate_IsAFixedOne) {
  const auto flow = parse_flow("rate=50Mbit");
  ASSERT_TRUE(flow);
  EXPECT_EQ(flow->connection.rate_mode, RateMode::Fixed);
  EXPECT_EQ(flow->connection.queue_pair.rate.bits_per_second, 50e6);
  EXPECT_TRUE(parse_flow("controller=fixed,rate=50Mbit"));
}

TEST(FlowText, Refusals_NameTheKeyAndWhatThereIs) {
  EXPECT_NE(refusal("udp").find("sdr, tcp-cubic and tcp-bbr"), std::string::npos);
  EXPECT_NE(refusal("tcp-bbr,hystart=on").find("tcp-bbr has no key \"hystart\""), std::string::npos);
  EXPECT_NE(refusal("sdr,hystart=on").find("controller"), std::string::npos);
  EXPECT_NE(refusal("rtt=soon").find("rtt=soon"), std::string::npos);
  EXPECT_NE(refusal("rtt=1ms,rtt=2ms").find("twice"), std::string::npos);
  EXPECT_NE(refusal("tcp-cubic,ecn=yes").find("on or off"), std::string::npos);
  EXPECT_NE(refusal("scheme=none").find("scheme=none"), std::string::npos);
  EXPECT_NE(refusal("controller=fixed").find("needs a rate"), std::string::npos);
  EXPECT_NE(refusal("controller=model,rate=1Mbit").find("maxrate"), std::string::npos);
  EXPECT_NE(refusal("bytes=0").find("bytes=0"), std::string::npos);
  EXPECT_NE(refusal("sdr,").find("no key"), std::string::npos);
}

}  // namespace
}  // namespace sdr::cli
