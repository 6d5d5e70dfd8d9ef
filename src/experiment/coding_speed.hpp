// CodingSpeed: how fast the cores of this machine make parity and restore lost chunks, beside memcpy of the same bytes
// and beside ISA-L.
//
// Model: a buffer of data, cut into blocks of k chunks, with a buffer of parity beside it, larger than the caches, as
// in a transfer. A pass goes through all of it. Speeds are bytes of *data* in a second, whatever the parity. Decoding:
// as many data chunks of every block are missing as the code restores (Reed-Solomon: m; XOR: one a group), spread over
// the block. ISA-L is called as its manual says, on whole chunks.
//
// Threads: blocks are dealt out among so many; the caller is one of them, and says beforehand on which cores they run.
#pragma once

#include <string>
#include <vector>

#include "coding/code.hpp"
#include "sdr/result.hpp"
#include "sdr/units.hpp"

namespace sdr::experiment {

struct CodingSpeedOptions {
  Bytes data{128ULL << 20};
  Bytes chunk{64ULL << 10};
  std::vector<coding::CodeShape> shapes;
  coding::CodeKernels kernels;
  unsigned threads = 1;
  unsigned runs = 5;
  Duration each = std::chrono::milliseconds(50);
};

// Gigabytes (1e9) of data a second.
struct CodeSpeed {
  coding::CodeShape shape;
  double encode = 0;
  double decode = 0;
  double isal_encode = 0;
};

struct CodingSpeed {
  double copy = 0;  // memcpy of all the data at once (by each thread of its part)
  std::vector<CodeSpeed> codes;
};

// InvalidArgument names the option, the value and the limit.
Result<CodingSpeed> measure_coding_speed(const CodingSpeedOptions& options);

// What the parity of the adaptive scheme costs, for the tail of a long Write: what is sent in an RTT and three
// sixteenths, in chunks of one packet, with the code that the loss asks for.
struct TailOptions {
  Duration rtt = std::chrono::milliseconds(25);
  Bytes chunk{4096};
  double target = 1e-5;  // P(a second round trip)
  unsigned runs = 5;
  Duration each = std::chrono::milliseconds(50);
};

struct TailCost {
  Bandwidth rate;
  double loss = 0;
  unsigned k = 0;  // data chunks of the longest submessage
  unsigned m = 0;
  unsigned submessages = 0;
  double encode = 0;  // gigabytes of data a second, by one core
  double decode = 0;  // of the losses that there are on average
  // Cores kept busy when every byte of the link is in the tail of some Write.
  double encode_cores = 0;
  double decode_cores = 0;
};

Result<TailCost> measure_tail_cost(Bandwidth rate, double loss, const TailOptions& options = {});

}  // namespace sdr::experiment
