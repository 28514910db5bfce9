// Speed of the tokenizer on one thread, and the time to load one and to encode a first prompt.
// usage: fp8kv_bench_text [TEXT TOKENIZER...]
//   default: the demo's, and those beside the repository if they exist
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "files/file.h"
#include "text/tokenizer.h"

namespace fp8kv::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kWantedRate = 10e6;  // bytes per second

template <typename Work>
double seconds_of(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void measure(const fs::path& path, const std::string& text) {
  constexpr int kRuns = 7;
  double load = 1e9;
  for (int run = 0; run < 3; ++run) {
    load = std::min(load, seconds_of([&] { Tokenizer::load(path); }));
  }
  const Tokenizer tokenizer = Tokenizer::load(path);
  const double prompt = seconds_of([&] { tokenizer.encode("London is the capital of", true); });
  std::vector<int32_t> ids;
  double cold = 0;  // the words are not in the cache yet
  double warm = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    const double seconds = seconds_of([&] { ids = tokenizer.encode(text, false); });
    if (run == 0) cold = seconds;
    warm = std::min(warm, seconds);
  }
  const double decode = seconds_of([&] { tokenizer.decode(ids, false); });
  const auto rate = [&](double seconds) {
    return static_cast<double>(text.size()) / seconds / 1e6;
  };
  std::printf("%-16s %9.1f %10.2f %12.1f %12.1f %12.1f %8.1fx\n",
              path.parent_path().filename().c_str(), load * 1e3, prompt * 1e3, rate(cold),
              rate(warm), rate(decode), rate(cold) * 1e6 / kWantedRate);
}

void run(const std::string& text_path, const std::vector<fs::path>& tokenizers) {
  const std::string text = read_text(text_path);
  std::printf("tokenizer, one thread, %s\n", human_bytes(text.size()).c_str());
  std::printf("%-16s %9s %10s %12s %12s %12s %9s\n", "", "load ms", "prompt ms", "first MB/s",
              "again MB/s", "decode MB/s", "of 10");
  for (const fs::path& path : tokenizers) measure(path, text);
}

void run_default() {
  const fs::path source = FP8KV_SOURCE_DIR;
  const fs::path shared = source / ".." / "shared" / "data";
  std::vector<fs::path> tokenizers{source / "datasets" / "demo" / "tokenizer.json"};
  for (const char* name : {"gpt2", "llama2", "qwen2.5"}) {
    const fs::path path = shared / "tokenizers" / name / "tokenizer.json";
    if (fs::exists(path)) tokenizers.push_back(path);
  }
  const fs::path english = shared / "text" / "tinyshakespeare.txt";
  run(fs::exists(english) ? english : source / "datasets" / "calibration.txt", tokenizers);
}

}  // namespace
}  // namespace fp8kv::bench

int main(int count, char** arguments) {
  try {
    if (count > 2) {
      fp8kv::bench::run(arguments[1], {arguments + 2, arguments + count});
    } else {
      fp8kv::bench::run_default();
    }
  } catch (const fp8kv::Error& error) {
    std::fprintf(stderr, "fp8kv_bench_text: %s\n", error.what());
    return 1;
  }
}
