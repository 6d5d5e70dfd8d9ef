// A tiny path for controllers: one queue of a rate and a size (or a policer), flows of different RTTs through it, in
// virtual time. Flows of ours are RateMembers that send packets of one size without end; beside them CUBIC (RFC 9438)
// and BBR (version 1, as in Linux) as far as their windows go. All that is lost is known after a round trip, repairs do
// not count.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "reliability/rate_group.hpp"
#include "simulation/counter_random.hpp"

namespace sdr::reliability::scripted {

inline constexpr std::uint32_t kPacket = 1500;
inline constexpr std::uint32_t kControl = 110;
inline constexpr Duration kCatchUp = std::chrono::milliseconds(10);  // of what a late sender had missed
inline constexpr TimePoint kStart = TimePoint(std::chrono::seconds(100));

inline Duration seconds(double s) {
  return Duration(static_cast<std::int64_t>(s * 1e9));
}
inline double to_seconds(Duration d) {
  return static_cast<double>(d.count()) * 1e-9;
}

struct Bottle {
  double rate = 1e8;       // bit/s
  double buffer = 1e6;     // bytes that may wait
  double loss = 0;         // at random, behind the queue
  bool policer = false;    // `buffer` is the bucket
  double ecn_mark_at = 0;  // bytes waiting from which packets are marked; 0: never
  std::uint64_t seed = 1;
};

class Path {
 public:
  explicit Path(const Bottle& bottle) : bottle_(bottle), random_(bottle.seed, 7), tokens_(bottle.buffer) {}

  struct Passage {
    bool passed = false;
    bool marked = false;
    TimePoint out{};
  };
  Passage pass(std::uint32_t bytes, TimePoint now) {
    const bool random_loss = bottle_.loss > 0 && static_cast<double>(random_(n_++) >> 11) * 0x1p-53 < bottle_.loss;
    if (dark_) return {};
    if (bottle_.policer) {
      tokens_ = std::min(bottle_.buffer, tokens_ + to_seconds(now - filled_) * bottle_.rate / 8);
      filled_ = now;
      if (tokens_ < bytes) {
        ++drops_;
        return {};
      }
      tokens_ -= bytes;
      if (random_loss) return {};
      return {true, false, now};
    }
    const double waiting = queued(now);
    most_ = std::max(most_, waiting);
    if (waiting + bytes > bottle_.buffer + kPacket) {
      ++drops_;
      return {};
    }
    free_ = std::max(free_, now) + seconds(bytes * 8 / bottle_.rate);
    if (random_loss) return {};
    return {true, bottle_.ecn_mark_at > 0 && waiting > bottle_.ecn_mark_at, free_};
  }
  void set_rate(double rate, TimePoint now) {
    const double waiting = queued(now);
    bottle_.rate = rate;
    free_ = now + seconds(waiting * 8 / rate);
  }
  void set_dark(bool dark) { dark_ = dark; }
  [[nodiscard]] bool dark() const { return dark_; }
  [[nodiscard]] double queued(TimePoint now) const {
    return free_ <= now ? 0 : to_seconds(free_ - now) * bottle_.rate / 8;
  }
  [[nodiscard]] double rate() const { return bottle_.rate; }
  [[nodiscard]] std::uint64_t drops() const { return drops_; }

 private:
  Bottle bottle_;
  simulation::CounterRandom random_;
  std::uint64_t n_ = 0;
  TimePoint free_ = kStart;
  double tokens_;
  TimePoint filled_ = kStart;
  bool dark_ = false;
  std::uint64_t drops_ = 0;
  double most_ = 0;
};

class Flow;

// The loop.
class World {
 public:
  explicit World(const Bottle& bottle) : path(bottle) {}
  void at(TimePoint when, std::function<void()> what) { events_.push({when, n_++, std::move(what)}); }
  void run_until(TimePoint stop) {
    while (!events_.empty() && events_.top().when <= stop) {
      Event event = std::move(const_cast<Event&>(events_.top()));
      events_.pop();
      now = event.when;
      event.what();
    }
    now = stop;
  }
  Path path;
  TimePoint now = kStart;

