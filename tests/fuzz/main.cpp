// Fuzzing guided by coverage. Inputs are changed at random. An input that reaches new code is kept
// and changed further. A sanitizer, `require`, or an exception other than Error ends the run and
// saves the input.
//   fp8kv_fuzz TARGET SECONDS [--seed N] [--inputs N] [--more FOLDER]...
//       fuzz; FOLDER has further inputs; ends before SECONDS when N inputs have run
//   fp8kv_fuzz TARGET --replay FILE
//       run one input
// The fuzzed code is built with -fsanitize-coverage=trace-pc, so no other compiler is needed.
// Without AddressSanitizer the fuzzer is several times faster, but finds less: see scripts/fuzz.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sanitizer/common_interface_defs.h>
#include <sstream>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"
#include "coverage.h"
#include "fuzz.h"
#include "mutate.h"

// Too much memory for a small file is a finding, and so is memory that is never freed.
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=256:hard_rss_limit_mb=2048:allocator_may_return_null=0:"
         "handle_abort=1:detect_stack_use_after_return=1";
}

namespace fp8kv::fuzz {
namespace {

constexpr const Target* kTargets[] = {&kSafetensors, &kCheckpoint,    &kCommands,   &kScaleFile,
                                      &kNpz,         &kJinja,         &kTokenizer,  &kParquet,
                                      &kMessages,    &kParquetFooter, &kQuantConfig};
constexpr size_t kLongest = 192 * 1024;  // the tests' goldens are shorter
// New code is rare after this many inputs. Only one of kCountedOne inputs is counted from then on:
// counting takes half of the time.
constexpr uint64_t kAllCounted = 200'000, kCountedOne = 16;
constexpr unsigned kSecondsAnInput = 10;       // processor time
constexpr unsigned kLongestWaitSeconds = 600;  // for machines that give us no processor
#ifndef FP8KV_ASAN
constexpr rlim_t kMostMemory = rlim_t{2} << 30;  // addresses; AddressSanitizer has its own limit
#endif

// The current input, saved when the process dies.
const std::string* running = nullptr;
std::string running_target;

void save_input() {
  if (!running) return;
  const std::string* input = running;
  running = nullptr;
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : *input) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  char name[128];
  std::snprintf(name, sizeof name, "finding-%s-%016llx", running_target.c_str(),
                static_cast<unsigned long long>(hash));
  std::ofstream(name, std::ios::binary).write(input->data(), static_cast<long>(input->size()));
  std::fprintf(stderr, "\nfinding: saved as %s; run it with: fp8kv_fuzz %s --replay %s\n", name,
               running_target.c_str(), name);
}

// Sanitizers call save_input before they end the process. Without one, a signal handler does.
void save_on_signals() {
  __sanitizer_set_death_callback(save_input);
#ifndef FP8KV_ASAN
  for (const int number : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP}) {
    std::signal(number, [](int received) {
      std::signal(received, SIG_DFL);
      save_input();
      std::raise(received);
    });
  }
  const rlimit most{kMostMemory, kMostMemory};
  require(setrlimit(RLIMIT_AS, &most) == 0, "memory can be limited");
#endif
}

// Ends the process if an input computes too long, or waits forever.
void watch_time() {
  std::signal(SIGPROF, [](int) {
    std::fprintf(stderr, "an input takes more than %u seconds\n", kSecondsAnInput);
    std::abort();
  });
  std::signal(SIGALRM, [](int) {
    std::fprintf(stderr, "an input waits for more than %u seconds\n", kLongestWaitSeconds);
    std::abort();
  });
}

void run_one(const Target& target, const std::string& input) {
  running = &input;
  const itimerval busy{{}, {kSecondsAnInput, 0}};
  require(setitimer(ITIMER_PROF, &busy, nullptr) == 0, "there is a timer");
  alarm(kLongestWaitSeconds);
  try {
    target.run(input);
  } catch (const Error& error) {
    require(error.what()[0] != '\0', "an error says something");
    require(is_utf8(error.what()), "an error is text");
  } catch (const std::exception& error) {
    require(false, cat("nothing but an Error is thrown; this was: ", error.what()));
  }
  running = nullptr;
}

class Fuzzer {
 public:
  Fuzzer(const Target& target, uint64_t seed) : target_(target), rng_(seed) {}

  void add(const std::string& input) {
    require(input.size() <= kLongest, "an input to begin with is no longer than inputs may be");
    consider(input);
  }

