// A saved calibration continues only in the same run, and only if no byte has changed.
#include <fstream>
#include <functional>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa/cpu_isa.h"
#include "backend/forwarding_backend.h"
#include "base/digest.h"
#include "base/rng.h"
#include "calib/collect.h"
#include "checkpoint/model/read_model_config.h"
#include "data/dataset.h"
#include "support/expect_error.h"
#include "support/models/tiny_checkpoint.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

test::TinyConfig small_config() {
  test::TinyConfig config = test::tiny_config();
  config.n_kv_heads = 1;
  return config;
}

// One run: its inputs, and the version and instruction set that compute it.
struct Run {
  fs::path model;
  WindowIds windows = {{1, 2, 3}};
  std::string version = "1.2.3";
  CpuIsa isa = CpuIsa::portable;
};

// Counts the calls that give a layer its K and V.
class CacheCounter final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  void rope_append(const RopeAppend& args) override {
    ++calls;
    ForwardingBackend::rope_append(args);
  }
  int calls = 0;
};

// Runs like `calibrate --resume`, but keeps the state at the end. Returns how many layers ran.
int calibrate(const Run& run, const fs::path& out) {
  const Checkpoint checkpoint = Checkpoint::open(run.model);
  const ModelConfig config = read_model_config(checkpoint);
  const auto cpu = make_cpu_backend(1, run.isa);
  CacheCounter backend(*cpu);
  CalibrationState state(CalibrationState::path_for(out),
                         run_identity(run.version, checkpoint, config, run.windows, backend));
  Log log(Verbosity::quiet);
  collect_magnitudes({checkpoint, config, backend}, run.windows, log, {.state = &state});
  return backend.calls;
}

// A model, and the state that a run on it left.
struct Saved {
  Saved() {
    test::write_tiny_checkpoint(run.model, small_config(), {.n_shards = 2});
    calibrate(run, out);
  }

  void set_in_config(const char* key, const char* value) const {
    const std::string before = test::read_file(run.model / "config.json");
    folder.write("m/config.json", json_with_member(before, key, value));
  }
  std::string refusal(const Run& other) const {
    const std::string error = test::error_of([&] { calibrate(other, out); });
    const std::string state = quote((folder / "out.json.partial").string());
    CHECK(test::help_of([&] { calibrate(other, out); }) ==
          cat("to start over, remove it: rm ", (folder / "out.json.partial").string()));
    CHECK(error.starts_with(state + ": is the state of a run with another "));
    return error.substr(error.find("another ") + 8);
  }
  std::string refusal() const { return refusal(run); }

  test::TempDir folder;
  Run run{folder / "m"};
  fs::path out = folder / "out.json";
};

// Changes one byte of a file, and returns its old value.
char exchange_byte(std::fstream& file, size_t at, char byte) {
  file.seekg(static_cast<std::streamoff>(at));
  const char before = static_cast<char>(file.get());
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
  file.flush();
  return before;
}

}  // namespace

TEST_CASE("calibration state: a file with any other byte is not gone on with") {
  const Saved saved;
  const fs::path path = saved.folder / "out.json.partial";
  const std::string bytes = test::read_file(path);
  const Checkpoint checkpoint = Checkpoint::open(saved.run.model);
  const ModelConfig config = read_model_config(checkpoint);
  const auto backend = make_cpu_backend(1, CpuIsa::portable);
  CalibrationState state(path,
                         run_identity("1.2.3", checkpoint, config, saved.run.windows, *backend));
  const auto accepted = [&] {
    try {
      return state.find(config, 3, DType::f32).has_value();
    } catch (const Error& error) {
      CHECK(std::string(error.what()).starts_with(quote(path.string())));
      return false;
    }
  };
  REQUIRE(accepted());
  const SafetensorsHeader header = read_safetensors_header(path);
  const TensorEntry& counted = header.tensors[0];  // most of the file: tests one byte in 97
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  int wrong = 0;
  for (size_t at = 0; at<bytes.size(); at += at> counted.begin && at < counted.end ? 97 : 1) {
    exchange_byte(file, at, static_cast<char>(bytes[at] ^ 1));
    wrong += accepted() ? 1 : 0;
    exchange_byte(file, at, bytes[at]);
  }
  CHECK(wrong == 0);
  Rng random(7);
  for (int i = 0; i < 300; ++i) {
    const size_t at = random.next() % bytes.size();
    const char other = static_cast<char>(random.next());
    if (other == bytes[at]) continue;
    exchange_byte(file, at, other);
    wrong += accepted() ? 1 : 0;
    exchange_byte(file, at, bytes[at]);
  }
  CHECK(wrong == 0);
  REQUIRE(accepted());
}

