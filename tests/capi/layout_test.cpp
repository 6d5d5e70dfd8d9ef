// The C interface as C11 sees it, and as C++ does.
#include "tests/capi/layout_test.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "sdr/sdr.h"
#include "sdr/sdr_mr.h"

namespace sdr::capi {
namespace {

TEST(CLayout, ValuesSizesAndOffsets_AreThePublishedOnes) {
  EXPECT_STREQ(check_layouts(), nullptr);
}

TEST(CLayout, AProgramInC11_TransfersAMessage) {
  EXPECT_STREQ(transfer_in_c(), nullptr);
}

TEST(CLayout, CAndCpp_AgreeOnSizes) {
  EXPECT_EQ(sizeof(sdr_qp_attr), 32U);
  EXPECT_EQ(offsetof(sdr_qp_attr, mtu), 20U);
  EXPECT_EQ(sizeof(sdr_send_wr), 32U);
  EXPECT_EQ(sizeof(sdr_send_continue_wr), 32U);
}

}  // namespace
}  // namespace sdr::capi
