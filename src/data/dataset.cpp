#include "data/dataset.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "data/data_source.h"
#include "data/documents.h"
#include "data/records.h"
#include "data/sampling.h"
#include "data/text_stream.h"
#include "json/json.h"

namespace fp8kv {
namespace fs = std::filesystem;
namespace {

// Finds the end of a piece of at most `limit` bytes. It is before the last line that begins in the
// piece's second half, else before a space, else between two characters.
size_t piece_end(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text.size();
  for (size_t end = limit; end > limit / 2; --end) {
    if (text[end - 1] == '\n' && !std::isspace(static_cast<unsigned char>(text[end]))) return end;
  }
  for (size_t end = limit; end > limit / 2; --end) {
    if (text[end] == ' ') return end;
  }
  size_t end = limit;
  while ((text[end] & 0xC0) == 0x80) --end;
  return end;
}

constexpr size_t kTextBytesAToken = 16;  // of a sampled text: more than nearly all texts have

class WindowReader {
 public:
  WindowReader(const TextEncoder& encoder, const WindowOptions& options, Log& log)
      : encoder_(encoder), options_(options), log_(log), progress_(log, "reading", 1000) {
    const auto prefix = static_cast<int64_t>(encoder.prefix.size());
    if (options.seq_len > prefix) return;
    throw Error(cat("a window of ", count_of(static_cast<uint64_t>(options.seq_len), "token"),
                    " has no room for text: every prompt starts with ",
                    count_of(encoder.prefix.size(), "token"), " of its own"),
                cat("pass a larger ", options.seq_len_name), ErrorKind::usage);
  }

  bool full() const { return !options_.shuffle && out_.ids.size() >= options_.max_windows; }

  void read_file(const fs::path& path) {
    const DataSource source = open_data(path, options_.column);
    const Counts before = begin_file(source);
    with_unchanged(source, [&] {
      for_each_document(
          source, {[this] { return !stop(); }, [this](TextStream& text) { take_document(text); },
                   [this](const Json& record) { take_record(record); }});
    });
    report(source, before);
  }

  // Takes one window at each of `places`, which are byte offsets in the file.
  void sample_file(const fs::path& path, const std::vector<uint64_t>& places) {
    sampled_ = true;
    const DataSource source = open_data_for_parts(path, options_.column);
    const Counts before = begin_file(source);
    const auto keep_one = [this](size_t windows, double fraction) {
      if (out_.ids.size() == windows) return false;
      const auto found = static_cast<double>(out_.ids.size() - windows);
      keep({windows + static_cast<size_t>(fraction * found)}, windows);
      return true;
    };
    const size_t text_bytes = static_cast<size_t>(options_.seq_len) * kTextBytesAToken;
    with_unchanged(source, [&] {
      visit_sample(source, places, text_bytes,
                   {[&](std::string_view text) {
                      const size_t windows = out_.ids.size();
                      TextStream stream(text);
                      take_document(stream);
                      return keep_one(windows, 0);
                    },
                    [&](const Json& record, double fraction) {
                      const size_t windows = out_.ids.size();
                      take_record(record);
                      return keep_one(windows, fraction);
                    }});
    });
    report(source, before);
  }

  // Keeps one window from each of `max_windows` equal parts, and drops the others.
  void keep_evenly() {
    const uint64_t found = out_.ids.size();
    if (found <= options_.max_windows) return;
    const std::vector<uint64_t> places =
        sample_places(found, options_.max_windows, *options_.shuffle);
    keep({places.begin(), places.end()}, 0);
    std::vector<uint64_t> documents = out_.document;
    documents.erase(std::unique(documents.begin(), documents.end()), documents.end());
    out_.documents = documents.size();
    log_.note(cat("shuffled by ", *options_.shuffle, ": took ", grouped(options_.max_windows),
                  " of ", count_of(found, "window"), ", ", count_of(out_.tokens, "token")));
  }

  Windows finish(std::span<const fs::path> files) {
    if (out_.ids.empty()) {
      fail("no text in ", names_of(files), ": every document is empty");
    }
    const bool all_there = out_.ids.size() >= options_.max_windows;
    if (!all_there && options_.shortage == Shortage::refused) {
      throw Error(
          cat(names_of(files), files.size() == 1 ? " gives " : " give ", grouped(out_.ids.size()),
              " of the ", count_of(options_.max_windows, "window"), " asked for"),
          cat("add data, or pass ", options_.max_windows_name, " ", out_.ids.size(),
              " to use what is there"));
    }
    if (!all_there && options_.shortage == Shortage::warned_of) {
      log_.warn(cat(names_of(files), files.size() == 1 ? " gives " : " give ",
                    count_of(out_.ids.size(), "window"), ", where up to ",
                    grouped(options_.max_windows), " are taken by default"));
    }
    return std::move(out_);
  }

 private:
  struct Counts {
    uint64_t documents, windows, tokens;
  };
  struct FileNotes {
    std::vector<std::string> forms;  // the forms of its records, in order of appearance
    uint64_t empty = 0;
    bool rest_unused = false;
  };

