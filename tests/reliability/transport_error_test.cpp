// What a Connection makes of errors of its transport.
#include <gtest/gtest.h>

#include "tests/reliability/pair.hpp"
#include "tests/transport/wrapped_device.hpp"

namespace sdr::testing {
namespace {

using std::chrono::milliseconds;

// As an RDMA device that can register no more memory.
class ExposesNothing final : public testing_support::ForwardingEndpoint {
 public:
  using ForwardingEndpoint::ForwardingEndpoint;
  Result<transport::Aim> expose(core::SlotIndex /*slot*/, core::Generation /*generation*/,
                                std::span<std::byte> /*buffer*/) override {
    return Error{ErrorCode::System, "no memory can be registered"};
  }
};

TEST(TransportError, AReceiveThatCannotBeExposed_EndsTheConnectionInItsWords) {
  for (const Scheme scheme : kAllSchemes) {
    transport::SimulatedNetwork network({.link = simulation::LinkSpec::parse("rtt=2ms,rate=100Mbit").value()});
    ConnectionOptions options;
    options.scheme = scheme;
    options.queue_pair.token = 1;
    const DevicePtr wrapped = std::make_shared<testing_support::WrappedDevice>(
        network.device(Site::A), [](std::unique_ptr<transport::Endpoint> endpoint) {
          return std::make_unique<ExposesNothing>(std::move(endpoint));
        });
    auto a = Connection::create(wrapped, options).value();
    options.queue_pair.token = 2;
    auto b = Connection::create(DevicePtr(&network.device(Site::B), [](transport::Device*) {}), options).value();
    ASSERT_TRUE(a->connect(b->info()));
    ASSERT_TRUE(b->connect(a->info()));
    std::vector<std::byte> buffer(10000);
    const auto receive = a->post_receive(buffer);
    ASSERT_TRUE(receive);
    TimePoint now(std::chrono::seconds(1));
    for (int drive = 0; drive < 100 && !a->failure(); ++drive, now += milliseconds(1)) {
      a->progress(now);
      b->progress(now);
    }
    ASSERT_TRUE(a->failure()) << identifier(scheme);
    EXPECT_EQ(a->failure()->message, "no memory can be registered");
    const auto completion = a->poll_receive();
    ASSERT_TRUE(completion && completion->error);
    EXPECT_EQ(completion->handle.number, receive->number);
    EXPECT_EQ(completion->error->message, "no memory can be registered");
  }
}

}  // namespace
}  // namespace sdr::testing
