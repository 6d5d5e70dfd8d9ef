#include "simulation/link_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace sdr::simulation {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

LinkSpec parsed(std::string_view text) {
  const Result<LinkSpec> spec = LinkSpec::parse(text);
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().message);
  return spec.ok() ? *spec : LinkSpec{};
}

std::string error_of(std::string_view text) {
  const Result<LinkSpec> spec = LinkSpec::parse(text);
  EXPECT_FALSE(spec.ok()) << text << " was taken";
  if (spec.ok()) return "";
  EXPECT_EQ(spec.error().code, ErrorCode::InvalidArgument);
  return spec.error().message;
}

TEST(LinkSpec, EveryKey_IsRead) {
  const LinkSpec spec =
      parsed("rtt=25ms,rate=1Gbit,loss=1e-3,burst=4,reorder=2e-3,dup=1e-4,jitter=100us,queue=20ms,seed=7,mtu=9000");
  EXPECT_EQ(spec.rtt, 25ms);
  EXPECT_EQ(spec.rate, Bandwidth{1e9});
  EXPECT_EQ(spec.loss, 1e-3);
  EXPECT_EQ(spec.burst, 4);
  EXPECT_EQ(spec.reorder, 2e-3);
  EXPECT_EQ(spec.duplicate, 1e-4);
  EXPECT_EQ(spec.jitter, 100us);
  EXPECT_EQ(spec.queue, 20ms);
  EXPECT_EQ(spec.seed, 7U);
  EXPECT_EQ(spec.mtu, 9000);
  EXPECT_TRUE(spec.mtu_given);
}

TEST(LinkSpec, EmptyText_IsAnIdealLink) {
  EXPECT_EQ(parsed(""), LinkSpec{});
  EXPECT_EQ(parsed("  "), LinkSpec{});
  EXPECT_EQ(LinkSpec{}.mtu, 1500);
  EXPECT_FALSE(LinkSpec{}.mtu_given);
  EXPECT_EQ(LinkSpec{}.queue, 10ms);
  EXPECT_FALSE(LinkSpec{}.rate.limited());
}

TEST(LinkSpec, SpacesZerosAndPercent_AreUnderstood) {
  const LinkSpec spec = parsed(" rtt = 0 , loss=0.1% ,rate=0");
  EXPECT_EQ(spec.rtt, 0ms);
  EXPECT_DOUBLE_EQ(spec.loss, 1e-3);
  EXPECT_FALSE(spec.rate.limited());
}

TEST(LinkSpec, PrintedText_ReadsBackAsTheSameSpec) {
  for (const char* text :
       {"", "rtt=25ms", "rtt=1500us,rate=400Gbit,loss=0.123456789", "rate=1500Kbit,burst=1.5,seed=18446744073709551615",
        "rtt=7ns,queue=0,jitter=1s", "reorder=1e-9,dup=1,mtu=1500", "rate=123456.789,mtu=65535",
        "loss=0.01,lossback=0,losssize=1024,outage=1s+200ms/1500ms+7ns,trace=1000:2:0:1:350:0"}) {
    SCOPED_TRACE(text);
    const LinkSpec spec = parsed(text);
    EXPECT_EQ(parsed(to_string(spec)), spec) << to_string(spec);
  }
  EXPECT_EQ(to_string(parsed("loss=1e-3,rtt=25ms,rate=1Gbit,dup=0")), "rtt=25ms,rate=1Gbit,loss=0.001");
}

TEST(LinkSpec, UnknownKey_IsAnErrorThatListsTheKnownOnes) {
  EXPECT_EQ(error_of("lose=1"),
            "link: unknown key \"lose\"; the keys are rtt, rate, loss, lossback, burst, reorder, dup, jitter, queue, "
            "seed, mtu, "
            "losssize, outage, trace");
  EXPECT_THAT(error_of("rtt=1ms,,loss=0"), HasSubstr("unknown key \"\""));
  EXPECT_THAT(error_of("25ms"), HasSubstr("unknown key \"25ms\""));
}

