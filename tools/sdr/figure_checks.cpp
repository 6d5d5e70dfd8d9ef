#include "sdr/figure_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace sdr::cli {
namespace {

struct Task {
  Cell cell;
  bool tail = false;  // the percentile, too
  bool simulate = false;
  std::optional<Estimate> drawn;
  std::optional<Estimate> simulated;
};
using Tasks = std::map<std::string, Task>;

bool takes_percentile(const Question& question) {
  return question.statistic == Statistic::P999 || question.of_percentile_runs;
}

// A mean that shares nothing with a percentile has runs of its own: they do not depend on what else is asked for.
std::string key_of(const Cell& cell, const Question& question) {
  return key(cell) + (takes_percentile(question) ? " tail" : "");
}

void want(Tasks& tasks, const Cell& cell, const Question& question, bool simulate) {
  Task& task = tasks[key_of(cell, question)];
  task.cell = cell;
  task.tail = takes_percentile(question);
  task.simulate |= simulate;
}

// Without the percentile where that is too dear.
Result<std::optional<Estimate>> ask(const Check& check, const Cell& cell, bool tail) {
  Result<std::optional<Estimate>> estimate = check(cell, tail);
  return tail && estimate && !*estimate ? check(cell, false) : estimate;
}

Result<void> work_on(std::vector<Task*>& tasks, const Check& monte_carlo, const Check& protocol, unsigned threads) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::optional<Error> error;
  // Even numbers are Monte Carlo, odd ones the protocol.
  const auto work = [&] {
    for (std::size_t n = next.fetch_add(1); n < 2 * tasks.size(); n = next.fetch_add(1)) {
      Task& task = *tasks[n / 2];
      const bool simulate = n % 2 == 1;
      if (simulate && !task.simulate) continue;
      const Result<std::optional<Estimate>> estimate = ask(simulate ? protocol : monte_carlo, task.cell, task.tail);
      if (estimate) {
        (simulate ? task.simulated : task.drawn) = *estimate;
        continue;
      }
      const std::lock_guard lock(mutex);
      if (!error) error = estimate.error();
      next = 2 * tasks.size();
    }
  };
  std::vector<std::thread> others;
  for (unsigned t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  if (error) return *error;
  return {};
}

// Nothing when one of the two cells was too large.
Answer answered(const Tasks& tasks, const Question& question, std::optional<Estimate> Task::*check) {
  const std::optional<Estimate>& cell = tasks.at(key_of(question.cell, question)).*check;
  if (!cell) return {};
  if (!question.over) return answer(question, *cell, std::nullopt);
  const std::optional<Estimate>& over = tasks.at(key_of(*question.over, question)).*check;
  return over ? answer(question, *cell, over) : Answer{};
}

}  // namespace

Result<void> check_figures(std::vector<Figure>& figures, const Check& monte_carlo, const Check& protocol,
                           unsigned threads) {
  Tasks tasks;
  const auto each_question = [&](auto&& act) {
    for (Figure& figure : figures) {
      for (Series& series : figure.series) {
        for (Point& point : series.points) {
          if (point.question) act(point);
        }
      }
    }
  };
  each_question([&](const Point& point) {
    const Question& question = *point.question;
    want(tasks, question.cell, question, point.simulate);
    if (question.over) want(tasks, *question.over, question, point.simulate);
  });
  std::vector<Task*> order;
  for (auto& [name, task] : tasks) order.push_back(&task);
  // The long ones first, so that no thread is left with one at the end.
  std::stable_sort(order.begin(), order.end(), [](const Task* a, const Task* b) {
    return std::pair(a->tail && a->simulate, a->simulate) > std::pair(b->tail && b->simulate, b->simulate);
  });
  if (Result<void> done = work_on(order, monte_carlo, protocol, threads); !done) return done;
  each_question([&](Point& point) {
    point.monte_carlo = answered(tasks, *point.question, &Task::drawn);
    if (point.simulate) point.simulated = answered(tasks, *point.question, &Task::simulated);
  });
  for (Figure& figure : figures) {
    if (figure.conclude) figure.conclude(figure);
  }
  return {};
}

double deviation(const Answer& answer, const Point& point) {
  return answer.value / point.theory - 1;
}

Agreement agreement_of(const Figure& figure, Answer Point::*check) {
  Agreement agreement;
  std::vector<double> all;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) {
      const double off = std::abs(deviation(point.*check, point));
      if (!std::isfinite(off)) continue;
      all.push_back(off);
      if (off <= 0.05) ++agreement.within_5_percent;
      if (off < agreement.worst) continue;
      agreement.worst = off;
      agreement.worst_at = fmt::format("{} at {}", series.name, place_of(figure, series, point));
    }
  }
  agreement.points = all.size();
  if (all.empty()) return agreement;
  std::sort(all.begin(), all.end());
  agreement.median = all[all.size() / 2];
  return agreement;
}

Verdicts verdicts_of(const std::vector<Figure>& figures, bool ours) {
  Verdicts verdicts;
  for (const Figure& figure : figures) {
    if (figure.ours != ours) continue;
    verdicts.statements += figure.statements.size();
    verdicts.agree += static_cast<std::size_t>(std::count_if(figure.statements.begin(), figure.statements.end(),
                                                             [](const Statement& s) { return s.agrees(); }));
  }
  return verdicts;
}

std::string place_of(const Figure& figure, const Series& series, const Point& point) {
  const std::string x = to_string(point.x, figure.x.unit);
  if (figure.shape == Shape::Panels) return fmt::format("{}, {}", x, figure.panels[series.panel].title);
  return figure.shape == Shape::Map ? fmt::format("{}, {}", x, to_string(point.y, figure.y.unit)) : x;
}

}  // namespace sdr::cli
