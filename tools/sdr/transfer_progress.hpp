// TransferProgress: what a person sees while a transfer runs: how far it is, how fast, how long still, what was lost.
//
// On a terminal one line with a bar, drawn again several times a second; elsewhere a plain line every few seconds, so
// that a log stays readable. Knows no clock: every call brings the time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>

#include "sdr/units.hpp"

namespace sdr::cli {

struct TransferSample {
  std::uint64_t bytes = 0;  // there by now, with what was there at the start
  std::uint64_t total = 0;
  std::uint32_t files = 0;  // placed
  std::uint32_t total_files = 0;
  double loss = 0;           // of packets
  double retransmitted = 0;  // of chunks
};

// "[=====>    ]  52 %  1.00 GiB  944 Mbit/s  4 s left  loss 1.00 %  sent again 1.10 %", no wider than `width`; without
// the bar for width 0.
[[nodiscard]] std::string progress_line(const TransferSample& sample, Bandwidth rate, std::size_t width);

class TransferProgress {
 public:
  enum class Style { None, Lines, Bar };

  // Bar when `out` is a terminal, else Lines; None when `quiet`.
  explicit TransferProgress(std::FILE* out, bool quiet);
  ~TransferProgress() { clear(); }
  TransferProgress(const TransferProgress&) = delete;
  TransferProgress& operator=(const TransferProgress&) = delete;

  void show(TimePoint now, const TransferSample& sample);
  // Leaves the terminal's line empty for what is printed next.
  void clear();

 private:
  [[nodiscard]] Bandwidth rate(TimePoint now, std::uint64_t bytes);

  struct Mark {
    TimePoint at{};
    std::uint64_t bytes = 0;
  };
  std::FILE* out_;
  Style style_;
  TimePoint next_{};
  std::deque<Mark> marks_;  // of the last few seconds
  bool drawn_ = false;
};

}  // namespace sdr::cli
