// Incoming: the receives of this end, announced ahead, filled by the peer's Writes, and what is said about them.
//
// Model: a posted receive of n bytes is announced as ceil(n / transfer) transfers (at least one), each an SDK receive
// into its part of the buffer and, with parity, a second one into scratch memory. They are announced in order, as far
// ahead as slots and posted_ahead allow. The peer's Write may be shorter: transfers it does not reach are completed
// as soon as its length is known. That takes no word of the peer, so announcing waits for it: never more than the slots
// ahead of where the peer is known to be. Else slots would go through all their generations within one round trip, and
// a late packet would be taken for a current one. When a transfer has all it needs, its SDK receives are completed
// first, so that no late packet can touch the buffer, then missing chunks are decoded in place, then the peer is told.
//
// A final acknowledgement can be lost: every report says up to where all transfers are complete, and any offer of a
// completed transfer is answered. That memory is one number. With nothing more to come it is said again a few times,
// until the peer says that it knows.
//
// Threads: one. No I/O but through the QueuePair, no clock.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "reliability/code_book.hpp"
#include "reliability/control_message.hpp"
#include "reliability/timing.hpp"
#include "reliability/transfer_receiver.hpp"
#include "reliability/transfer_shape.hpp"
#include "sdr/connection.hpp"
#include "sdr/queue_pair.hpp"

namespace sdr::reliability {

class Incoming {
 public:
  Incoming(const TransferShape& shape, QueuePair& queue_pair, Executor& executor, Bytes posted_ahead)
      : shape_(shape),
        queue_pair_(queue_pair),
        executor_(executor),
        posted_ahead_(posted_ahead.count),
        transfers_ahead_most_(queue_pair.geometry().slots / shape.rules.messages_each()) {}

  ReceiveHandle post(std::span<std::byte> buffer);
  std::optional<ReceiveCompletion> poll();
  [[nodiscard]] std::size_t outstanding() const { return receives_.size() + completions_.size(); }
  // A Write is under way: the peer has offered a part of it, and not all of it is complete.
  [[nodiscard]] bool active() const;
  // The peer knows that everything it sent us is complete.
  [[nodiscard]] bool settled() const { return peer_settled_ >= first_transfer_ && !active(); }

  // Protocol: an offer that contradicts what was announced.
  Result<void> handle(OffersReader offers, const Timing& timing, TimePoint now);
  // Offers count as having come when the drive after theirs begins, and are answered then: what a drive takes in may
  // have come after its clock was read, by as much as this end was kept from its core. True when there were any.
  bool date_offers(TimePoint now);
  // Protocol: groups that there cannot be.
  Result<void> handle(RepairGroupsReader groups);
  // Announces what may be announced, looks at the bitmaps, completes, decodes. An error of the transport: a receive
  // that it could not expose.
  Result<void> drive(const Timing& timing, TimePoint now);
  // Writes the datagram of reports that is due, if one is.
  bool poll_reports(ByteWriter& writer, const Timing& timing, TimePoint now);
  [[nodiscard]] TimePoint next_timeout() const;

  void fail(const Error& error, TimePoint now);
  [[nodiscard]] std::optional<LandedPrefix> landed_prefix() const;
  [[nodiscard]] std::uint64_t bytes_landed() const;
  [[nodiscard]] std::uint64_t bytes_expected() const;  // of the Writes under way and done
  void add_to(ConnectionStatistics& statistics) const;

 private:
  struct Receive {
    std::uint64_t number = 0;
    std::span<std::byte> buffer;
    std::uint64_t transfers = 0;  // announced for it, in all
    std::uint64_t announced = 0;
    std::uint64_t done = 0;
    std::optional<std::uint64_t> length;  // of the Write, once known
    std::optional<std::uint32_t> immediate;
  };
  // Memory for parity, reused; untouched pages of it cost nothing. None where payload is not carried.
  struct Scratch {
    std::unique_ptr<std::byte[]> memory;
    std::uint64_t bytes = 0;
  };
  struct Transfer {
    std::uint64_t receive = 0;
    std::uint64_t index = 0;  // in its receive
    std::unique_ptr<TransferReceiver> receiver;
    std::optional<RecvHandle> data;  // open SDK receives
    std::optional<RecvHandle> parity;
    Scratch scratch;
    bool decoding = false;
    bool done = false;
  };
  struct Echo {
    Stamp stamp = 0;
    TimePoint arrived{};
    std::uint64_t landed = 0;  // packets of the peer that had landed by then
    std::uint64_t marks = 0;   // that had come in marked by then
  };

  Result<void> announce();
  // The bytes of its buffer that the index-th transfer of a receive covers.
  [[nodiscard]] std::span<std::byte> part_of(const Receive& receive, std::uint64_t index) const;
  Result<void> announce_data(Receive& receive);
  Result<void> announce_parity();
  Result<void> take_offer(const Offer& offer, const ReceiverTiming& timing, TimePoint now);
  // The layout and code of what is offered. Protocol: a code that there is not, or one that needs more than there is.
  Result<void> begin_transfer(Transfer& transfer, const Offer& offer, std::uint64_t length,
                              const ReceiverTiming& timing, TimePoint now);
  void pass_over(const Receive& receive);
  void look(Transfer& transfer, const ReceiverTiming& timing, TimePoint now);
  void close_messages(Transfer& transfer);
  void finish(Transfer& transfer);
  void retire(const Timing& timing, TimePoint now);
  void confirm(const Timing& timing, TimePoint now);
  [[nodiscard]] Receive* find_receive(std::uint64_t number);
  [[nodiscard]] ReceiverTiming receiver_timing(const Timing& timing) const;
  [[nodiscard]] static std::uint64_t packets_landed(const QueuePairCounters& counters);
  // Of the chunks that report_ wants, which packets are not here.
  void list_holes(const Transfer& transfer);
  void settle_echo(Duration tolerance, TimePoint now);

  TransferShape shape_;
  QueuePair& queue_pair_;
  Executor& executor_;
  std::uint64_t posted_ahead_;
  std::uint64_t transfers_ahead_most_;

  std::deque<Receive> receives_;
  std::deque<Transfer> transfers_;  // announced and not retired; the first has number first_transfer_
  std::deque<ReceiveCompletion> completions_;
  std::uint64_t next_receive_ = 0;
  std::uint64_t first_transfer_ = 0;  // everything below is complete
  std::uint64_t announced_bytes_ = 0;
  bool parity_to_announce_ = false;

  std::vector<Scratch> free_scratch_;
  std::uint64_t peer_settled_ = 0;
  std::uint64_t peer_position_ = 0;  // the peer is known to have come so far: started or passed over all below
  Bandwidth peer_rate_{};
  Echo echo_newest_;
  bool echo_is_fresh_ = false;  // to be dated by the next drive
  Stamp echo_settled_ = 0;
  std::deque<Echo> echoes_;  // newer than echo_settled_, oldest first; bounded
  bool answer_due_ = false;
  TimePoint confirm_at_ = kNever;  // when to repeat our last word, unheard by the peer
  Duration confirm_wait_{0};
  int confirmations_left_ = 0;
  TimePoint repeat_at_ = kNever;  // when to say again, close after the first time, that a transfer is complete
  int repeats_left_ = 0;
  CodeBook codes_;
  Report report_;  // reused
  RepairGroup group_;
  ConnectionStatistics totals_;
};

}  // namespace sdr::reliability