  Counts begin_file(const DataSource& source) {
    out_.files.push_back(source.file);
    out_.files_at.push_back(out_.ids.size());
    if (options_.shuffle) out_.files.back().name += cat(" --shuffle ", *options_.shuffle);
    file_ = {};
    return {out_.documents, out_.ids.size(), out_.tokens};
  }

  // Keeps only the windows numbered `kept` among those from `from` on. `kept` must be ascending.
  void keep(const std::vector<size_t>& kept, size_t from) {
    out_.tokens -= tokens_in(std::span(out_.ids).subspan(from));
    size_t to = from;
    for (const size_t at : kept) {
      if (at != to) out_.ids[to] = std::move(out_.ids[at]);
      out_.document[to++] = out_.document[at];
    }
    out_.ids.resize(to);
    out_.document.resize(to);
    out_.tokens += tokens_in(std::span(out_.ids).subspan(from));
  }

  // Whether enough windows were read. Called while there is more to read.
  bool stop() {
    check_interrupt();
    if (full()) file_.rest_unused = true;
    return full();
  }

  void take_record(const Json& json) {
    const RecordForm& form = form_of(json);
    const std::string name = quote(form.name());
    if (std::find(file_.forms.begin(), file_.forms.end(), name) == file_.forms.end()) {
      file_.forms.push_back(name);
    }
    if (form.is_chat && encoder_.encode_chat) return take_chat(encoder_.encode_chat(json));
    if (form.is_chat && !std::exchange(warned_of_chat_, true)) {
      log_.warn("chat records are joined as plain text, 'role: content', without a chat template");
    }
    const Record record = read_record(json);
    if (record.ids) return take_ids(*record.ids);
    TextStream text(record.text);
    take_document(
        text, form.is_chat && encoder_.encode_joined ? encoder_.encode_joined : encoder_.encode);
  }

  void take_chat(std::span<const int32_t> ids) {
    const size_t windows_before = out_.ids.size();
    const std::vector<int32_t>& prefix = encoder_.prefix;
    const bool has_prefix =
        ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
    const size_t begin = has_prefix ? prefix.size() : 0;
    const size_t body = static_cast<size_t>(options_.seq_len) - begin;
    for (ids = ids.subspan(begin); !ids.empty() && !stop();) {
      const auto part = ids.first(std::min(body, ids.size()));
      std::vector<int32_t> window(prefix.begin(), prefix.begin() + static_cast<ptrdiff_t>(begin));
      window.insert(window.end(), part.begin(), part.end());
      add_window(std::move(window));
      ids = ids.subspan(part.size());
    }
    count_document(windows_before);
  }

  void take_document(TextStream& text) { take_document(text, encoder_.encode); }

  void take_document(TextStream& text,
                     const std::function<std::vector<int32_t>(std::string_view)>& encode) {
    const size_t body = static_cast<size_t>(options_.seq_len) - encoder_.prefix.size();
    const size_t windows_before = out_.ids.size();
    std::vector<int32_t> pending;
    while (!text.at_end() && !stop()) {
      const std::string_view next = text.peek(kEncodedAtOnce + 1);
      const size_t length = piece_end(next, kEncodedAtOnce);
      const std::vector<int32_t> ids = encode(next.substr(0, length));
      text.skip(length);
      pending.insert(pending.end(), ids.begin(), ids.end());
      size_t used = 0;
      while (used < pending.size() && (text.at_end() || pending.size() - used >= body) && !stop()) {
        const size_t count = std::min(body, pending.size() - used);
        std::vector<int32_t> window = encoder_.prefix;
        window.insert(window.end(), pending.begin() + static_cast<ptrdiff_t>(used),
                      pending.begin() + static_cast<ptrdiff_t>(used + count));
        add_window(std::move(window));
        used += count;
      }
      pending.erase(pending.begin(), pending.begin() + static_cast<ptrdiff_t>(used));
    }
    count_document(windows_before);
  }

  void take_ids(const Json& ids) {
    const size_t windows_before = out_.ids.size();
    if (ids.size() > static_cast<uint64_t>(options_.seq_len)) {
      throw Error(cat(ids.where(), ": has ", count_of(ids.size(), "token"), ", expected at most ",
                      grouped(static_cast<uint64_t>(options_.seq_len))),
                  cat("pass ", options_.seq_len_name, " ", ids.size(), ", or split the record"));
    }
    std::vector<int32_t> window;
    for (size_t i = 0; i < ids.size(); ++i) {
      check_interrupt();
      const int64_t id = ids[i].as_int();
      if (id < 0 || id >= encoder_.vocab_size) {
        throw Error(cat(ids[i].where(), ": is ", id, ", expected an id of the vocabulary, 0 to ",
                        encoder_.vocab_size - 1),
                    "were the ids made with this model's tokenizer?");
      }
      window.push_back(static_cast<int32_t>(id));
    }
    if (!window.empty()) add_window(std::move(window));
    count_document(windows_before);
  }