TEST_CASE("calibration state: a file that was cut short or grew is damaged") {
  const Saved saved;
  const fs::path path = saved.folder / "out.json.partial";
  const std::string bytes = test::read_file(path);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{64}, size_t{100}, bytes.size() / 2,
                            bytes.size() - 64, bytes.size() - 1, bytes.size() + 1}) {
    CAPTURE(size);
    std::string other = bytes;
    other.resize(size);
    saved.folder.write("out.json.partial", other);
    CHECK(test::error_of([&] { calibrate(saved.run, saved.out); }) ==
          cat(quote(path.string()),
              ": is damaged, or not the state of a calibration: it does not end with the SHA-256 "
              "of what is before"));
  }
}

TEST_CASE("calibration state: ends with the digest of what is before") {
  const Saved saved;
  const std::string bytes = test::read_file(saved.folder / "out.json.partial");
  Sha256 digest;
  digest.add(std::string_view(bytes).substr(0, bytes.size() - 64));
  CHECK(bytes.substr(bytes.size() - 64) == digest.hex());
}

// The model has two layers. The state is that behind the first.
TEST_CASE("calibration state: the same run goes on behind the layers that are done") {
  const Saved saved;
  CHECK(calibrate(saved.run, saved.folder / "anew.json") == 2);
  CHECK(calibrate(saved.run, saved.out) == 1);
}

TEST_CASE("calibration state: another number of the config is named") {
  for (const auto& [key, value, said] :
       {std::tuple("rope_theta", "123.5", "('10000', this run has '123.5')"),
        {"rms_norm_eps", "0.5", "('1e-05', this run has '0.5')"}}) {
    const Saved saved;
    saved.set_in_config(key, value);
    CHECK(saved.refusal() == cat(key, " in the model's config ", said));
  }
}

TEST_CASE("calibration state: config.json in another spelling is the same config") {
  const Saved saved;
  saved.folder.write("m/config.json",
                     test::tiny_config_json(small_config(), {.n_shards = 2, .new_spelling = true}));
  calibrate(saved.run, saved.out);
}

TEST_CASE("calibration state: other weights are named by their file") {
  const Saved saved;
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(small_config());
  for (test::TinyTensor& tensor : tensors) {
    if (tensor.name == "model.layers.1.mlp.up_proj.weight") tensor.values[5] += 0.25f;
  }
  test::write_tiny_weights(saved.run.model, tensors, DType::f32, 2);
  CHECK(saved.refusal().starts_with("file of weights 'model-0000"));
}

TEST_CASE("calibration state: the same weights written again are another file") {
  const Saved saved;
  const fs::path shard = saved.run.model / "model-00001-of-00002.safetensors";
  fs::last_write_time(shard, fs::last_write_time(shard) + std::chrono::seconds(1));
  CHECK(saved.refusal().starts_with("file of weights 'model-00001-of-00002.safetensors' ("));
}

TEST_CASE("calibration state: other data, another version and another CPU are named") {
  const Saved saved;
  Run data = saved.run;
  data.windows = {{1, 2, 4}};
  CHECK(saved.refusal(data).starts_with("text: other data, or other windows or shards of it ('"));
  Run version = saved.run;
  version.version = "1.2.4";
  CHECK(saved.refusal(version) == "version of fp8kv ('1.2.3', this run has '1.2.4')");
  if (!has_cpu_isa(CpuIsa::avx2)) return;
  Run isa = saved.run;
  isa.isa = CpuIsa::avx2;
  CHECK(saved.refusal(isa) == "device ('cpu: portable', this run has 'cpu: AVX2')");
}

}  // namespace fp8kv
