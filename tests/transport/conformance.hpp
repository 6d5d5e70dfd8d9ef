// Network: what the transport conformance suite (conformance_*test.cpp) needs to know about a transport under test.
//
// The suite is the contract of transport.hpp in executable form and runs on every transport. To add one, write
// <name>_conformance_test.cpp with a class that implements Network and a line at namespace scope for each variant:
//
//   const bool kRegistered = register_network({.name = "UdpIpv4", .traits = {}, .make = make_udp_ipv4});
//
// GoogleTest reads the registry after static initialisation, so no other file needs to change. One thread drives it
// all.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transport/transport.hpp"

namespace sdr::transport::conformance {

// What differs between transports that all keep the contract.
struct NetworkTraits {
  // Nothing is lost as long as no more than facts().receive_buffer bytes wait unread. Tests that count on delivery do
  // not run otherwise.
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
  virtual Device& device() = 0;
  virtual Endpoint& a() = 0;
  virtual Endpoint& b() = 0;
  // The time to pass to the endpoints.
  [[nodiscard]] virtual TimePoint now() const = 0;
  // Lets a little time pass: virtual networks go to the next event (false: there is none), real ones wait until a
  // descriptor is readable, about a millisecond at most. The suite calls it between polls.
  virtual bool step() = 0;
  // b() is about to expose this memory: for transports that treat memory registered with device() in another way.
  virtual void exposing(std::span<std::byte> /*buffer*/) {}
  virtual void hold() {}
  virtual void release() {}
};

struct NetworkFactory {
  std::string name;  // alphanumeric
  NetworkTraits traits;
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

// Those that have all of these traits.
inline std::vector<NetworkFactory> network_factories(std::initializer_list<bool NetworkTraits::*> traits) {
  std::vector<NetworkFactory> chosen;
  for (const NetworkFactory& factory : network_factories()) {
    const auto has = [&](bool NetworkTraits::*trait) { return factory.traits.*trait; };
    if (std::all_of(traits.begin(), traits.end(), has)) chosen.push_back(factory);
  }
  return chosen;
}

inline bool register_network(NetworkFactory factory) {
  network_factories().push_back(std::move(factory));
  return true;
}

}  // namespace sdr::transport::conformance
