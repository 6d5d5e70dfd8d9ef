// AdaptiveTail: which chunks of a Write the adaptive scheme protects ahead of their loss, and how much.
//
// A chunk that is lost early is named by the receiver and sent again while later chunks still go out: that costs the
// time of one chunk. What is lost within the last round trip of injection is missed after the end, and costs a round
// trip; only that tail gets parity, as much as leaves a chance of `target` that it does not suffice. A repair sent
// within the last round trip is exposed in the same way, and is covered by copies of itself until all copies of any
// repair are lost with a chance below the target.
// Pure. Source: what goes beyond the paper in "adaptive tail coding", docs/reliability.md.
#pragma once

#include <cstdint>

#include "coding/parity_plan.hpp"
#include "reliability/coding_layout.hpp"
#include "reliability/timing.hpp"
#include "reliability/transfer_sender.hpp"
#include "reliability/transfer_shape.hpp"
#include "sdr/link_estimator.hpp"

namespace sdr::reliability {

class AdaptiveTail {
 public:
  // From now on the path is taken to be so; `pace` is the sender's, not limited when it has none.
  void assume(const LinkEstimate& link, Bandwidth pace, const Timing& timing);

  // Whether what is lost now is repaired in the shadow of so many bytes of Writes that wait behind: neither does the
  // link stand still for it, nor does the last of them come later (docs/decisions/0009). `bytes_open`: of all transfers
  // that may be open at a time.
  [[nodiscard]] bool hides_repairs(std::uint64_t bytes_behind, std::uint64_t bytes_open) const;
  // For a transfer of so many bytes at `offset` of its Write. `alone`: no other Write waits for the link, so that
  // parity costs nobody anything but its own time.
  [[nodiscard]] CodingLayout layout(const TransferShape& shape, std::uint64_t bytes, std::uint64_t offset,
                                    std::uint64_t write_bytes, bool alone);
  // For a repair sent when so many bytes of the Write have yet to be sent for the first time. `write_chunks`: of all of
  // it. `lost`: the share of its chunks that is known to be lost, which may be more than was expected.
  [[nodiscard]] TransferSender::Covering covering(const TransferShape& shape, std::uint64_t bytes_left,
                                                  std::uint64_t write_chunks, double lost) const;
  // Repairs of one transfer that are to be covered.
  struct Repairs {
    std::uint32_t count = 0;
    double share = 1;               // of all that are to be covered now: the target is that of all
    std::uint32_t parity_most = 0;  // room for a code's parity
    std::uint32_t longest = 0;      // the most chunks of a group that the receiver can be told of
    double lost = 0;                // as above
  };
  [[nodiscard]] coding::CoverPlan cover_plan(const TransferShape& shape, const Repairs& repairs) const;
  // How often what a repair needs is to be said, so that it comes but for the target.
  [[nodiscard]] std::uint32_t statements(const TransferShape& shape, std::uint32_t of) const;

 private:
  // What is injected between the sending of a chunk and the arrival of its repair's request.
  [[nodiscard]] std::uint64_t exposed_bytes() const { return bytes_in(notice_); }
  [[nodiscard]] std::uint64_t bytes_in(Duration time) const;
  [[nodiscard]] std::uint32_t parity_most(const TransferShape& shape, std::uint32_t tail, bool alone) const;
  [[nodiscard]] coding::LossProcess chunk_loss(const TransferShape& shape) const;

  LinkEstimate link_;
  Bandwidth pace_{};
  Duration notice_{0};         // from the sending of a chunk until its loss is known here
  Duration repair_notice_{0};  // the same of a repair
  Duration rtt_{0};
  // The last plan, and for what: Writes of one size are many.
  struct {
    std::uint32_t chunks = 0;
    std::uint32_t most = 0;
    coding::LossProcess process;
    double target = 0;
    coding::ParityPlan plan;
  } last_;
};

}  // namespace sdr::reliability
