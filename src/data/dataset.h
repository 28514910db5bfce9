// Calibration data: files of text, chat or ids -> windows of token ids.
// Chooses nothing at random and packs nothing together: a window holds one document or a part of
// it.
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
#include "json/json.h"

namespace fp8kv {

// What the data needs of a tokenizer.
struct TextEncoder {
  std::function<std::vector<int32_t>(std::string_view)> encode;  // without special tokens
  std::vector<int32_t> prefix;                                   // what every prompt starts with
  int32_t vocab_size = 0;
  // A record that is a conversation, with the special tokens that it has and no others; absent: its
  // messages are joined as plain text.
  std::function<std::vector<int32_t>(const Json& record)> encode_chat = {};
  // Messages that were joined; absent: as any text.
  std::function<std::vector<int32_t>(std::string_view)> encode_joined = {};
};

// Fewer windows in the data than max_windows.
enum class Shortage { refused, warned_of, accepted };

struct WindowOptions {
  uint64_t max_windows = 512;
  Shortage shortage = Shortage::warned_of;
  int64_t seq_len = 2048;  // tokens in a window at most, prefix included
  // What the caller calls these two, for messages: "--samples".
  std::string max_windows_name = "max_windows";
  std::string seq_len_name = "seq_len";
  // Windows are taken evenly from all of the data, drawn by this seed, in place of the first ones.
  std::optional<uint64_t> shuffle = {};
  // Data of at least this many bytes is then not read whole, where windows are few.
  uint64_t sampled_bytes = uint64_t(64) << 20;
  std::string column = {};  // the field of records that is taken; "": by their form
};

struct Windows {
  std::vector<std::vector<int32_t>> ids;         // one per window, each non-empty
  std::vector<uint64_t> document;                // of each window, counted from 0
  uint64_t documents = 0;                        // taken, at least in part
  uint64_t tokens = 0;                           // in all windows, prefixes included
  std::vector<DataFile> files;                   // those that were read
  std::vector<size_t> files_at = {};             // windows that there were before each of them
  std::vector<std::string> chat_templates = {};  // which one rendered conversations, if any did
};

// The first `count` windows, as if no more had been asked for. REQUIRES windows in the order that
// they were read in, and no more than there are.
Windows first_windows(const Windows& windows, size_t count);

using WindowIds = std::vector<std::vector<int32_t>>;

// Those of two tokens or more: a window of one predicts nothing.
WindowIds windows_that_predict(std::span<const std::vector<int32_t>> windows);

// For messages: "'a.txt' and 'b.txt'", "'a.txt', 'b.txt', 'c.txt' and 5 other files".
std::string names_of(std::span<const std::filesystem::path> files);

uint64_t tokens_in(std::span<const std::vector<int32_t>> windows);

// A document is encoded in pieces of this many bytes at most, cut where a line or a word begins, so
// that at most this much is encoded beyond what is needed, whatever the size of a file.
inline constexpr size_t kEncodedAtOnce = size_t(4) << 20;

// Reads `files` in order ("-" is standard input) until `max_windows` are full; what is not needed
// is not opened. A document longer than a window is cut into several, each with the prefix; no
// window holds parts of two documents. The windows of a chat have the prefix where the chat itself
// begins with it, and else none of them has.
// How a file is laid out is decided in data_source.h, the forms of records are the table in
// records.h; a text is one document. A byte-order mark, CRLF and blank lines are accepted.
// Says on `log` what was detected, and how much was taken and skipped, and why.
// Throws for unreadable or empty data, a broken line (with its number), invalid UTF-8 (with its
// offset), a record of no known form, ids outside the vocabulary or more of them than seq_len.
// With `shuffle`: the seed stands behind the names of files, whose digests, of large data, are of
// their first and last MiB. The same seed gives the same windows.
Windows read_windows(std::span<const std::filesystem::path> files, const TextEncoder& encoder,
                     const WindowOptions& options, Log& log);

}  // namespace fp8kv