 private:
  struct Event {
    TimePoint when;
    std::uint64_t n;
    std::function<void()> what;
    bool operator<(const Event& o) const { return when != o.when ? when > o.when : n > o.n; }
  };
  std::priority_queue<Event> events_;
  std::uint64_t n_ = 0;
};

class Flow {
 public:
  Flow(World& world, double rtt) : world_(world), rtt_(rtt) {}
  virtual ~Flow() = default;
  virtual void start() = 0;
  void set_rtt(double rtt) { rtt_ = rtt; }
  std::uint64_t delivered = 0;  // bytes that landed by their time of sending
  std::uint64_t sent = 0;
  bool stopped = false;

 protected:
  World& world_;
  double rtt_;
};

// Ours.
class SdrFlow final : public Flow {
 public:
  SdrFlow(World& world, double rtt, std::shared_ptr<RateGroup> group)
      : Flow(world, rtt), member(std::move(group), kPacket) {}
  void start() override { wake(); }
  RateMember member;
  bool wants = true;
  double late = 0;  // it wakes up so late in the mean, ten times as late once in a hundred times

  void wake() {
    const TimePoint now = world_.now;
    scheduled_ = kNever;
    if (stopped) return;
    const bool silent =
        heard_ != TimePoint::min() && now - heard_ > std::max(seconds(0.1), seconds(4 * rtt_)) && packets_ > answered_;
    for (int i = 0; i < 10'000; ++i) {
      const auto allowance = member.allowance(state(), now);
      pace_ = allowance.pace;
      limit_ = allowance.packets;
      free_ = std::max(free_, now - (late > 0 ? kCatchUp : Duration(1'000'000)));
      if (!wants || silent || packets_ >= limit_) {
        free_ = std::max(free_, now);
        break;
      }
      if (free_ > now) break;
      send();
    }
    TimePoint question = member.question_at(state(), now);
    if (silent) question = asked_ + std::chrono::milliseconds(100);
    if (question <= now) {
      ask();
      question = member.question_at(state(), now);
    }
    TimePoint next = std::min({question, member.next_timeout(), now + std::chrono::milliseconds(50)});
    if (wants && !silent && packets_ < limit_) next = std::min(next, free_);
    schedule(std::max(next, now + std::chrono::microseconds(1)));
  }

 private:
  [[nodiscard]] RateMember::Sent state() const { return {packets_, packets_ * kPacket, wants, seconds(rtt_)}; }
  void schedule(TimePoint when) {
    if (when >= scheduled_) return;
    scheduled_ = when;
    world_.at(when + lateness(), [this, when] {
      if (scheduled_ == when) wake();
    });
  }
  Duration lateness() {
    if (late == 0) return Duration::zero();
    const auto uniform = [this] { return (static_cast<double>(random_(drawn_++) >> 11) + 1) * 0x1p-53; };
    return seconds(-std::log(uniform()) * late * (uniform() < 0.01 ? 10 : 1));
  }
  void send() {
    const auto passage = world_.path.pass(kPacket, world_.now);
    ++packets_;
    sent += kPacket;
    if (passage.passed) {
      ++landed_;
      marks_ += passage.marked ? 1U : 0U;
      delivered += kPacket;
    }
    free_ += pace_.limited() ? pace_.time_for({kPacket}) : Duration(1);
  }
  void ask() {
    const TimePoint now = world_.now;
    const auto passage = world_.path.pass(kControl, now);
    if (pace_.limited()) free_ = std::max(free_, now) + pace_.time_for({kControl});
    member.offered(to_stamp(now), state(), now);
    asked_ = now;
    if (!passage.passed) return;
    const TimePoint there = passage.out + seconds(rtt_ / 2);
    const TimePoint back = there + seconds(rtt_ / 2);
    const FlightRecord::Word word{.echo = to_stamp(now),
                                  .landed = landed_,
                                  .marks = marks_,
                                  .arrival = to_stamp(there) + 12345,
                                  .held = Duration(0)};
    const std::uint64_t answered = packets_;
    world_.at(back, [this, word, answered] {
      if (world_.path.dark() || stopped) return;
      const bool dark = heard_ != TimePoint::min() && world_.now - heard_ > std::max(seconds(0.1), seconds(4 * rtt_));
      heard_ = world_.now;
      answered_ = answered;
      member.reported(word, state(), dark, world_.now);
      wake();
    });
  }

