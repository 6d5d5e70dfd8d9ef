// Outgoing: the Writes of this end, cut into transfers, and everything their repair needs.
//
// Model: Writes go in order. Each is one transfer or, if it is larger than the largest message, several; a transfer
// takes the next SDK message of the connection (two with parity), whose receive the peer must have posted. The tag of a
// CTS says how many bytes of the peer's receive are left from that message on, so that a Write that does not fit is
// refused before anything is sent, and transfers of a receive that the Write does not reach are passed over.
// One transfer at a time has fresh chunks; those before it wait for acknowledgement and repair, so what is open is
// about a bandwidth-delay product.
//
// Threads: one. No I/O but through the QueuePair's queues, no clock.
// Invariants: transfers_[0] has number first_transfer_; completions leave in the order in which Writes finish.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "reliability/adaptive_tail.hpp"
#include "reliability/code_book.hpp"
#include "reliability/control_message.hpp"
#include "reliability/departures.hpp"
#include "reliability/timing.hpp"
#include "reliability/transfer_sender.hpp"
#include "reliability/transfer_shape.hpp"
#include "sdr/connection.hpp"
#include "sdr/queue_pair.hpp"

namespace sdr::reliability {

class Outgoing {
 public:
  // Handed out at a time: enough for one system call.
  static constexpr std::uint32_t kPiece = 64 << 10;

  Outgoing(const TransferShape& shape, QueuePair& queue_pair, Executor& executor, LinkEstimator& link,
           std::size_t control_bytes)
      : shape_(shape), queue_pair_(queue_pair), executor_(executor), link_(link), control_bytes_(control_bytes) {}

  WriteHandle post(std::span<const std::byte> data, std::optional<std::uint32_t> immediate);
  std::optional<WriteCompletion> poll();
  // Writes posted whose completion has not been taken.
  [[nodiscard]] std::size_t outstanding() const { return writes_.size() + completions_.size(); }
  [[nodiscard]] bool idle() const { return writes_.empty(); }

  // Protocol: the peer claims to hold what has not been sent.
  Result<void> handle(const ReportsHeader& header);
  Result<void> handle(const Report& report, Stamp echo);
  // How fast the path is taken to be, for what depends on it; zero: the QueuePair's pace. `congested`: what is lost now
  // is lost to a full queue.
  void set_path(Bandwidth rate, bool congested) {
    path_rate_ = rate;
    congested_ = congested;
  }
  // Feeds the QueuePair until its backlog is `backlog` bytes deep, in pieces of at most `piece` bytes or one chunk (0:
  // as much as is missing), or nothing is to be sent now.
  void feed(std::uint64_t backlog, std::uint32_t piece, const Timing& timing, TimePoint now);
  void expire(TimePoint now);
  void postpone(Duration absence);
  // Books what has left, closes what is acknowledged, completes Writes whose memory is free.
  void collect(const Timing& timing, TimePoint now);

  // Writes the datagram of offers that is due, if one is.
  bool poll_offers(ByteWriter& writer, const Timing& timing, Duration silence, TimePoint now);
  // Offers of nothing, which only ask what has landed.
  void write_question(ByteWriter& writer, TimePoint now) const;
  // The same of what names the chunks of repair groups.
  bool poll_repair_groups(ByteWriter& writer, const Timing& timing, TimePoint now);
  [[nodiscard]] TimePoint next_timeout(TimePoint now) const;

  void fail(const Error& error, TimePoint now);
  [[nodiscard]] std::uint64_t bytes_held() const;
  void add_to(ConnectionStatistics& statistics) const;
  [[nodiscard]] std::uint64_t bytes_outstanding() const;

 private:
  struct Write {
    std::uint64_t number = 0;
    std::uint64_t receive = 0;  // the peer's that it fills, once started; a refused Write fills none
    std::span<const std::byte> data;
    std::optional<std::uint32_t> immediate;
    std::uint64_t started = 0;  // bytes cut into transfers so far
    std::uint64_t transfers_open = 0;
    bool cut = false;      // all of it is in transfers
    TimePoint data_out{};  // when the last first transmission of data left
    [[nodiscard]] bool finished() const { return cut && transfers_open == 0; }
  };
  struct Transfer {
    std::unique_ptr<TransferSender> sender;  // null for one that is passed over
    std::uint64_t write = 0;                 // the number of its Write
    SendHandle data;
    std::optional<SendHandle> parity;
    bool data_out = false;
    bool all_sent = false;
    bool ended = false;    // its streams are closed
    int early_offers = 0;  // how often it has been offered close together
    TimePoint offer_at = TimePoint::min();
  };
  struct Choice {
    Transfer* transfer = nullptr;
    TransferSender::Extent extent;
  };

