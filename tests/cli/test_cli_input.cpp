#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;

// A folder with a tiny model, "model", and tokenized data.
struct Inputs {
  explicit Inputs(const test::TinyOptions& options = {}) {
    test::write_tiny_checkpoint(temp / "model", test::tiny_config(), options);
    temp.write("ids.jsonl", "{\"input_ids\": [1, 5, 9, 33]}\n");
  }

  // Runs a command that must fail. Returns its error without the notes before it.
  std::string failure(const std::vector<std::string>& arguments, int exit_code = 3,
                      const std::string& input = "") const {
    const test::CliResult result =
        test::run_cli(arguments, {.folder = temp.path(), .input = input});
    CHECK(result.exit_code == exit_code);
    CHECK(result.out == "");
    const size_t begin = result.err.find("fp8kv: ");
    return result.err.substr(begin == std::string::npos ? 0 : begin);
  }

  std::string calibrate(const std::string& data) const {
    return failure({"calibrate", "model", "--data", data, "--samples", "2"});
  }

  test::TempDir temp;
};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

fs::path demo() {
  return test::source_dir() / "datasets/demo";
}

TEST_CASE("cli: a path that does not exist is named by every command") {
  const Inputs in;
  const std::string folder_help =
      "help: check the path; a model of the Hugging Face Hub is fetched with: hf download "
      "OWNER/NAME --local-dir FOLDER\n";
  CHECK(in.failure({"calibrate", "no", "--data", "ids.jsonl"}) ==
        "fp8kv: calibrate: 'no': no such folder\n" + folder_help);
  CHECK(in.failure({"run", "no", "--prompt", "a"}) ==
        "fp8kv: run: 'no': no such folder\n" + folder_help);
  CHECK(in.failure({"inject", "model", "-s", "no", "-o", "out"}) ==
        "fp8kv: inject: 'no': no such file\nhelp: check the path\n");
  CHECK(in.failure({"extract", "no"}) ==
        "fp8kv: extract: 'no': no such file\nhelp: check the path\n");
  CHECK(in.failure({"inspect", "no"}) ==
        "fp8kv: inspect: 'no': no such file or folder\nhelp: check the path\n");
  CHECK(in.calibrate("no.txt") ==
        "fp8kv: calibrate: 'no.txt': no such file\nhelp: check the path\n");
}

TEST_CASE("cli: a path too long for the system is an error like another") {
  const Inputs in;
  const std::string error = in.failure({"inspect", std::string(5000, 'a')});
  CHECK(error == "fp8kv: inspect: '" + std::string(200, 'a') +
                     "...': cannot open: File name too long\nhelp: check the path\n");
}

TEST_CASE("cli: what is no checkpoint is told apart") {
  const Inputs in;
  fs::create_directory(in.temp / "empty");
  in.temp.write("pickled/config.json", "{}");
  in.temp.write("pickled/pytorch_model.bin", "x");
  CHECK(in.failure({"inspect", "empty"}) ==
        "fp8kv: inspect: 'empty': has no config.json, so it is not a Hugging Face model folder\n"
        "help: pass the folder that holds config.json and the weights\n");
  CHECK(in.failure({"run", "ids.jsonl", "--prompt", "a"}) ==
        "fp8kv: run: 'ids.jsonl': is a file, expected a model folder\n"
        "help: pass the folder that holds config.json and the weights\n");
  CHECK(in.failure({"inspect", "pickled"})
            .starts_with("fp8kv: inspect: 'pickled': has its weights as pickles only "
                         "('pytorch_model.bin'), which can run code when they are read\n"
                         "help: convert it to safetensors where you trust it: "));
}

