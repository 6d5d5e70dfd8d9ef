// The losses of `sdr probe` as a box plot, after Figure 2 of the SDR-RDMA paper: for each payload size the losses of
// every flow in every trial, on a logarithmic axis.
//
// A box reaches from the 25th to the 75th percentile, the line in it is the median, the whiskers end at the least and
// the greatest. A cross is the loss of all packets together. Zero has no place on the axis: what lost nothing stands on
// a line of its own below, and how many of the samples do is written there.
//
// Threads: one.
#pragma once

#include <iosfwd>
#include <span>
#include <string_view>

#include "sdr/probe_statistics.hpp"

namespace sdr::cli {

void draw_losses(std::span<const ProbeStatistics> payloads, std::string_view subtitle, std::ostream& out);

}  // namespace sdr::cli