  void add_window(std::vector<int32_t> window) {
    out_.tokens += window.size();
    out_.ids.push_back(std::move(window));
    out_.document.push_back(out_.documents);
    if (options_.shuffle && !sampled_) return;  // the total is not known yet
    progress_.reach(std::min(
        1.0, static_cast<double>(out_.ids.size()) / static_cast<double>(options_.max_windows)));
  }

  void count_document(size_t windows_before) {
    out_.ids.size() > windows_before ? ++out_.documents : ++file_.empty;
  }

  void report(const DataSource& source, const Counts& before) {
    std::string line = cat(source.label, ": ", data_layout_name(source.layout));
    if (!file_.forms.empty()) line += cat(" with ", join(file_.forms));
    line += cat(", took ", count_of(out_.documents - before.documents, "document"), ", ",
                count_of(out_.ids.size() - before.windows, "window"), ", ",
                count_of(out_.tokens - before.tokens, "token"));
    if (file_.empty > 0) line += cat("; skipped ", count_of(file_.empty, "empty document"));
    if (file_.rest_unused) line += "; left the rest, as all windows are full";
    log_.note(line);
  }

  const TextEncoder& encoder_;
  const WindowOptions& options_;
  Log& log_;
  Windows out_;
  FileNotes file_;
  Progress progress_;
  bool sampled_ = false;
  bool warned_of_chat_ = false;
};

// The size of all files; 0 if one is not regular, since its size is unknown before it is read.
uint64_t bytes_in(std::span<const fs::path> files) {
  uint64_t bytes = 0;
  for (const fs::path& file : files) {
    if (file == "-" || !fs::is_regular_file(file)) return 0;
    bytes += fs::file_size(file);
  }
  return bytes;
}

void read_shuffled(std::span<const fs::path> files, const WindowOptions& options,
                   WindowReader& reader) {
  const uint64_t total = bytes_in(files);
  const auto window_bytes = static_cast<uint64_t>(options.seq_len) * kTextBytesAToken;
  if (total < options.sampled_bytes || total / options.max_windows < 2 * window_bytes) {
    for (const fs::path& file : files) reader.read_file(file);
    return reader.keep_evenly();
  }
  const std::vector<uint64_t> places = sample_places(total, options.max_windows, *options.shuffle);
  uint64_t begin = 0;
  size_t next = 0;
  for (const fs::path& file : files) {
    const uint64_t end = begin + fs::file_size(file);
    std::vector<uint64_t> here;
    for (; next < places.size() && places[next] < end; ++next) here.push_back(places[next] - begin);
    if (!here.empty()) reader.sample_file(file, here);
    begin = end;
  }
}

}  // namespace

Windows read_windows(std::span<const fs::path> files, const TextEncoder& encoder,
                     const WindowOptions& options, Log& log) {
  FP8KV_ASSERT(!files.empty() && options.max_windows > 0);
  for (const fs::path& file : files) {  // finds a mistyped name even if the file is not needed
    if (file != "-" && !fs::exists(file)) {
      throw Error(cat(quote(file.string()), ": no such file"), "check the path");
    }
  }
  WindowReader reader(encoder, options, log);
  if (options.shuffle) {
    read_shuffled(files, options, reader);
    return reader.finish(files);
  }
  for (const fs::path& file : files) {
    if (reader.full()) {
      log.note(cat(quote(file.string()), ": not opened, as all windows are full"));
    } else {
      reader.read_file(file);
    }
  }
  return reader.finish(files);
}

Windows first_windows(const Windows& windows, size_t count) {
  FP8KV_ASSERT(count <= windows.ids.size() && windows.document.size() == windows.ids.size());
  Windows first;
  const auto end = static_cast<ptrdiff_t>(count);
  first.ids.assign(windows.ids.begin(), windows.ids.begin() + end);
  first.document.assign(windows.document.begin(), windows.document.begin() + end);
  first.documents = std::set<uint64_t>(first.document.begin(), first.document.end()).size();
  first.tokens = tokens_in(first.ids);
  for (size_t i = 0; i < windows.files.size() && windows.files_at[i] < count; ++i) {
    first.files.push_back(windows.files[i]);
    first.files_at.push_back(windows.files_at[i]);
  }
  first.chat_templates = windows.chat_templates;
  return first;
}

WindowIds windows_that_predict(std::span<const std::vector<int32_t>> windows) {
  WindowIds kept;
  std::copy_if(windows.begin(), windows.end(), std::back_inserter(kept),
               [](const auto& window) { return window.size() > 1; });
  return kept;
}

std::string names_of(std::span<const fs::path> files) {
  constexpr size_t kMostNamed = 3;
  std::vector<std::string> names;
  for (const fs::path& file : files) {
    names.push_back(file == "-" ? "standard input" : quote(file.string()));
  }
  if (names.size() > kMostNamed + 1) {
    const std::string others = count_of(names.size() - kMostNamed, "other file");
    names.resize(kMostNamed);
    names.push_back(others);
  }
  return join(names);
}

uint64_t tokens_in(std::span<const std::vector<int32_t>> windows) {
  uint64_t tokens = 0;
  for (const std::vector<int32_t>& window : windows) tokens += window.size();
  return tokens;
}

}  // namespace fp8kv
