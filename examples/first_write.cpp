// A first reliable Write: two connections on this machine, over an emulated link of 25 ms and 1 % loss.
//
// Both ends run in one thread here, to keep the program short. Between machines each end has its own, and the two
// info() blobs travel by whatever the application has: a TCP connection, MPI, a file.
#include <cstdio>
#include <cstring>
#include <vector>

#include "sdr/connection.hpp"
#include "sdr/driver.hpp"

int main() {
  const auto fail = [](const sdr::Error& error) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    return 1;
  };

  auto device = sdr::open_device("udp:127.0.0.1", {.link = "rtt=25ms,rate=1Gbit,loss=1e-2"});
  if (!device) return fail(device.error());

  sdr::ConnectionOptions options;
  options.scheme = sdr::Scheme::EcRs;
  options.queue_pair.rate = *sdr::parse_bandwidth("1Gbit");
  options.queue_pair.token = sdr::Driver::random_token();
  auto sender = sdr::Connection::create(*device, options);
  options.queue_pair.token = sdr::Driver::random_token();
  auto receiver = sdr::Connection::create(*device, options);
  if (!sender || !receiver) return fail(sender ? receiver.error() : sender.error());
  if (auto connected = (*sender)->connect((*receiver)->info()); !connected) return fail(connected.error());
  if (auto connected = (*receiver)->connect((*sender)->info()); !connected) return fail(connected.error());

  std::vector<std::byte> source(4 << 20, std::byte{42});
  std::vector<std::byte> target(source.size());
  if (auto posted = (*receiver)->post_receive(target); !posted) return fail(posted.error());
  if (auto posted = (*sender)->post_write(source); !posted) return fail(posted.error());

  sdr::Driver driver;
  driver.add(**sender);
  driver.add(**receiver);
  std::optional<sdr::WriteCompletion> done;
  driver.run_until([&] { return (done = (*sender)->poll_write()).has_value(); }, std::chrono::seconds(10));
  if (!done) return fail({sdr::ErrorCode::PeerUnreachable, "the Write was not acknowledged in 10 s"});
  if (done->error) return fail(*done->error);

  const sdr::ConnectionStatistics statistics = (*sender)->statistics();
  std::printf("%zu bytes written and acknowledged; %llu packets sent, %llu lost, %llu chunks rebuilt from parity; %s\n",
              source.size(), static_cast<unsigned long long>(statistics.packets_sent),
              static_cast<unsigned long long>(statistics.packets_lost),
              static_cast<unsigned long long>((*receiver)->statistics().chunks_recovered),
              source == target ? "the bytes are equal" : "THE BYTES DIFFER");
  return source == target ? 0 : 1;
}