  simulation::CounterRandom random_{7, 7};
  std::uint64_t drawn_ = 0;
  Bandwidth pace_{};
  std::uint64_t limit_ = 0;
  std::uint64_t packets_ = 0, landed_ = 0, marks_ = 0, answered_ = 0;
  TimePoint free_ = TimePoint::min(), scheduled_ = kNever, heard_ = TimePoint::min(), asked_{};
};

// What TCP flows have in common: a window of packets, each acknowledged, a gap is a loss.
class TcpFlow : public Flow {
 public:
  using Flow::Flow;
  void start() override { pump(); }
  double cwnd = 10;

 protected:
  struct Out {
    std::uint64_t delivered;
    TimePoint delivered_at, sent_at, first_sent;
    bool lost;
    std::uint64_t n;
  };
  virtual void acked(const Out& out, double rtt, std::uint64_t losses) = 0;
  [[nodiscard]] virtual double pacing() const { return 0; }  // bit/s

  void pump() {
    if (stopped) return;
    const TimePoint now = world_.now;
    while (static_cast<double>(out_.size()) < cwnd) {
      if (pacing() > 0) {
        free_ = std::max(free_, now - std::chrono::milliseconds(1));
        if (free_ > now) {
          if (!timer_) {
            timer_ = true;
            world_.at(free_, [this] {
              timer_ = false;
              pump();
            });
          }
          return;
        }
        free_ += seconds(kPacket * 8 / pacing());
      }
      const auto passage = world_.path.pass(kPacket, now);
      sent += kPacket;
      if (out_.empty()) first_sent_ = delivered_at_ = now;
      out_.push_back({delivered_, delivered_at_, now, first_sent_, !passage.passed, n_++});
      if (!passage.passed) {
        if (!rto_) {  // a tail may be lost altogether
          rto_ = true;
          world_.at(now + seconds(std::max(0.2, 4 * rtt_)), [this] {
            rto_ = false;
            timeout();
          });
        }
        continue;
      }
      delivered += kPacket;
      const std::uint64_t n = n_ - 1;
      world_.at(passage.out + seconds(rtt_), [this, n] { ack(n); });
    }
  }
  void timeout() {
    std::uint64_t losses = 0;
    while (!out_.empty() && out_.front().lost && world_.now - out_.front().sent_at > seconds(std::max(0.2, 3 * rtt_))) {
      out_.pop_front();
      ++losses;
    }
    pump();
  }
  void ack(std::uint64_t n) {
    std::uint64_t losses = 0;
    while (!out_.empty() && out_.front().n < n) {
      losses += out_.front().lost ? 1U : 0U;
      out_.pop_front();
    }
    if (out_.empty() || out_.front().n != n) return;
    const Out out = out_.front();
    out_.pop_front();
    ++delivered_;
    delivered_at_ = world_.now;
    first_sent_ = out.sent_at;
    acked(out, to_seconds(world_.now - out.sent_at), losses);
    pump();
  }
  std::deque<Out> out_;
  std::uint64_t n_ = 0, delivered_ = 0;
  TimePoint delivered_at_{}, first_sent_{}, free_ = TimePoint::min();
  bool timer_ = false, rto_ = false;
};

class CubicFlow final : public TcpFlow {
 public:
  using TcpFlow::TcpFlow;

 private:
  void acked(const Out& out, double rtt, std::uint64_t losses) override {
    if (rtt < min_rtt_) min_rtt_ = rtt;
    if (losses > 0 && out.n >= recover_) {
      most_ = cwnd < most_ ? cwnd * (2 - 0.7) / 2 * 1.0 : cwnd;
      cwnd = std::max(2.0, cwnd * 0.7);
      threshold_ = cwnd;
      reno_ = cwnd;
      recover_ = n_;
      epoch_ = TimePoint::min();
      return;
    }
    if (cwnd < threshold_) {
      cwnd += 1;
      if (rtt > min_rtt_ + std::clamp(min_rtt_ / 8, 0.004, 0.016)) threshold_ = cwnd;  // HyStart
      return;
    }
    if (epoch_ == TimePoint::min()) {
      epoch_ = world_.now;
      if (most_ < cwnd) most_ = cwnd;
      k_ = std::cbrt((most_ - cwnd) / 0.4);
      reno_ = cwnd;
    }
    const double t = to_seconds(world_.now - epoch_) + min_rtt_;
    const double target = std::min(most_ + 0.4 * std::pow(t - k_, 3), 1.5 * cwnd);
    reno_ += 3 * 0.3 / 1.7 / cwnd;
    if (target > cwnd)
      cwnd += (target - cwnd) / cwnd;
    else
      cwnd += 0.01 / cwnd;
    cwnd = std::max(cwnd, reno_);
  }
  double threshold_ = 1e18, most_ = 0, k_ = 0, reno_ = 0, min_rtt_ = 1e9;
  std::uint64_t recover_ = 0;
  TimePoint epoch_ = TimePoint::min();
};

class BbrFlow final : public TcpFlow {
 public:
  using TcpFlow::TcpFlow;
  [[nodiscard]] double pacing() const override {
    return bw_ > 0 ? gain_ * bw_ * kPacket * 8 : 10 * kPacket * 8 * 2.89 / 0.02;
  }

