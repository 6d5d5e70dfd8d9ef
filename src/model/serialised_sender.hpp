// The injection of a message on a wire that carries one chunk at a time.
//
// The paper's sender injects retransmissions beside first transmissions, at no cost to them. This one does what a link
// does: a chunk whose timeout has expired goes next, before chunks that were never sent, and everything behind it
// waits. It tells how far the paper's model is from that where M T_inj > RTO.
//
// Cost: as much as there are runs of losses. Pure but for the draws.
#pragma once

#include <cstdint>

#include "model/draws.hpp"
#include "model/loss.hpp"

namespace sdr::model {

// Seconds until the last chunk is injected for good. A lost chunk may go again `timeout` after its injection ended. The
// losses are one sequence over everything the wire carries.
double serialised_injection(std::uint64_t chunks, double injection, double timeout, const ChunkLoss& loss,
                            Draws& draws);

}  // namespace sdr::model
