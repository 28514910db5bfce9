#include <string>
#include <vector>
#include <zstd.h>

#include <doctest/doctest.h>
#include <zlib.h>

#include "data/dataset.h"
#include "records_of.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Records = std::vector<std::string>;

std::string gzip(std::string_view text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

const struct {
  const char* suffix;
  std::string (*pack)(std::string_view);
} kPackers[] = {{".gz", gzip}, {".zst", zstd}};

Records read(const std::string& name, std::string_view bytes) {
  const test::TempDir folder;
  return test::records_of(folder.write(name, bytes));
}

// Lines of about 100 bytes that compress badly.
std::string many_lines(size_t count) {
  std::string text;
  uint32_t state = 1;
  for (size_t i = 0; i < count; ++i) {
    text += cat("{\"text\": \"", i, " \xC3\xA9");
    for (int word = 0; word < 10; ++word) text += cat(' ', state = state * 1664525 + 1013904223);
    text += "\"}\n";
  }
  return text;
}

}  // namespace

TEST_CASE("packed data: every kind of text is read as if it were not packed") {
  const struct {
    const char* name;
    const char* text;
  } kinds[] = {{"a.txt", "one\ntwo"},
               {"a.jsonl", "{\"text\": \"one\"}\n\n{\"text\": \"two\"}\n"},
               {"a.json", "[{\"text\": \"one\"}, {\"text\": \"two\"}]"},
               {"b.json", "\n{\n  \"text\": \"one\"\n}\n"},
               {"a", "\xEF\xBB\xBF{\"text\": \"one\"}\r\n"},
               {"a.csv", "\xEF\xBB\xBFid,text\n1,\"o\nne\"\n"},
               {"a.tsv", "id\ttext\n1\tone\n"}};
  for (const auto& kind : kinds) {
    for (const auto& packer : kPackers) {
      CAPTURE(kind.name);
      CHECK(read(kind.name + std::string(packer.suffix), packer.pack(kind.text)) ==
            read(kind.name, kind.text));
    }
  }
}

TEST_CASE("packed data: files of several members, as of cat and parallel packers, are one") {
  CHECK(read("a.txt.gz", gzip("one ") + gzip("") + gzip("two")) == Records{"one two"});
  CHECK(read("a.txt.gz", gzip("one") + std::string(300, '\0')) == Records{"one"});
  CHECK(read("a.txt.zst", zstd("one ") + zstd("") + zstd("two")) == Records{"one two"});
  CHECK(test::data_error("a.txt.gz", gzip("one") + "two").ends_with("is something else"));
}

TEST_CASE("packed data: the same windows as of the text, across many parts") {
  const test::TempDir folder;
  const std::string text = many_lines(100'000);
  REQUIRE(text.size() > 2 * kEncodedAtOnce);
  TextEncoder encoder;
  encoder.encode = [](std::string_view piece) {  // an id for the piece and for each of its words
    std::vector<int32_t> ids = {static_cast<int32_t>(piece.size() % 1000)};
    for (const char c : piece) {
      if (c == ' ') ids.push_back(1000 + static_cast<int32_t>(ids.size() % 7));
    }
    return ids;
  };
  encoder.vocab_size = 2000;
  const WindowOptions options{.max_windows = 1 << 20, .seq_len = 512};
  Log log(Verbosity::quiet);
  const auto windows = [&](const std::string& name, std::string_view bytes) {
    return read_windows(std::vector<fs::path>{folder.write(name, bytes)}, encoder, options, log);
  };
  for (const char* name : {"a.txt", "a.jsonl"}) {
    const Windows plain = windows(name, text);
    for (const auto& packer : kPackers) {
      const Windows packed = windows(name + std::string(packer.suffix), packer.pack(text));
      CHECK((packed.ids == plain.ids));
      CHECK(packed.documents == plain.documents);
    }
  }
}

TEST_CASE("packed data: a file that is cut short or damaged names the record where it ends") {
  const std::string text = many_lines(40'000);
  for (const auto& packer : kPackers) {
    const std::string packed = packer.pack(text);
    const std::string name = std::string("a.jsonl") + packer.suffix;
    const std::string message = test::data_error(name, packed.substr(0, packed.size() / 2));
    CAPTURE(message);
    CHECK(message.ends_with(" data ends too early: the file is cut short"));
    size_t record = 0;
    REQUIRE(std::sscanf(message.c_str(), "FILE:%zu:", &record) == 1);
    CHECK(record > 10'000);
    CHECK(record < 30'000);
    // A checksum takes the last bytes, so a file without its last byte is cut short too.
    CHECK(test::data_error(name, packed.substr(0, packed.size() - 1))
              .ends_with(" data ends too early: the file is cut short"));
  }
  std::string damaged = gzip(text);
  damaged[damaged.size() - 8] ^= 1;  // a byte of the checksum
  CHECK(test::data_error("a.jsonl.gz", damaged) ==
        cat("FILE:40001: gzip data is damaged before its byte ", damaged.size() - 4,
            ": incorrect data check"));
  damaged = zstd(text);
  for (size_t i = 0; i < 64; ++i) damaged[damaged.size() / 2 + i] ^= 0x55;
  CHECK(
      test::data_error("a.jsonl.zst", damaged).find(": Zstandard data is damaged near its byte ") !=
      std::string::npos);
  CHECK(test::data_error("a.txt.gz", gzip("one two three").substr(0, 14)) ==
        "FILE: gzip data ends too early: the file is cut short");
  CHECK(test::data_error("a.csv.gz", gzip("text\none\n").substr(0, 24)) ==
        "FILE: record 2, line 3: gzip data ends too early: the file is cut short");
}

TEST_CASE("packed data: bytes that are not UTF-8 are named by their place in what is unpacked") {
  const std::string text = many_lines(20'000);
  CHECK(test::data_error("a.jsonl.gz", gzip(text + "{\"text\": \"caf\xE9\"}\n")) ==
        cat("FILE:20001: not valid UTF-8 at byte ", text.size() + 13,
            ", line 20001 of what is unpacked"));
  CHECK(test::data_error("a.txt.zst", zstd(text + "\xE2\x82")) ==
        cat("FILE: not valid UTF-8 at byte ", text.size(), ", line 20001 of what is unpacked"));
}

TEST_CASE("packed data: what is empty once unpacked is as empty as a file without bytes") {
  CHECK(test::data_error("a.txt.gz", gzip("")) == "FILE: is empty");
  CHECK(test::data_error("a.jsonl.zst", zstd(" \r\n")) == "FILE: is empty");
}

}  // namespace fp8kv