 private:
  void acked(const Out& out, double rtt, std::uint64_t) override {
    const TimePoint now = world_.now;
    if (out.delivered >= round_end_) {
      round_end_ = delivered_;
      ++round_;
      round_start_ = true;
    } else {
      round_start_ = false;
    }
    const double interval = std::max(to_seconds(now - out.delivered_at), to_seconds(out.sent_at - out.first_sent));
    if (interval > 0) {
      const double bw = static_cast<double>(delivered_ - out.delivered) / interval;
      while (!filter_.empty() && (filter_.back().second <= bw)) filter_.pop_back();
      filter_.push_back({round_, bw});
      while (filter_.front().first + 10 < round_) filter_.pop_front();
      bw_ = filter_.front().second;
    }
    const bool expired = now - min_at_ > std::chrono::seconds(10);
    if (rtt <= min_rtt_ || expired) {
      min_rtt_ = rtt;
      min_at_ = now;
    }
    const double bdp = bw_ * min_rtt_;
    const auto in_flight = static_cast<double>(out_.size());
    if (mode_ == 0 && round_start_) {
      if (bw_ > full_ * 1.25) {
        full_ = bw_;
        count_ = 0;
      } else if (++count_ >= 3) {
        mode_ = 1;
        gain_ = 1 / 2.89;
        cwnd_gain_ = 2.89;
      }
    }
    if (mode_ == 1 && in_flight <= bdp) {
      mode_ = 2;
      phase_ = 2;
      phase_at_ = now;
      gain_ = 1;
      cwnd_gain_ = 2;
    }
    if (mode_ == 2) {
      const bool elapsed = to_seconds(now - phase_at_) > min_rtt_;
      const bool next = gain_ > 1   ? elapsed && in_flight >= 1.25 * bdp
                        : gain_ < 1 ? elapsed || in_flight <= bdp
                                    : elapsed;
      if (next || (gain_ > 1 && to_seconds(now - phase_at_) > 4 * min_rtt_)) {
        phase_ = (phase_ + 1) % 8;
        phase_at_ = now;
        gain_ = phase_ == 0 ? 1.25 : phase_ == 1 ? 0.75 : 1;
      }
    }
    if (mode_ != 3 && expired) {
      saved_ = mode_;
      mode_ = 3;
      probe_end_ = now + std::chrono::milliseconds(200);
      gain_ = 1;
    }
    if (mode_ == 3) {
      cwnd = 4;
      if (in_flight > 5 && now < probe_end_) probe_end_ = std::max(probe_end_, now + std::chrono::milliseconds(200));
      if (now > probe_end_) {
        min_at_ = now;
        mode_ = saved_ == 0 ? 0 : 2;
        phase_ = 2;
        phase_at_ = now;
        if (mode_ == 0)
          gain_ = 2.89;
        else
          gain_ = 1;
      }
      return;
    }
    const double target = cwnd_gain_ * bdp + 3;
    cwnd = mode_ == 0 ? cwnd + 1 : std::max(4.0, std::min(cwnd + 1, target));
  }
  int mode_ = 0, saved_ = 0, phase_ = 0, count_ = 0;
  double gain_ = 2.89, cwnd_gain_ = 2.89, bw_ = 0, full_ = 0, min_rtt_ = 1e9;
  std::uint64_t round_ = 0, round_end_ = 0;
  bool round_start_ = false;
  std::deque<std::pair<std::uint64_t, double>> filter_;
  TimePoint min_at_{}, phase_at_{}, probe_end_{};
};

}  // namespace sdr::reliability::scripted
