// Calibration data: files of text, chat or ids -> windows of token ids. Chooses nothing at random
// and packs nothing together: a window holds one document or a part of one.
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
#include "core/scales/scales.h"
#include "json/json.h"

namespace fp8kv {

// The functions of a tokenizer that the data needs.
struct TextEncoder {
  std::function<std::vector<int32_t>(std::string_view)> encode;  // without special tokens
  std::vector<int32_t> prefix;  // the tokens that every prompt starts with
  int32_t vocab_size = 0;
  // Encodes a conversation with exactly the special tokens of its chat template. Absent: its
  // messages are joined as plain text.
  std::function<std::vector<int32_t>(const Json& record)> encode_chat = {};
  // Encodes joined messages. Absent: like any text.
  std::function<std::vector<int32_t>(std::string_view)> encode_joined = {};
};

// The reaction to data with fewer than max_windows windows.
enum class Shortage { refused, warned_of, accepted };

struct WindowOptions {
  uint64_t max_windows = 512;
  Shortage shortage = Shortage::warned_of;
  int64_t seq_len = 2048;  // most tokens in a window, prefix included
  // The caller's names for these two, for messages: "--samples".
  std::string max_windows_name = "max_windows";
  std::string seq_len_name = "seq_len";
  // A seed. Windows are then drawn evenly from all of the data, instead of taking the first ones.
  std::optional<uint64_t> shuffle = {};
  // With `shuffle`, data of at least this many bytes is only read in part, if few windows are
  // needed.
  uint64_t sampled_bytes = uint64_t(64) << 20;
  std::string column = {};  // the field to take from records; "": by their form
};

struct Windows {
  std::vector<std::vector<int32_t>> ids;         // one per window, each non-empty
  std::vector<uint64_t> document;                // the document of each window, counted from 0
  uint64_t documents = 0;                        // documents taken, at least in part
  uint64_t tokens = 0;                           // in all windows, prefixes included
  std::vector<DataFile> files;                   // the files that were read
  std::vector<size_t> files_at = {};             // the number of windows before each file
  std::vector<std::string> chat_templates = {};  // the one used for conversations, if any
};

// The first `count` windows, as if only those had been asked for. REQUIRES windows in reading
// order, and at least `count` of them.
Windows first_windows(const Windows& windows, size_t count);

using WindowIds = std::vector<std::vector<int32_t>>;

// The windows of two tokens or more; a single token predicts nothing.
WindowIds windows_that_predict(std::span<const std::vector<int32_t>> windows);

// For messages: "'a.txt' and 'b.txt'", "'a.txt', 'b.txt', 'c.txt' and 5 other files".
std::string names_of(std::span<const std::filesystem::path> files);

uint64_t tokens_in(std::span<const std::vector<int32_t>> windows);

// The most bytes of a document that are encoded at once. Pieces are cut where a line or a word
// begins. So little is encoded beyond what is needed, whatever the size of a file.
inline constexpr size_t kEncodedAtOnce = size_t(4) << 20;

// Reads `files` in order ("-" is standard input) until `max_windows` are full. Files that are not
// needed are not opened. A document longer than a window is cut into several, each with the prefix;
// no window holds parts of two documents. The windows of a chat have the prefix only if the chat
// itself begins with it.
//
// data_source.h decides the layout of a file, and records.h has the table of record forms. A text
// is one document. Accepts a byte-order mark, CRLF and blank lines. Logs what was detected, and how
// much was taken or skipped, and why.
//
// With `shuffle`, the seed follows the names of files in the result. Large files then have a digest
// of their first and last MiB only. The same seed gives the same windows.
//
// Throws for unreadable or empty data, a broken line (with its number), invalid UTF-8 (with its
// offset) and a record of unknown form. Throws for ids outside the vocabulary, and for more ids
// than seq_len.
Windows read_windows(std::span<const std::filesystem::path> files, const TextEncoder& encoder,
                     const WindowOptions& options, Log& log);

}  // namespace fp8kv
