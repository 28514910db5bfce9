// Calibration data: files of text, chat or ids -> windows of token ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "core/scales.h"

namespace fp8kv {

// What the data needs of a tokenizer.
struct TextEncoder {
  std::function<std::vector<int32_t>(std::string_view)> encode;  // without special tokens
  std::vector<int32_t> prefix;                                   // what every prompt starts with
  int32_t vocab_size = 0;
};

struct WindowOptions {
  uint64_t max_windows = 512;
  bool exact = false;      // true: fewer windows than asked for are an error
  int64_t seq_len = 2048;  // tokens in a window at most, prefix included
};

struct Windows {
  std::vector<std::vector<int32_t>> ids;  // one per window, each non-empty
  uint64_t documents = 0;                 // taken, at least in part
  uint64_t tokens = 0;
  std::vector<DataFile> files;
};

// Reads `files` in order ("-" is standard input) until `max_windows` are full.
// Formats by content: .txt is one document; .jsonl one record a line; .json an array of records or
// one record. Records have `text`, `article`, `messages`, `conversations`, `prompt`+`completion`,
// `instruction`+`input`+`output`, or `input_ids`. Says on `log` what was detected, and how many
// documents and tokens were taken and skipped, and why. Throws for unreadable or empty data, a
// broken line (with its number), invalid UTF-8, ids outside the vocabulary.
Windows read_windows(std::span<const std::filesystem::path> files, const TextEncoder& encoder,
                     const WindowOptions& options, Log& log);

}  // namespace fp8kv
