// The page: every figure beside what the paper states, whether ours agrees and why, and how far theory is from checks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sdr/figure_checks.hpp"
#include "sdr/figure_writers.hpp"

namespace sdr::cli {
namespace {

constexpr const char* kStyle = R"(
body { font: 16px/1.5 sans-serif; color: #222; max-width: 1120px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.7em; } h2 { font-size: 1.25em; margin-top: 2.5em; border-top: 1px solid #ccc; padding-top: 1em; }
img { width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; margin: 0.8em 0; }
th, td { text-align: left; vertical-align: top; padding: 0.3em 0.7em; border-bottom: 1px solid #ddd; }
th { background: #f2f2f2; } td.n, th.n { text-align: right; white-space: nowrap; }
.yes { color: #00684c; font-weight: bold; white-space: nowrap; } .no { color: #a34700; font-weight: bold; white-space: nowrap; }
tr.far td { background: #fdf1e3; }
details { margin: 0.8em 0; } summary { cursor: pointer; }
nav a { margin-right: 0.8em; } .small { font-size: 0.9em; color: #555; }
)";

constexpr const char* kReading = R"(<h2 id="reading">How to read the checks</h2>
<p><b>Theory</b> is the closed form of docs/model.md. <b>Monte Carlo</b> draws the losses and, unlike the theory, puts
retransmissions on the wire, where they delay what is behind them. <b>Protocol, simulated</b> is the real code over a
simulated link in virtual time, both ends, acknowledgements lost like data. Both are shown where they are affordable: the
protocol up to 32 MiB over sizes and at 128 MiB over loss and distance, fewer runs the larger the message. &plusmn; is
the standard error. Rows more than 5 % off and more than three standard errors are marked.</p>
<p>Where the protocol differs from the theory for a reason:</p>
<ul>
<li><b>Coded Writes end earlier</b>, by up to the time their parity takes: the receiver is done when it can decode, and
does not wait for the parity it has no need of. The theory counts all of it.</li>
<li><b>A fallback costs less</b>: coded schemes fall back to selective repeat by NACK (1 RTT) and ask only for the chunks
that parity cannot replace; the theory, like the paper, sends the whole submessage again with a timeout of 3 RTT. This is
most of the distance for XOR from a loss of 1e-3 on.</li>
<li><b>A gap is no loss yet</b>: the receiver waits a sixteenth of the RTT for a packet that fell behind before it names a
gap. Each round of NACK takes that much longer than the 1 RTT of the theory.</li>
<li><b>A percentile beside a step</b> may stand on the step before or behind it, in a sample of thousands: 3c at 2e-8, 10c
at 1e-1.</li>
<li><b>Adaptive Writes</b> wait for the tolerance of a gap only when parity did not do; the theory of theirs takes the
submessages of the tail as independent, which in bursts they are not, so that bursts are simulated.</li>
<li><b>The last acknowledgement</b> can be lost, and waits for the receiver's step; a few tenths of a percent.</li>
</ul>
)";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string verdict(const Statement& statement) {
  if (!std::isfinite(statement.computed)) return "<td class=\"no\">not measured</td>";
  return statement.agrees() ? "<td class=\"yes\">agrees</td>" : "<td class=\"no\">does not agree</td>";
}

std::string statement_rows(const Figure& figure, bool with_figure, bool with_why) {
  std::string rows;
  for (const Statement& statement : figure.statements) {
    rows +=
        fmt::format("<tr>{}<td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>{}{}</tr>\n",
                    with_figure ? fmt::format("<td><a href=\"#figure-{0}\">{0}</a></td>", figure.id) : "",
                    escaped(statement.text), escaped(statement.stated), to_string(statement.computed, statement.unit),
                    verdict(statement), with_why ? fmt::format("<td>{}</td>", escaped(statement.why)) : "");
  }
  return rows;
}

std::string percent(double share) {
  return fmt::format("{:.{}f} %", share * 100, std::abs(share) < 0.001 ? 2 : 1);
}

std::string sentence_of(const char* what, const Agreement& agreement) {
  if (agreement.points == 0) return "";
  return fmt::format("{} at {} point{}: {} of them within 5 % of the theory, the median {} off, the most {} ({}). ",
                     what, agreement.points, agreement.points == 1 ? "" : "s", agreement.within_5_percent,
                     percent(agreement.median), percent(agreement.worst), escaped(agreement.worst_at));
}

std::string answer_cells(const Answer& answer, const Point& point) {
  if (!std::isfinite(answer.value)) return "<td></td><td></td>";
  const std::string value =
      answer.value < 0.01 ? fmt::format("{:.2e}", answer.value) : fmt::format("{:.4g}", answer.value);
  const double off = deviation(answer, point);
  const std::string error = std::isfinite(answer.error) ? fmt::format(" &plusmn; {}", percent(answer.error)) : "";
  if (!std::isfinite(off)) {
    return fmt::format("<td class=\"n\">{} <span class=\"small\">({:.0f} runs)</span></td><td class=\"n\">{}</td>",
                       value, answer.runs, error);
  }
  return fmt::format("<td class=\"n\">{} <span class=\"small\">({:.0f} runs)</span></td><td class=\"n\">{}{}{}</td>",
                     value, answer.runs, off < 0 ? "&minus;" : "+", percent(std::abs(off)), error);
}

bool is_far(const Answer& answer, const Point& point) {
  const double off = std::abs(deviation(answer, point));
  return off > 0.05 && !(off < 3 * answer.error);
}

std::string check_table(const Figure& figure) {
  std::string rows;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) {
      const bool simulated = std::isfinite(point.simulated.value);
      // A map's cells by Monte Carlo alone are hundreds; its CSV has them.
      if (figure.shape == Shape::Map ? !simulated : !std::isfinite(point.monte_carlo.value) && !simulated) continue;
      const std::string theory = !std::isfinite(point.theory) ? ""
                                 : point.theory < 0.01        ? fmt::format("{:.2e}", point.theory)
                                                              : fmt::format("{:.4g}", point.theory);
      rows += fmt::format("<tr{}><td>{}</td><td>{}</td><td class=\"n\">{}</td>{}{}</tr>\n",
                          is_far(point.simulated, point) || is_far(point.monte_carlo, point) ? " class=\"far\"" : "",
                          escaped(series.name), escaped(place_of(figure, series, point)), theory,
                          answer_cells(point.monte_carlo, point), answer_cells(point.simulated, point));
    }
  }
  return fmt::format(
      "<details><summary>How far off theory is, point by point</summary><table><tr><th>curve</th><th>at</th>"
      "<th class=\"n\">theory</th><th class=\"n\">Monte Carlo</th><th class=\"n\">off</th>"
      "<th class=\"n\">protocol, simulated</th><th class=\"n\">off</th></tr>\n{}</table></details>\n",
      rows);
}

std::string checks_of(const Figure& figure) {
  const Agreement drawn = agreement_of(figure, &Point::monte_carlo);
  const Agreement simulated = agreement_of(figure, &Point::simulated);
  if (figure.ours && drawn.points == 0 && simulated.points == 0) return check_table(figure);
  if (drawn.points == 0) {
    return "<p class=\"small\">Monte Carlo only: there is no closed form to hold it against, and the simulator runs "
           "single "
           "Writes, not rings of them.</p>\n";
  }
  return fmt::format("<p class=\"small\">{}{}</p>\n{}", sentence_of("Monte Carlo", drawn),
                     sentence_of("Protocol, simulated,", simulated), check_table(figure));
}

std::string section(const Figure& figure) {
  const std::string stem = file_stem(figure);
  return fmt::format(
      "<h2 id=\"{0}\">Figure {1}: {2}</h2>\n<p>{3}</p>\n<a href=\"{0}.png\"><img src=\"{0}.svg\" alt=\"Figure {1}: "
      "{2}\">"
      "</a>\n<p class=\"small\"><a href=\"{0}.csv\">{0}.csv</a> &middot; <a href=\"{0}.svg\">SVG</a> &middot; <a "
      "href=\"{0}.png\">PNG</a> &middot; <a href=\"{0}.gp\">gnuplot script</a></p>\n<table><tr><th>{6}</th>"
      "<th class=\"n\">{7}</th><th class=\"n\">computed</th><th></th><th>why</th></tr>\n{4}</table>\n{5}",
      stem, figure.id, escaped(figure.title), escaped(figure.caption), statement_rows(figure, false, true),
      checks_of(figure), figure.ours ? "we claim" : "the paper states", figure.ours ? "claimed" : "stated");
}

// The statements of the paper, or ours, and whether they agree.
std::string summary_of(const std::vector<Figure>& figures, bool ours) {
  const Verdicts verdicts = verdicts_of(figures, ours);
  if (verdicts.statements == 0) return "";
  std::string rows;
  for (const Figure& figure : figures) {
    if (figure.ours == ours) rows += statement_rows(figure, true, false);
  }
  return fmt::format(
      "<p><b>{} of {} {}.</b> {}</p>\n<table><tr><th>figure</th><th>{}</th><th class=\"n\">{}</th><th "
      "class=\"n\">computed</th><th></th></tr>\n{}</table>\n",
      verdicts.agree, verdicts.statements,
      ours ? "claims about the adaptive scheme, which is ours, hold" : "statements agree",
      ours ? "Slowdowns are counted in the floor, M T_inj / (1 - p) + RTT, unless it says lossless times: no scheme "
             "that sends lost chunks again can be faster in the mean."
           : "A single number agrees when ours is within 10 % of it; one that is \"near\" or \"about\" on a "
             "logarithmic axis, within a factor of 2; a bound or a range when it is kept.",
      ours ? "we claim" : "the paper states", ours ? "claimed" : "stated", rows);
}

}  // namespace

std::string to_page(const std::vector<Figure>& figures, const FigureOptions& options) {
  std::string links;
  std::string sections;
  for (const Figure& figure : figures) {
    links += fmt::format("<a href=\"#figure-{0}\">{0}</a>", figure.id);
    sections += section(figure);
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>Figures of the SDR-RDMA paper, "
      "computed</title><style>{}</style></head><body>\n"
      "<h1>Figures of the SDR-RDMA paper, computed</h1>\n"
      "<p>What the paper (SC'25, sections 4.2, 5.2, 5.3) states in words about its completion-time figures, beside "
      "what "
      "this library computes. 400 Gbit/s, 25 ms (3750 km), chunks of one packet of 4 KiB, independent losses, (32, 8) "
      "coding, timeouts of 3 RTT (SR RTO) and 1 RTT (SR NACK), unless a figure says otherwise. Curves are computed, "
      "none "
      "is drawn to match.</p>\n<nav>{}<a href=\"#reading\">how to read the checks</a></nav>\n"
      "{}{}{}{}<p class=\"small\">Monte Carlo: up to {} samples a point, seed {}; by `sdr "
      "figures`.</p>\n"
      "</body></html>\n",
      kStyle, links, summary_of(figures, false), summary_of(figures, true), sections, kReading, options.samples,
      options.seed);
}

}  // namespace sdr::cli
