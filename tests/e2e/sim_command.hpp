// One run of `sdr sim`, and what it said.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/sdr_command.hpp"

namespace sdr::testing {

struct Simulated {
  int code = 0;
  std::string out;
  std::string err;
};

inline Simulated sim(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "sim");
  SdrCommand command(std::move(arguments));
  const int code = command.wait();
  return {code, command.out(), command.err()};
}

}  // namespace sdr::testing
