// Which environment variables are honoured, accepted and refused (docs/c-api.md).
#include "capi/environment.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace sdr::capi {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

Result<Environment> read(const Variables& variables) {
  return Environment::read([&](std::string_view name) -> std::optional<std::string> {
    const auto at = variables.find(name);
    return at == variables.end() ? std::nullopt : std::optional(at->second);
  });
}

std::string refusal(const Variables& variables) {
  const auto environment = read(variables);
  return environment ? "accepted" : environment.error().message;
}

TEST(Environment, WithoutVariables_EverythingIsAsUsual) {
  const auto environment = read({});
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(environment->link, "");
  EXPECT_FALSE(environment->generations.has_value());
  EXPECT_FALSE(environment->report_send || environment->report_receive);
}

TEST(Environment, HonouredVariables_AreRead) {
  const auto environment = read({{"SDR_QP_NUM_GENERATIONS", "255"},
                                 {"SDR_LINK", "loss=1e-3"},
                                 {"SDR_DPA_TX_PROFILE_STATS_REPORT", "1"},
                                 {"SDR_DPA_RX_PROFILE_STATS_REPORT", "0"}});
  ASSERT_TRUE(environment.ok()) << environment.error().message;
  EXPECT_EQ(environment->generations, std::uint8_t{255});
  EXPECT_EQ(environment->link, "loss=1e-3");
  EXPECT_TRUE(environment->report_send);
  EXPECT_FALSE(environment->report_receive);
}

TEST(Environment, ValuesOutsideTheirLimits_AreRefusedByName) {
  EXPECT_EQ(refusal({{"SDR_QP_NUM_GENERATIONS", "1"}}), "SDR_QP_NUM_GENERATIONS=1 is not a whole number from 2 to 255");
  EXPECT_NE(refusal({{"SDR_QP_NUM_GENERATIONS", "256"}}), "accepted");
  EXPECT_NE(refusal({{"SDR_QP_NUM_GENERATIONS", "8x"}}), "accepted");
  EXPECT_NE(refusal({{"SDR_QP_NUM_GENERATIONS", "-2"}}), "accepted");
  EXPECT_NE(refusal({{"SDR_SEND_CTX_SWR_BATCH_SIZE", "0"}}), "accepted");
  EXPECT_NE(refusal({{"SDR_DPA_RX_PROFILE_STATS_REPORT", "maybe"}}), "accepted");
}

TEST(Environment, Offload_IsAskedForByDeviceOrBySending) {
  const auto offload = [](const Variables& variables) { return read(variables)->offload; };
  EXPECT_FALSE(offload({}));
  EXPECT_FALSE(offload({{"SDR_DPA_TX_OFFLOADING_ENABLE", "0"}, {"SDR_DPA_TX_NUM_WORKERS", "16"}}));
  EXPECT_FALSE(offload({{"SDR_DPA_TX_NUM_WORKERS", "0"}, {"SDR_OFFLOAD_DEVICE", "none"}}));
  const auto sends = offload({{"SDR_DPA_TX_OFFLOADING_ENABLE", "1"}, {"SDR_DPA_TX_NUM_WORKERS", "3"}});
  ASSERT_TRUE(sends);
  EXPECT_TRUE(sends->send);
  EXPECT_FALSE(sends->receive);
  EXPECT_EQ(sends->threads, 3U);
  const auto receives = offload({{"SDR_OFFLOAD_DEVICE", "host"}});
  ASSERT_TRUE(receives);
  EXPECT_TRUE(receives->receive);
  EXPECT_FALSE(receives->send);
  EXPECT_EQ(receives->device, OffloadDevice::Host);
  EXPECT_TRUE(offload({{"SDR_OFFLOAD_DEVICE", "host"}, {"SDR_DPA_TX_NUM_WORKERS", "2"}})->send);
}

TEST(Environment, OffloadThatCannotBe_IsRefusedByName) {
  EXPECT_EQ(refusal({{"SDR_OFFLOAD_DEVICE", "bluefield"}}),
            "SDR_OFFLOAD_DEVICE=bluefield is none of none, host and riscv");
  EXPECT_NE(refusal({{"SDR_OFFLOAD_DEVICE", "none"}, {"SDR_DPA_TX_OFFLOADING_ENABLE", "1"}}), "accepted");
  EXPECT_NE(refusal({{"SDR_DPA_TX_NUM_WORKERS", "-1"}}), "accepted");
}

TEST(Environment, WhatMeansNothingToASocket_IsAcceptedButNotNonsense) {
  EXPECT_EQ(refusal({{"SDR_SEND_CTX_SWR_BATCH_SIZE", "32"},
                     {"SDR_RECV_CTX_ROOT_MKEY_ENTRIES_FACTOR", "4"},
                     {"SDR_RECV_CTX_N_ROOT_MKEYS", "2"},
                     {"SDR_USE_UC_QP", "1"},
                     {"SDR_NO_RC_RNR_RETRY", "1"},
                     {"SDR_QP_NUM_GENERATIONS", ""}}),
            "accepted");
  EXPECT_NE(refusal({{"SDR_RECV_CTX_N_ROOT_MKEYS", "many"}}), "accepted");
  EXPECT_NE(refusal({{"SDR_USE_UC_QP", "2"}}), "accepted");
}

}  // namespace
}  // namespace sdr::capi