TEST_CASE("cli: each malformed safetensors file is refused with what is wrong in it") {
  const auto folder = test::shared_data("malformed/safetensors-upstream");
  if (!folder) return;
  const std::string damaged =
      "help: the file is damaged or incomplete: download or copy it again\n";
  const std::string other = "help: check that this is a .safetensors file\n";
  const struct {
    std::string name;
    std::string message;
    std::string help;
  } cases[] = {
      {"byte_count_overflow", "header: test.shape[1]: is 9223372036854775807, which is too large",
       ""},
      {"empty_file", "has 0 bytes, expected at least 8 for the length of a safetensors header",
       damaged},
      {"extra_data_polyglot", "has 34 bytes after its last tensor, which ends at byte 84", damaged},
      {"header_length_beyond_file", "has 8 bytes, expected 68 for its header alone", damaged},
      {"header_not_json",
       "header: not valid JSON at line 1, column 2: unexpected end of input; expected string "
       "literal",
       ""},
      {"header_not_utf8", "header: not valid UTF-8 at byte 0", other},
      {"header_too_large",
       "is not a safetensors file: its first 8 bytes give a header of 18,446,742,974,197,923,900 "
       "bytes, expected at most 100,000,000",
       other},
      {"missing_two_bytes", "is cut short: has 82 bytes, expected 84", damaged},
      {"shape_product_overflow",
       "header: test.shape[1]: is 18446744073709551614, which is too large", ""},
      {"size_does_not_match_shape",
       "tensor 'test': has 4 bytes, expected 16 for I32 of shape [2, 2]", ""},
      {"ten_tensors_same_offsets",
       "tensor 'weight_1': has the data offsets [0, 16], expected them to start at 16, where the "
       "tensor before it ends",
       ""},
  };
  const Inputs in;
  for (const auto& bad : cases) {
    CAPTURE(bad.name);
    const std::string file = (*folder / ("bad_" + bad.name + ".safetensors")).string();
    CHECK(in.failure({"inspect", file}) ==
          "fp8kv: inspect: " + quote(file) + ": " + bad.message + "\n" + bad.help);
  }
}

TEST_CASE("cli: weights that are cut short are named with what is missing") {
  const Inputs in;
  const fs::path weights = in.temp / "model/model.safetensors";
  const uintmax_t size = fs::file_size(weights);
  fs::resize_file(weights, size - 100);
  CHECK(in.calibrate("ids.jsonl") ==
        cat("fp8kv: calibrate: 'model/model.safetensors': is cut short: has ", grouped(size - 100),
            " bytes, expected ", grouped(size),
            "\nhelp: the file is damaged or incomplete: download or copy it again\n"));
  in.temp.write("model/model.safetensors",
                "version https://git-lfs.github.com/spec/v1\n"
                "oid sha256:00\nsize 1000\n");
  CHECK(in.failure({"run", "model", "--prompt", "a"}) ==
        "fp8kv: run: 'model/model.safetensors': is a git-LFS pointer, not the file itself\n"
        "help: run 'git lfs pull' in the repository that it is from\n");
}

TEST_CASE("cli: a shard that the index names but is not there is named") {
  const Inputs in({.n_shards = 3});
  fs::remove(in.temp / "model/model-00002-of-00003.safetensors");
  CHECK(in.failure({"inspect", "model"}) ==
        "fp8kv: inspect: 'model/model.safetensors.index.json': names the shard "
        "'model-00002-of-00003.safetensors', which the folder does not have\n"
        "help: copy the file into the folder, or fetch the model again: hf download OWNER/NAME "
        "--local-dir FOLDER\n");
}

TEST_CASE("cli: NaN in the weights stops calibration at its layer and head") {
  const Inputs in;
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(test::tiny_config());
  for (test::TinyTensor& tensor : tensors) {
    if (tensor.name != "model.layers.1.self_attn.k_proj.weight") continue;
    tensor.values.back() = std::numeric_limits<float>::quiet_NaN();  // in the last KV head
  }
  test::write_tiny_weights(in.temp / "model", tensors, DType::f32);
  CHECK(in.failure({"calibrate", "model", "--data", "ids.jsonl"}) ==
        "fp8kv: calibrate: layer 1, KV head 1: K has 8 values that are NaN or infinite\n"
        "help: no scale can be made from that; look for NaN in the weights up to this layer, or "
        "for an overflow of float16 (a bfloat16 or float32 checkpoint has more range)\n");
  CHECK_FALSE(fs::exists(in.temp / "kv_cache_scales.json"));
}

