// The source tree as text, for the checks of this folder: files, their code without comments, their words.
//
// Reads what is on disk under the source folder, tracked or not, build folders left out. A check is a function from
// one file (or all) to findings, so that each test can run it on the tree and on a planted offence.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace sdr::architecture {

struct SourceFile {
  std::string path;  // from the source folder on: "src/core/immediate.hpp"
  std::string text;
};

struct Finding {
  std::string path;
  std::size_t line = 0;  // from 1
  std::string message;
};
using Findings = std::vector<Finding>;

inline std::string to_string(const Findings& findings) {
  std::string text;
  for (const Finding& f : findings) text += f.path + ":" + std::to_string(f.line) + ": " + f.message + "\n";
  return text;
}

inline bool starts_with_any(std::string_view text, const std::vector<std::string_view>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](auto prefix) { return text.starts_with(prefix); });
}

inline bool is_code(std::string_view path) {
  return path.ends_with(".h") || path.ends_with(".hpp") || path.ends_with(".c") || path.ends_with(".cpp");
}

inline bool is_header(std::string_view path) {
  return path.ends_with(".h") || path.ends_with(".hpp");
}

// Every file of the project under one of `folders`; "" stands for the whole tree.
inline std::vector<SourceFile> read_tree(std::initializer_list<std::string_view> folders) {
  namespace fs = std::filesystem;
  const fs::path root = SDR_SOURCE_DIR;
  std::vector<SourceFile> files;
  for (const std::string_view folder : folders) {
    if (!fs::exists(root / folder)) continue;
    for (auto entry = fs::recursive_directory_iterator(root / folder); entry != fs::recursive_directory_iterator();
         ++entry) {
      const std::string name = entry->path().filename().string();
      const bool ignored = name == ".git" || name == ".cache" || name.starts_with("build");
      if (entry->is_directory() && ignored) entry.disable_recursion_pending();
      if (!entry->is_regular_file()) continue;
      std::ifstream in(entry->path(), std::ios::binary);
      files.push_back({entry->path().lexically_relative(root).generic_string(),
                       std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>())});
    }
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

enum class Literals { Keep, Blank };

// The code with comments turned into blanks (and literals too, if asked); line breaks stay where they are.
inline std::string without_comments(std::string_view text, Literals literals) {
  std::string code(text);
  const auto blank = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < std::min(to, code.size()); ++i) {
      if (code[i] != '\n') code[i] = ' ';
    }
  };
  const auto after = [&](std::string_view what, std::size_t from) {
    const std::size_t at = text.find(what, from);
    return at == std::string_view::npos ? text.size() : at + what.size();
  };
  std::size_t i = 0;
  while (i < text.size()) {
    std::size_t end = i + 1;
    if (text.substr(i).starts_with("//")) {
      end = std::min(text.find('\n', i), text.size());
      blank(i, end);
    } else if (text.substr(i).starts_with("/*")) {
      end = after("*/", i + 2);
      blank(i, end);
    } else if (text.substr(i).starts_with("R\"")) {
      const std::size_t open = std::min(text.find('(', i), text.size());
      std::string close = ")";
      close += text.substr(i + 2, open - i - 2);
      close += '"';
      end = after(close, open);
      if (literals == Literals::Blank) blank(i + 2, end - 1);
    } else if (text[i] == '"' ||
               (text[i] == '\'' && (i == 0 || std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0))) {
      while (end < text.size() && text[end] != text[i] && text[end] != '\n') end += text[end] == '\\' ? 2U : 1U;
      if (literals == Literals::Blank) blank(i + 1, end);
      ++end;
    }
    i = end;
  }
  return code;
}

struct Word {
  std::string text;
  std::size_t line = 0;
  std::size_t begin = 0;  // where in the code
};

inline bool is_word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Identifiers, keywords and numbers of code whose comments and literals are blank.
inline std::vector<Word> words_of(std::string_view code) {
  std::vector<Word> words;
  std::size_t line = 1;
  for (std::size_t i = 0; i < code.size();) {
    if (!is_word_char(code[i])) {
      line += code[i] == '\n' ? 1U : 0U;
      ++i;
      continue;
    }
    const bool number = std::isdigit(static_cast<unsigned char>(code[i])) != 0;
    std::size_t end = i;
    while (end < code.size() && (is_word_char(code[end]) || (number && (code[end] == '.' || code[end] == '\'')))) ++end;
    words.push_back({std::string(code.substr(i, end - i)), line, i});
    i = end;
  }
  return words;
}

}  // namespace sdr::architecture
