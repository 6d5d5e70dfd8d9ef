// Figures onto the disk, and gnuplot over them.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "sdr/figure_writers.hpp"

namespace sdr::cli {
namespace {

Error cannot(const std::string& what, const std::string& why) {
  return {ErrorCode::System, fmt::format("cannot {}: {}", what, why)};
}

Result<void> write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return cannot("write " + path, std::strerror(errno));
  return {};
}

// What a program printed, one line of it.
std::string last_words(const std::string& path) {
  std::ifstream file(path);
  std::string words;
  for (std::string line; std::getline(file, line);) {
    if (line.find_first_not_of(" \t^") != std::string::npos) words = line;
  }
  return words;
}

Result<void> run_gnuplot(const std::string& directory, const Figure& figure) {
  const std::string script = file_stem(figure) + ".gp";
  const std::string log = directory + "/" + file_stem(figure) + ".log";
  std::string program = "gnuplot";
  std::string argument = script;
  char* argv[] = {program.data(), argument.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  pid_t child = -1;
  const int refused = ::posix_spawnp(&child, "gnuplot", &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (refused == ENOENT) {
    std::filesystem::remove(log);
    return Error{ErrorCode::System,
                 fmt::format("gnuplot is not installed (Debian and Ubuntu: package gnuplot-nox), so there are no "
                             "pictures; data, scripts and page are in {}",
                             directory)};
  }
  if (refused != 0) return cannot("run gnuplot", std::strerror(refused));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string words = last_words(log);
  std::filesystem::remove(log);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return cannot(fmt::format("draw figure {} with gnuplot", figure.id),
                words.empty() ? fmt::format("status {}", status) : words);
}

}  // namespace

Result<void> prepare_directory(const std::string& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) return cannot("make the directory " + directory, failed.message());
  if (!std::filesystem::is_directory(directory, failed)) return cannot("write to " + directory, "not a directory");
  if (::access(directory.c_str(), W_OK | X_OK) != 0) return cannot("write to " + directory, std::strerror(errno));
  return {};
}

Result<void> write_figures(const std::string& directory, const std::vector<Figure>& figures,
                           const FigureOptions& options) {
  for (const Figure& figure : figures) {
    const std::string stem = directory + "/" + file_stem(figure);
    if (Result<void> written = write_text(stem + ".csv", to_csv(figure)); !written) return written;
    if (Result<void> written = write_text(stem + ".gp", to_gnuplot(figure)); !written) return written;
  }
  return write_text(directory + "/index.html", to_page(figures, options));
}

Result<void> draw_figures(const std::string& directory, const std::vector<Figure>& figures, unsigned jobs) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::optional<Error> error;
  const auto work = [&] {
    for (std::size_t n = next.fetch_add(1); n < figures.size(); n = next.fetch_add(1)) {
      const Result<void> drawn = run_gnuplot(directory, figures[n]);
      if (drawn) continue;
      const std::lock_guard lock(mutex);
      if (!error) error = drawn.error();
      next = figures.size();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < std::min<std::size_t>(jobs, figures.size()); ++t) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  if (error) return *error;
  return {};
}

}  // namespace sdr::cli