TEST_CASE("cli: an unknown architecture is refused by name beside what is supported") {
  const Inputs in;
  const std::string config = test::read_file(in.temp / "model/config.json");
  in.temp.write("model/config.json", replaced(config, "LlamaForCausalLM", "CtrlForCausalLM"));
  CHECK(in.calibrate("ids.jsonl")
            .starts_with(
                "fp8kv: calibrate: 'model/config.json': architectures: 'CtrlForCausalLM' is not "
                "supported\n"
                "help: supported are LlamaForCausalLM, MistralForCausalLM, "));
}

TEST_CASE("cli: a tokenizer of another kind is refused by name") {
  const Inputs in;
  in.temp.write("model/tokenizer.json",
                R"({"version": "1.0", "model": {"type": "WordPiece", "vocab": {}}})");
  CHECK(
      in.failure({"run", "model", "--prompt", "a"}) ==
      "fp8kv: run: 'model/tokenizer.json': model: the type 'WordPiece' is not supported, only BPE "
      "and Unigram are\n");
}

TEST_CASE("cli: text without a tokenizer is refused, ids are not") {
  const Inputs in;
  in.temp.write("text.txt", "some words");
  CHECK(in.calibrate("text.txt") ==
        "fp8kv: calibrate: 'model': has no tokenizer.json, no tekken.json, no tokenizer.model, and "
        "no vocab.json "
        "with a merges.txt\n"
        "help: text needs the model's tokenizer; records with input_ids do not\n");
}

TEST_CASE("cli: data that cannot be used is named with its line") {
  const Inputs in;
  in.temp.write("empty.txt", "");
  in.temp.write("broken.jsonl", "{\"input_ids\": [1]}\n\n{\"input_ids\": [1,\n");
  in.temp.write("latin1.txt", "one\ncaf\xE9\n");
  in.temp.write("fields.jsonl", "{\"body\": \"x\"}\n");
  in.temp.write("far.jsonl", "{\"input_ids\": [1, 64]}\n");
  CHECK(in.calibrate("empty.txt") == "fp8kv: calibrate: 'empty.txt': is empty\n");
  CHECK(in.calibrate("model") ==
        "fp8kv: calibrate: 'model': is the folder of a model, expected data\n"
        "help: name a file, or a folder of such files\n");
  CHECK(in.failure({"calibrate", "model", "--data", "/proc/self/mem"}, 5) ==
        "fp8kv: calibrate: '/proc/self/mem': cannot read: Input/output error\n");
  CHECK(in.calibrate("broken.jsonl") ==
        "fp8kv: calibrate: 'broken.jsonl':3: not valid JSON at line 3, column 18: unexpected end "
        "of input; expected '[', '{', or a literal\n");
  CHECK(in.calibrate("latin1.txt") ==
        "fp8kv: calibrate: 'latin1.txt': not valid UTF-8 at byte 7, line 2\n"
        "help: convert it, for instance with: iconv -f LATIN1 -t UTF-8 FILE\n");
  CHECK(in.calibrate("fields.jsonl") ==
        "fp8kv: calibrate: 'fields.jsonl':1: a record without a known field: has 'body', expected "
        "input_ids, text, article, messages, conversations, prompt+completion, "
        "instruction+[input]+output, question+answer or turns\n"
        "help: name the field that holds the text with --column\n");
  CHECK(in.calibrate("far.jsonl") ==
        "fp8kv: calibrate: 'far.jsonl':1: input_ids[1]: is 64, expected an id of the vocabulary, "
        "0 to 63\nhelp: were the ids made with this model's tokenizer?\n");
}