  void fuzz(double seconds, uint64_t most_inputs) {
    if (corpus_.empty()) corpus_.push_back("");
    const auto begin = Clock::now();
    double shown = 0;
    while (since(begin) < seconds && runs_ < most_inputs) {
      for (int i = 0; i < 64 && runs_ < most_inputs; ++i) consider(changed());
      if (since(begin) - shown < 10) continue;
      shown = since(begin);
      report(stderr, shown);
    }
    report(stdout, since(begin));
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  // Chooses the shortest of several inputs, because short ones are tried and read quickly. Half of
  // the time it chooses among the newest, which have been changed least.
  const std::string& chosen() {
    const bool newest = rng_.next() % 2;
    const size_t among = newest ? std::min<size_t>(corpus_.size(), 32) : corpus_.size();
    const std::string* shortest = nullptr;
    for (int i = 0; i < (newest ? 2 : 4); ++i) {
      const std::string& one = corpus_[corpus_.size() - 1 - rng_.next() % among];
      if (!shortest || one.size() < shortest->size()) shortest = &one;
    }
    return *shortest;
  }

  std::string changed() {
    std::string input = mutated(chosen(), corpus_[rng_.next() % corpus_.size()], rng_);
    if (input.size() > kLongest) input.resize(kLongest);
    if (target_.repair && rng_.next() % 4 != 0) target_.repair(input);
    return input;
  }

  void consider(const std::string& input) {
    ++runs_;
    if (runs_ > kAllCounted && runs_ % kCountedOne != 0) {
      stop_counting();
      run_one(target_, input);
      return;
    }
    begin_counting();
    run_one(target_, input);
    const size_t found = take_new();
    places_ += found;
    if (found > 0) corpus_.push_back(input);
  }

  void report(FILE* to, double seconds) const {
    std::fprintf(to, "%s: %llu inputs in %.0f s (%.0f a second), %zu kept, %zu edges, no finding\n",
                 target_.name.c_str(), static_cast<unsigned long long>(runs_), seconds,
                 static_cast<double>(runs_) / seconds, corpus_.size(), places_);
    std::fflush(to);
  }

  const Target& target_;
  Rng rng_;
  std::vector<std::string> corpus_;
  uint64_t runs_ = 0;
  size_t places_ = 0;
};

[[noreturn]] void usage() {
  std::fprintf(stderr,
               "usage: fp8kv_fuzz TARGET SECONDS [--seed N] [--inputs N] [--more FOLDER]...\n"
               "       fp8kv_fuzz TARGET --replay FILE\ntargets:");
  for (const Target* target : kTargets) std::fprintf(stderr, " %s", target->name.c_str());
  std::fprintf(stderr, "\n");
  std::exit(2);
}

int main_of(const std::vector<std::string>& words) {
  if (words.size() < 2) usage();
  const auto* const found =
      std::find_if(std::begin(kTargets), std::end(kTargets),
                   [&](const Target* each) { return each->name == words[0]; });
  if (found == std::end(kTargets)) usage();
  const Target& target = **found;
  running_target = target.name;
  save_on_signals();
  watch_time();
  if (words[1] == "--replay" && words.size() == 3) {
    run_one(target, read(words[2]));
    std::printf("%s: no finding\n", target.name.c_str());
    return 0;
  }
  uint64_t seed = 1;
  uint64_t most_inputs = std::numeric_limits<uint64_t>::max();
  std::vector<std::string> more;
  for (size_t i = 2; i < words.size(); i += 2) {
    if (i + 1 == words.size()) usage();
    if (words[i] == "--seed") {
      seed = std::strtoull(words[i + 1].c_str(), nullptr, 10);
    } else if (words[i] == "--inputs") {
      most_inputs = std::strtoull(words[i + 1].c_str(), nullptr, 10);
    } else if (words[i] == "--more") {
      for (std::string& input : files_below(words[i + 1], "")) more.push_back(std::move(input));
    } else {
      usage();
    }
  }
  Fuzzer fuzzer(target, seed);
  for (const std::string& input : target.seeds(FP8KV_SOURCE_DIR)) fuzzer.add(input);
  for (const std::string& input : more) fuzzer.add(input);
  fuzzer.fuzz(std::strtod(words[1].c_str(), nullptr), most_inputs);
  std::filesystem::remove_all(work_folder());
  return 0;
}

}  // namespace

void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

const std::filesystem::path& work_folder() {
  static const std::filesystem::path folder = [] {
    const std::filesystem::path memory = "/dev/shm";
    const auto parent =
        access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
    std::string name = (parent / "fp8kv-fuzz-XXXXXX").string();
    require(mkdtemp(name.data()) != nullptr, "there is a folder for temporary files");
    return std::filesystem::path(name);
  }();
  return folder;
}

void write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
}

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<std::string> files_below(const std::filesystem::path& folder, std::string_view ending) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.file_size() <= kLongest &&
        entry.path().filename().string().ends_with(ending)) {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> contents;
  for (const auto& path : paths) contents.push_back(read(path));
  return contents;
}

}  // namespace fp8kv::fuzz

int main(int argc, char** argv) {
  return fp8kv::fuzz::main_of({argv + 1, argv + argc});
}
