// Network: what the transport conformance suite (conformance_test.cpp) needs to know about a transport under test.
//
// The suite is the contract of transport.hpp in executable form and runs on every transport. To add one, write
// <name>_conformance_test.cpp with a class that implements Network and a line at namespace scope for each variant:
//
//   const bool kRegistered = register_network({.name = "UdpIpv4", .make = make_udp_ipv4});
//
// GoogleTest reads the registry after static initialisation, so no other file needs to change. One thread drives it
// all.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "transport/transport.hpp"

namespace sdr::transport::conformance {

// What differs between transports that all keep the contract.
struct NetworkTraits {
  // Nothing is lost as long as no more than facts().receive_buffer bytes wait unread. Tests that count on delivery are
  // skipped otherwise.
  bool lossless = true;
  // Packets sent to a place that is not exposed are counted by name at the receiver (a NIC drops them silently).
  bool counts_strays = true;
  // hold() keeps packets back until release(), so that they arrive late. A transport that places in poll() holds by
  // itself: nothing has arrived that was not polled.
  bool can_hold = false;
};

// Two connected endpoints and the way between them.
class Network {
 public:
  virtual ~Network() = default;
  [[nodiscard]] virtual NetworkTraits traits() const { return {}; }
  virtual Device& device() = 0;
  virtual Endpoint& a() = 0;
  virtual Endpoint& b() = 0;
  // The time to pass to the endpoints.
  [[nodiscard]] virtual TimePoint now() const = 0;
  // Lets a little time pass: virtual networks go to the next event (false: there is none), real ones wait until a
  // descriptor is readable, about a millisecond at most. The suite calls it between polls.
  virtual bool step() = 0;
  virtual void hold() {}
  virtual void release() {}
};

struct NetworkFactory {
  std::string name;  // alphanumeric
  // Makes the pair and connects it both ways; null (with a test failure already added) when that cannot be.
  std::function<std::unique_ptr<Network>(const EndpointOptions& a, const EndpointOptions& b)> make;
};

inline void PrintTo(const NetworkFactory& factory, std::ostream* out) {
  *out << factory.name;
}

// Of randomised tests: the environment's SDR_TEST_SEED to repeat a run, otherwise another each time.
inline std::uint32_t test_seed() {
  if (const char* given = std::getenv("SDR_TEST_SEED"))
    return static_cast<std::uint32_t>(std::strtoul(given, nullptr, 0));
  return std::random_device{}();
}

inline std::vector<NetworkFactory>& network_factories() {
  static std::vector<NetworkFactory> factories;
  return factories;
}

inline bool register_network(NetworkFactory factory) {
  network_factories().push_back(std::move(factory));
  return true;
}

}  // namespace sdr::transport::conformance
