// Reads data files by an encoder of bytes, as windows that can be read back as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "base/log.h"
#include "base/text.h"
#include "data/dataset.h"
#include "support/expect_error.h"
#include "support/program/capture_stderr.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

// Encodes each byte as one id, so that windows can be read back as text. Every prompt starts with
// id 1000.
inline constexpr int32_t kPrefix = 1000;

inline TextEncoder byte_encoder() {
  const auto encode = [](std::string_view text) {
    std::vector<int32_t> ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  };
  return {encode, {kPrefix}, 1001};
}

// The text of a window after its prefix.
inline std::string text_of(const std::vector<int32_t>& window) {
  REQUIRE(window.front() == kPrefix);
  std::string text;
  for (size_t i = 1; i < window.size(); ++i) text += static_cast<char>(window[i]);
  return text;
}

// The windows of files, and the messages about them.
struct DataOutcome {
  Windows windows;
  std::string said;

  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    for (const auto& window : windows.ids) out.push_back(text_of(window));
    return out;
  }
};

inline DataOutcome read(const std::vector<std::filesystem::path>& files,
                        const WindowOptions& options = {}) {
  DataOutcome outcome;
  outcome.said = stderr_of([&] {
    Log log;
    outcome.windows = read_windows(files, byte_encoder(), options, log);
  });
  return outcome;
}

// The error for these files.
inline std::string error_in(const std::vector<std::filesystem::path>& files,
                            const WindowOptions& options = {}, ErrorKind kind = ErrorKind::input) {
  Log log(Verbosity::quiet);
  return error_of([&] { read_windows(files, byte_encoder(), options, log); }, kind);
}

// The texts of the windows in one file.
inline std::vector<std::string> texts_in(const std::string& name, std::string_view bytes) {
  const TempDir folder;
  return read({folder.write(name, bytes)}).texts();
}

// The error for one file, without its path.
inline std::string error_for(const std::string& name, std::string_view bytes) {
  const TempDir folder;
  const std::filesystem::path file = folder.write(name, bytes);
  const std::string message = error_in({file});
  const std::string path = quote(file.string());
  const size_t at = message.find(path);
  REQUIRE(at != std::string::npos);
  return message.substr(0, at) + "FILE" + message.substr(at + path.size());
}

}  // namespace fp8kv::test