TEST_CASE("cli: less data than asked for is an error, less than the default a warning") {
  const Inputs in;
  CHECK(in.calibrate("ids.jsonl") ==
        "fp8kv: calibrate: 'ids.jsonl' gives 1 of the 2 windows asked for\n"
        "help: add data, or pass --samples 1 to use what is there\n");
  const test::CliResult result =
      test::run_cli({"calibrate", "model", "--data", "ids.jsonl"}, {.folder = in.temp.path()});
  CHECK(result.exit_code == 0);
  CHECK(test::lasting_lines(result.err) ==
        "windows of 128 tokens: the model's whole context\n"
        "'ids.jsonl': JSON lines with 'input_ids', took 1 document, 1 window, 4 tokens\n"
        "warning: 'ids.jsonl' gives 1 window, where up to 512 are taken by default\n"
        "wrote 'kv_cache_scales.json': scales of 2 layers from 4 tokens in 1 window\n");
}

TEST_CASE("cli: windows longer than the model's context are refused when asked for") {
  const Inputs in;
  CHECK(in.failure({"calibrate", "model", "--data", "ids.jsonl", "--seq-len", "129"}, 2) ==
        "fp8kv: calibrate: --seq-len 129 is longer than the model's context, 128 "
        "(max_position_embeddings)\nhelp: --seq-len 128 is the longest\n");
}

// A scale file in vLLM's schema, one scale per layer.
std::string scale_file(const std::vector<std::string>& scales) {
  std::string text = R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn", )";
  text += R"("scaling_factor": {"0": {)";
  for (size_t i = 0; i < scales.size(); ++i) {
    text += cat(i == 0 ? "" : ", ", "\"", i, "\": ", scales[i]);
  }
  return text + "}}}}\n";
}

TEST_CASE("cli: scales that no runtime could use are refused with their layer") {
  const Inputs in;
  const auto inject = [&](const std::string& scale) {
    in.temp.write("s.json", scale_file({"0.5", scale}));
    return in.failure({"inject", "model", "-s", "s.json", "-o", "out"});
  };
  const std::string help =
      "help: a scale of 0 or below means 'missing' or undefined to every runtime; calibrate again "
      "or repair the source\n";
  CHECK(inject("0") ==
        "fp8kv: inject: 's.json': layer 1: the K scale is 0, expected a positive, finite, normal "
        "number\n" +
            help);
  CHECK(inject("-0.5") ==
        "fp8kv: inject: 's.json': layer 1: the K scale is -0.5, expected a positive, finite, "
        "normal number\n" +
            help);
  CHECK(inject("1e39") ==
        "fp8kv: inject: 's.json': layer 1: the K scale is inf, expected a positive, finite, normal "
        "number\n" +
            help);
  CHECK(inject("3.4e38") ==
        "fp8kv: inject: 's.json': layer 1: the K scale is 3.4e+38, expected at most "
        "7.595588e+35: the largest code times this scale is infinite\n"
        "help: no runtime can serve it; calibrate again or repair the source\n");
  CHECK(inject("NaN") ==
        "fp8kv: inject: 's.json': not valid JSON at line 1, column 104: NaN and Infinity are no "
        "numbers of JSON\n");
  CHECK_FALSE(fs::exists(in.temp / "out"));
}

TEST_CASE("cli: a byte order mark before a scale file is named by every command") {
  const Inputs in;
  in.temp.write("s.json", "\xEF\xBB\xBF" + scale_file({"0.5", "0.25"}));
  const std::string why =
      "'s.json': begins with a byte order mark, which JSON must not have (RFC 8259)\n"
      "help: remove its 3 bytes: tail -c +4 s.json > NEW\n";
  CHECK(in.failure({"inject", "model", "-s", "s.json", "-o", "out"}) == "fp8kv: inject: " + why);
  for (const char* command : {"inspect", "extract", "verify"}) {
    CHECK(in.failure({command, "s.json"}) == cat("fp8kv: ", command, ": ", why));
  }
}

