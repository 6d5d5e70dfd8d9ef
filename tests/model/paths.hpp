// The path of the paper's figures, and short ways to ask the model about it.
#pragma once

#include "model/completion_time.hpp"
#include "model/samples.hpp"
#include "model/transfer.hpp"

namespace sdr::model::testing {

inline PathSpec paper_path(double loss, double burst = 1) {
  PathSpec path;
  path.rate = {400e9};
  path.rtt = std::chrono::milliseconds(25);
  path.loss = loss;
  path.burst = burst;
  return path;
}

inline Transfer transfer_of(Bytes size, double loss, double burst = 1) {
  return Transfer::create(paper_path(loss, burst), size).value();
}

inline SchemeSpec scheme_of(SchemeKind kind) {
  SchemeSpec scheme;
  scheme.kind = kind;
  return scheme;
}

inline CompletionTime time_of(Bytes size, double loss, SchemeKind kind) {
  return CompletionTime::of(transfer_of(size, loss), scheme_of(kind)).value();
}

inline double mean_of(Bytes size, double loss, SchemeKind kind) {
  return to_seconds(time_of(size, loss, kind).mean());
}

inline double p999_of(Bytes size, double loss, SchemeKind kind) {
  return to_seconds(time_of(size, loss, kind).percentile(0.999).value());
}

// Against the time without losses.
inline double slowdown_of(Bytes size, double loss, SchemeKind kind) {
  return mean_of(size, loss, kind) / to_seconds(transfer_of(size, loss).lossless());
}

}  // namespace sdr::model::testing
