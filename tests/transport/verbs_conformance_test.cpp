// Verbs keeps the transport contract, with either way of making keys, where there are devices to try it on.
#include "verbs_network.hpp"

namespace sdr::transport::conformance {
namespace {

bool register_verbs(const std::string& name, VerbsKeys keys) {
  if (!verbs_pair()) return false;
  // A NIC drops silently what its keys keep out.
  return register_network(
      {.name = name,
       .traits = {.counts_strays = false, .can_hold = !environment("SDR_TEST_VERBS_HOLD").empty()},
       .make = [keys](const EndpointOptions& of_a, const EndpointOptions& of_b) -> std::unique_ptr<Network> {
         return VerbsNetwork::make(of_a, of_b, keys);
       }});
}

[[maybe_unused]] const bool kRegion = register_verbs("VerbsRegion", VerbsKeys::Region);
[[maybe_unused]] const bool kWindow = register_verbs("VerbsWindow", VerbsKeys::Window);

TEST(VerbsConformance, Suite_RunsOnTheDevicesThatTheEnvironmentNames) {
  if (!verbs_pair()) GTEST_SKIP() << kNoVerbs;
  EXPECT_TRUE(kRegion && kWindow);
}

}  // namespace
}  // namespace sdr::transport::conformance
