// Transfer: a message on a path, in the terms of the theory: M chunks, T_inj seconds each, RTT, chunk loss.
//
// PathSpec is what a person knows; Transfer::create checks it once, so that nothing behind it has to. The ranges keep
// every time that the theory can give within a Duration (292 years); seconds() saturates all the same.
//
// Times inside the model are seconds in a double: theory divides and integrates them, and a nanosecond count would have
// to be converted at every step. What a caller sees is a Duration.
//
// Plain values; any thread. Source: paper section 4.2, notation.
#pragma once

#include <cstdint>

#include "model/loss.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::model {

struct Kilometres {
  double count = 0;
};

// Light to the far end and back, RTT = 2 d / (3e5 km/s) (paper section 5.2: 3750 km are 25 ms). Refused unless
// 0 to 1e8 km.
Result<Duration> rtt_over(Kilometres distance);

struct PathSpec {
  Bytes chunk{4096};  // what a bit of the bitmap stands for; the paper's figures take one packet a chunk
  Bytes packet{4096};
  Bandwidth rate;
  Duration rtt{0};
  double loss = 0;   // of packets, mean
  double burst = 1;  // mean run of lost packets; up to 1 / (1 - loss) means independent losses
};

class Transfer {
 public:
  // InvalidArgument names the field, the value and the range.
  static Result<Transfer> create(const PathSpec& path, Bytes message);

  [[nodiscard]] std::uint64_t chunks() const { return chunks_; }  // M; a short last chunk counts as a whole one
  [[nodiscard]] double injection() const { return injection_; }   // T_inj, seconds
  [[nodiscard]] double rtt() const { return rtt_; }               // seconds
  [[nodiscard]] const ChunkLoss& loss() const { return loss_; }

  // M T_inj + RTT: the time without losses; what slowdowns are counted in.
  [[nodiscard]] Duration lossless() const;
  // M T_inj / (1 - p) + RTT: no scheme that repairs losses by sending chunks again can be faster in the mean.
  [[nodiscard]] Duration floor() const;

 private:
  std::uint64_t chunks_ = 0;
  double injection_ = 0;
  double rtt_ = 0;
  ChunkLoss loss_;
};

Duration to_duration(double seconds);
double to_seconds(Duration time);

}  // namespace sdr::model
