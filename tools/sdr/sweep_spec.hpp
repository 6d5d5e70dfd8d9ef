// SweepSpec: what `sdr sweep` computes, as a file: lists of schemes, sizes, links; docs/sweep.md has the format.
//
// Model: the cells are the product of the lists, numbered in the order of the lists below, the last one running
// fastest. A cell's losses are drawn from a seed of its own, a function of the spec's seed and the cell's number: it
// has the same result whoever computes it, and when.
//
// Reading is strict (json_fields.hpp). A spec that parse() returned is in range throughout, fits together (every chunk
// is a multiple of every MTU), and prints back to an equal one.
//
// A plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/write_trial.hpp"
#include "sdr/options.hpp"
#include "sdr/report.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::cli {

enum class SweepKind : std::uint8_t {
  Simulation,  // the real protocol in virtual time, as sdr sim, and the theory beside it
  Theory,      // the theory alone
  Sampling,    // its Monte Carlo, retransmissions on the wire, and the theory beside it
};
std::string_view kind_name(SweepKind kind);

struct SweepCell {
  std::uint64_t number = 0;
  SchemeChoice scheme;
  Bytes size;
  Duration rtt{0};
  Bandwidth rate;
  double loss = 0;
  double burst = 1;
  Bytes mtu;
  std::string chunk;
};

struct SweepSpec {
  static constexpr std::uint64_t kVersion = 1;
  static constexpr std::uint64_t kMostCells = 1'000'000;
  static constexpr std::uint64_t kMostRuns = 1'000'000;  // bounds the memory of a cell

  SweepKind kind = SweepKind::Simulation;
  std::vector<SchemeChoice> schemes;
  std::vector<Bytes> sizes;
  std::vector<Duration> rtts;
  std::vector<Bandwidth> rates;
  std::vector<double> losses;
  std::vector<double> bursts;
  std::vector<Bytes> mtus;
  std::vector<std::string> chunks;  // as --chunk takes them
  simulation::LinkSpec link;        // what the lists do not say of it
  bool known_loss = false;          // as --known-loss and --warm of sdr sim
  std::uint32_t warm_writes = 0;
  std::uint64_t runs = 1;
  std::uint64_t seed = 1;

  // InvalidArgument names the field, the value and the range.
  static Result<SweepSpec> parse(std::string_view text);
  // System when the file cannot be read; all errors name it.
  static Result<SweepSpec> load(const std::string& path);
  // Every field, in units that round nothing.
  [[nodiscard]] Json to_json() const;
  // Equal specs have equal ones, however their files are written; 64 hexadecimal digits.
  [[nodiscard]] std::string digest() const;

  [[nodiscard]] std::uint64_t cells() const;
  [[nodiscard]] SweepCell cell(std::uint64_t number) const;
  [[nodiscard]] experiment::WriteTrial trial(const SweepCell& cell) const;
};

}  // namespace sdr::cli
