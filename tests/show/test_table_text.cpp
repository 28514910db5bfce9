#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "show/table_text.h"

namespace fp8kv {
namespace {

const TableCells kSentences = {
    {{"runtime", "how"},
     {"vLLM", "one scale for K and one for V, as F32, which ± half of them"},
     {"SGLang", "ignores them"}},
    {true, true}};

const TableCells kNumbers = {{{"layer", "", "amax", "saturation", "underflow", "flushed"},
                              {"0", "K", "11.5", "2.5%", "0.01%", "0"},
                              {"0", "V", "3.25", "0", "12%", "100%"}},
                             {false, true}};

TableCells with_alignments(TableCells cells, size_t names = 1) {
  cells.left.resize(cells.rows[0].size(), false);
  cells.names = names;
  return cells;
}

size_t longest_line(const std::string& text) {
  size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    size_t width = 0;
    for (const char c : line) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    longest = std::max(longest, width);
  }
  return longest;
}

std::vector<std::string> sorted_words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  std::sort(words.begin(), words.end());
  return words;
}

std::vector<std::string> sorted_words(const TableCells& cells) {
  std::string all;
  for (const auto& row : cells.rows) {
    for (const std::string& cell : row) all += cell + " ";
  }
  return sorted_words(all);
}

TEST_CASE("table: without a limit each row is a line, however long") {
  CHECK(table_text(kSentences, kUnlimitedWidth) ==
        "runtime  how\n"
        "vLLM     one scale for K and one for V, as F32, which ± half of them\n"
        "SGLang   ignores them\n");
  CHECK(table_text(with_alignments(kNumbers), kUnlimitedWidth) ==
        "layer     amax  saturation  underflow  flushed\n"
        "    0  K  11.5        2.5%      0.01%        0\n"
        "    0  V  3.25           0        12%     100%\n");
}

TEST_CASE("table: the texts of the last column are broken at blanks and stay in it") {
  CHECK(table_text(kSentences, 40) ==
        "runtime  how\n"
        "vLLM     one scale for K and one for V,\n"
        "         as F32, which ± half of them\n"
        "SGLang   ignores them\n");
  // The longest line has 68 characters. One of them takes two bytes.
  CHECK(longest_line(table_text(kSentences, kUnlimitedWidth)) == 68);
  CHECK(table_text(kSentences, 68) == table_text(kSentences, kUnlimitedWidth));
  CHECK(table_text(kSentences, 67) ==
        "runtime  how\n"
        "vLLM     one scale for K and one for V, as F32, which ± half of\n"
        "         them\n"
        "SGLang   ignores them\n");
}

TEST_CASE("table: columns that do not fit come below, beside the names of the rows") {
  CHECK(table_text(with_alignments(kNumbers, 2), 46) ==
        table_text(with_alignments(kNumbers, 2), kUnlimitedWidth));
  CHECK(table_text(with_alignments(kNumbers, 2), 45) ==
        "layer     amax  saturation  underflow\n"
        "    0  K  11.5        2.5%      0.01%\n"
        "    0  V  3.25           0        12%\n"
        "\n"
        "layer     flushed\n"
        "    0  K        0\n"
        "    0  V     100%\n");
  CHECK(table_text(with_alignments(kNumbers), 18) ==
        "layer     amax\n"
        "    0  K  11.5\n"
        "    0  V  3.25\n"
        "\n"
        "layer  saturation\n"
        "    0        2.5%\n"
        "    0           0\n"
        "\n"
        "layer  underflow\n"
        "    0      0.01%\n"
        "    0        12%\n"
        "\n"
        "layer  flushed\n"
        "    0        0\n"
        "    0     100%\n");
}

TEST_CASE("table: where not all names fit beside a column, the first does") {
  CHECK(table_text(with_alignments(kNumbers, 2), 18) ==
        table_text(with_alignments(kNumbers, 1), 18));
}

TEST_CASE("table: one that does not fit in any way is left as it is") {
  const TableCells files = {
      {{"file", "bytes"}, {"a-name-that-is-as-long-as-the-line.safetensors", "12"}}, {true, false}};
  CHECK(table_text(files, 40) == table_text(files, kUnlimitedWidth));
  CHECK(table_text(with_alignments(kNumbers), 5) ==
        table_text(with_alignments(kNumbers), kUnlimitedWidth));
}

TEST_CASE("table: no line is wider than the terminal, and no word is lost") {
  const TableCells verdicts = {
      {{"runtime", "version", "result", "how"},
       {"TensorRT-LLM", "engine builder", "ignores",
        "reads k_proj.k_scale and v_proj.v_scale alone: an FP8 cache runs with 1"},
       {"vLLM", "0.7.2 to 0.14", "loads, rounded", "one scale for K and one for V"},
       {"", "", "note", "--kv-cache-dtype fp8_e5m2 fails with such a model, and says nothing"}},
      {true, true, true, true},
      2};
  for (const TableCells& cells : {kSentences, with_alignments(kNumbers), verdicts}) {
    for (const size_t width : {size_t(40), size_t(80), size_t(120)}) {
      CAPTURE(width);
      const std::string text = table_text(cells, width);
      CAPTURE(text);
      CHECK(longest_line(text) <= width);
      const std::vector<std::string> words = sorted_words(text), all = sorted_words(cells);
      CHECK(std::includes(words.begin(), words.end(), all.begin(), all.end()));
    }
    CHECK(sorted_words(table_text(cells, kUnlimitedWidth)) == sorted_words(cells));
  }
}

}  // namespace
}  // namespace fp8kv
