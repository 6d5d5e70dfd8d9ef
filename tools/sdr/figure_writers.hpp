// Figures as files: their numbers as CSV, a gnuplot script for each, one page for all.
//
// The texts are pure; write_figures() and draw_figures() are all that touches files. File names are "figure-3a.csv" and
// so on; scripts and page name them without a directory, so that the whole can be moved.
#pragma once

#include <string>
#include <vector>

#include "sdr/figure.hpp"
#include "sdr/figure_catalogue.hpp"
#include "sdr/result.hpp"

namespace sdr::cli {

std::string to_csv(const Figure& figure);
std::string to_gnuplot(const Figure& figure);
std::string to_page(const std::vector<Figure>& figures, const FigureOptions& options);

// The curves of a table, in its order: those of the first panel.
std::vector<std::string> names_of(const Figure& figure);

// "figure-3a".
std::string file_stem(const Figure& figure);

// Makes `directory` where it is not there, and sees whether files can be made in it.
Result<void> prepare_directory(const std::string& directory);
// CSV, scripts and index.html.
Result<void> write_figures(const std::string& directory, const std::vector<Figure>& figures,
                           const FigureOptions& options);
// Runs gnuplot on the scripts, `jobs` at a time. The error names the package when there is no gnuplot.
Result<void> draw_figures(const std::string& directory, const std::vector<Figure>& figures, unsigned jobs);

}  // namespace sdr::cli