TEST_CASE("cli: what is no scale file is told apart") {
  const Inputs in;
  const std::string help =
      "help: a scale file is the JSON that 'fp8kv calibrate' or 'fp8kv extract' writes\n";
  in.temp.write("words.txt", "London");
  CHECK(in.failure({"inject", "model", "-s", "words.txt", "-o", "out"}) ==
        "fp8kv: inject: 'words.txt': is not a scale file\n" + help);
  CHECK(in.failure({"inspect", "/dev/null"}) ==
        "fp8kv: inspect: '/dev/null': is not a scale file\n" + help);
  const std::string file =
      "'model/model.safetensors': is one file of a model, expected its folder\n"
      "help: give the folder that holds config.json and all weights: 'model'\n";
  CHECK(in.failure({"extract", "model/model.safetensors"}) == "fp8kv: extract: " + file);
  CHECK(in.failure({"inject", "model", "-s", "model/model.safetensors", "-o", "out"}) ==
        "fp8kv: inject: " + file);
  CHECK(in.failure({"extract", "model"}) ==
        "fp8kv: extract: 'model': has no KV scales\n"
        "help: make some with 'fp8kv calibrate', and put them in with 'fp8kv inject'\n");
}

TEST_CASE("cli: scales of another model are refused, by layers, heads and fingerprint") {
  const Inputs in;
  in.temp.write("three.json", scale_file({"0.5", "0.5", "0.5"}));
  CHECK(in.failure({"inject", "model", "-s", "three.json", "-o", "out"}) ==
        "fp8kv: inject: 'three.json': is for 3 layers, the model has 2\n"
        "help: use scales that 'fp8kv calibrate' made from this very model\n");

  test::TinyConfig mqa = test::tiny_config();
  mqa.n_kv_heads = 1;
  test::write_tiny_checkpoint(in.temp / "mqa", mqa);
  test::write_tiny_checkpoint(in.temp / "tuned", test::tiny_config(), {.seed = 2});
  const test::CliSetup here{.folder = in.temp.path()};
  REQUIRE(test::run_cli({"calibrate", "model", "--data", "ids.jsonl", "--granularity", "head", "-o",
                         "heads.json"},
                        here)
              .exit_code == 0);
  CHECK(in.failure({"inject", "mqa", "-s", "heads.json", "-o", "out"}) ==
        "fp8kv: inject: 'heads.json': has scales for 2 KV heads, the model has 1\n"
        "help: use scales that 'fp8kv calibrate' made from this very model\n");
  const std::string other = in.failure({"inject", "tuned", "-s", "heads.json", "-o", "out"});
  CHECK(other ==
        "fp8kv: inject: 'heads.json': was calibrated on another model than 'tuned': the weights of "
        "layers 0 and 1 and the embedding are others, moved by up to 141 % of their size (the "
        "embedding)\n"
        "help: calibrate this model; where you know that the scales serve it, pass "
        "--accept-foreign-scales, which is recorded in what is written\n");
  CHECK_FALSE(fs::exists(in.temp / "out"));
}

TEST_CASE("cli: prompts that cannot be used are named with their line") {
  const Inputs in;
  const std::string model = demo().string();
  const std::string help = "help: write one JSON record a line: {\"prompt\": \"...\"}\n";
  CHECK(in.failure({"run", model, "-", "-q"}, 1, "London\n") ==
        "fp8kv: run: standard input:1: not valid JSON at line 1, column 1: invalid literal\n" +
            help +
            "fp8kv: run: 1 of 1 record could not be used\nhelp: why is said above, for each\n");
  CHECK(in.failure({"run", model, "-"}, 3, "\n \n") ==
        "fp8kv: run: standard input: has no prompts\n" + help);
  in.temp.write("words.txt", "London\n");
  CHECK(in.failure({"run", model, "--prompts", "words.txt"}) ==
        "fp8kv: run: 'words.txt':1: not valid JSON at line 1, column 1: invalid literal\n" + help);
  CHECK(in.failure({"run", model, "--prompt", "caf\xE9"}) ==
        "fp8kv: run: --prompt 1: is not valid UTF-8 at byte 3\n");
  CHECK(in.failure({"run", model}, 2) ==
        "fp8kv: run: no prompt given\n"
        "help: pass --prompt TEXT, --prompts FILE, or - for standard input\n");
}

}  // namespace
}  // namespace fp8kv