  // Starts what may be started: the next transfer, the parity message of the last, messages to pass over.
  void start_transfers(const Timing& timing, TimePoint now);
  bool start_transfer(const Timing& timing, TimePoint now);
  // Decides what of it is coded, and how.
  std::unique_ptr<TransferSender> make_sender(TransferPlan plan, const Write& write, const Timing& timing);
  void refuse(const std::deque<Write>::iterator& refused, std::uint64_t capacity, TimePoint now);
  [[nodiscard]] Choice choose(std::uint32_t piece, TimePoint now);
  [[nodiscard]] Bandwidth path_rate() const { return path_rate_.limited() ? path_rate_ : queue_pair_.rate(); }
  [[nodiscard]] OffersHeader offers_header(TimePoint now) const;
  // Adaptive: the next transfer of this one's Write may start before its parity has been handed out.
  [[nodiscard]] bool data_first(const Transfer& transfer);
  // Whether enough waits behind this Write for the repair of its tail to cost no time (adaptive).
  [[nodiscard]] bool hides_repairs(const Write& write) const;
  [[nodiscard]] TransferSender::Covering covering(const Transfer& transfer, const Timing& timing);
  // Covers the repairs that are to be covered once all data of their Write has gone.
  void cover_repairs(const Timing& timing);
  // Those of one transfer, which are among `all` of them.
  void cover_repairs(const Transfer& transfer, const std::vector<std::uint32_t>& repairs, std::size_t all);
  // Data of its started transfers that has not been handed out.
  [[nodiscard]] bool data_left(std::uint64_t write);
  // These packets of a chunk. False when the QueuePair does not take them; all of them are to be sent again then.
  bool send_holes(SendHandle stream, std::uint32_t first_packet, std::span<const std::byte> chunk,
                  std::uint64_t packets, bool ends);
  bool hand_out(const Choice& choice, const Timing& timing, TimePoint now);
  [[nodiscard]] bool sent(const Transfer& transfer) const;
  [[nodiscard]] std::optional<TailCode> tail_code_of(const TransferPlan& plan) const;
  // The transfer that was started last, unless it has been retired. Ones that are passed over may stand behind it.
  [[nodiscard]] Transfer* latest();
  void note_progress(TimePoint now);
  void note_departures(const Timing& timing, TimePoint now);
  [[nodiscard]] Write* find_write(std::uint64_t number);
  void complete_writes(TimePoint now, Duration rtt);

  TransferShape shape_;
  QueuePair& queue_pair_;
  Executor& executor_;
  LinkEstimator& link_;
  std::size_t control_bytes_;  // of a datagram
  AdaptiveTail tail_;
  CodeBook codes_;
  std::deque<Write> writes_;        // unfinished, in order of posting
  std::deque<Transfer> transfers_;  // started and not finished; the first has number first_transfer_
  std::deque<WriteCompletion> completions_;
  Departures departures_;
  std::uint64_t next_write_ = 0;
  std::uint64_t bytes_to_cut_ = 0;  // of all Writes, into transfers
  std::uint64_t next_receive_ = 0;  // of the peer, to be filled
  std::uint64_t first_transfer_ = 0;
  std::uint64_t latest_ = 0;                 // number of the transfer that was started last
  std::uint64_t messages_to_pass_ = 0;       // of the peer's receive, behind the end of the Write
  TimePoint passing_at_ = TimePoint::min();  // when to say again how far we are, while there are any
  std::uint64_t receive_transfers_ = 0;      // of the peer's receive that the Write being cut meets
  bool parity_to_start_ = false;             // of the latest transfer
  Bandwidth path_rate_{};
  bool congested_ = false;
  bool news_for_peer_ = false;  // it should hear that its final acknowledgements have come
  ConnectionStatistics totals_;
};

}  // namespace sdr::reliability