TEST(LinkSpec, KeyGivenTwice_IsAnError) {
  EXPECT_EQ(error_of("rtt=1ms,rtt=1ms"), "link: rtt is given twice");
}

TEST(LinkSpec, EmptyValue_IsAnErrorThatSaysWhatIsExpected) {
  EXPECT_THAT(error_of("loss="), testing::AllOf(HasSubstr("loss has no value"), HasSubstr("0 to 1")));
  EXPECT_THAT(error_of("rtt=1ms,rate"), testing::AllOf(HasSubstr("rate has no value"), HasSubstr("1Gbit")));
}

TEST(LinkSpec, ValueOutOfRange_IsAnErrorThatNamesKeyValueAndRange) {
  EXPECT_EQ(error_of("loss=1.5"), "link: loss=1.5 is not a share from 0 to 1, such as 1e-3 or 0.1%");
  for (const char* text : {"loss=-0.1",
                           "lossback=1.1",
                           "loss=nan",
                           "loss=abc",
                           "loss=101%",
                           "burst=0.5",
                           "burst=inf",
                           "dup=2",
                           "reorder=1e",
                           "rtt=25",
                           "rtt=-1ms",
                           "rtt=2000min",
                           "rate=1",
                           "rate=-1Gbit",
                           "seed=-1",
                           "seed=1.5",
                           "seed=18446744073709551616",
                           "mtu=127",
                           "mtu=65536",
                           "queue=x",
                           "jitter=1",
                           "losssize=0",
                           "losssize=65536",
                           "outage=1s",
                           "outage=1s+0",
                           "outage=1s+1ms/",
                           "outage=+1s",
                           "outage=1s+61min",
                           "trace=5",
                           "trace=0:0",
                           "trace=1:2:3",
                           "trace=1:-2",
                           "trace=1:2:"}) {
    const std::string_view key = std::string_view(text).substr(0, std::string_view(text).find('='));
    EXPECT_THAT(error_of(text), testing::AllOf(testing::StartsWith("link: " + std::string(text) + " is not "),
                                               HasSubstr(std::string(key))));
  }
}

TEST(LinkSpec, OutagesAndTraces_AreRead) {
  const LinkSpec spec = parsed("outage=1s+200ms/5s+50ms,trace=1000:2:350:1,losssize=1KiB");
  EXPECT_EQ(spec.outages, (std::vector<Outage>{{1s, 200ms}, {5s, 50ms}}));
  EXPECT_EQ(spec.trace, (std::vector<LossRun>{{1000, 2}, {350, 1}}));
  EXPECT_EQ(spec.loss_size, 1024U);
}

TEST(LinkSpec, ALongValue_IsCutInItsRefusal) {
  std::string trace = "trace=1:1";
  for (int i = 0; i < 1000; ++i) trace += ":1:1";
  EXPECT_LT(error_of(trace + ":x").size(), 300U);
  EXPECT_THAT(error_of(trace + ":x"), HasSubstr("... is not packets ARRIVED:LOST"));
}

TEST(LinkSpec, LossOfASize_IsThatOfItsBytes) {
  const LinkSpec spec = parsed("loss=0.1,losssize=1000");
  EXPECT_DOUBLE_EQ(spec.loss_of(1000), 0.1);
  EXPECT_NEAR(spec.loss_of(2000), 1 - 0.9 * 0.9, 1e-12);
  EXPECT_NEAR(spec.loss_of(500), 1 - std::sqrt(0.9), 1e-12);
  EXPECT_EQ(parsed("loss=0.1").loss_of(2000), 0.1);
  EXPECT_EQ(parsed("loss=1,losssize=1000").loss_of(1), 1);
}

TEST(LinkSpec, PayloadWithinTheMtu_IsAMultipleOfEight) {
  EXPECT_EQ(LinkSpec{}.payload_within(44), 1456);
  EXPECT_EQ(LinkSpec{}.payload_within(64), 1432);
  EXPECT_EQ(LinkSpec{}.payload_within(1500), 0);
  EXPECT_EQ(parsed("mtu=65535").payload_within(0), 65528);
}

}  // namespace
}  // namespace sdr::simulation
