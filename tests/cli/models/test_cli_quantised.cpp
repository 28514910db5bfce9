// Quantised checkpoints that contradict themselves. Every command that computes with them or writes
// a copy refuses them.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "core/numbers/half.h"
#include "formats/safetensors.h"
#include "json/json.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

// A copy of a golden model for the tests to damage.
struct Spoiled {
  explicit Spoiled(const std::string& name) {
    fs::copy(test::source_dir() / "tests/golden/quantised" / name, temp / "m",
             fs::copy_options::recursive);
    temp.write("ids.jsonl", "{\"input_ids\": [1, 5, 9, 33]}\n");
    temp.write("s.json", R"({"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn", )"
                         R"("scaling_factor": {"0": {"0": 0.25, "1": 0.5}}}})");
  }

  test::CliResult run(const Strings& arguments) const {
    return test::run_cli(arguments, {.folder = temp.path()});
  }
  std::vector<Strings> computing() const {
    return {{"calibrate", "m", "--data", "ids.jsonl", "-o", "out.json"},
            {"run", "m", "--prompts", "ids.jsonl", "--device", "cpu"},
            {"eval", "m", "--data", "ids.jsonl", "--device", "cpu"}};
  }
  std::vector<Strings> others() const {
    return {{"inject", "m", "-s", "s.json", "-o", "out"}, {"verify", "m"}};
  }
  // Checks that every command ends with code 3, says `said` and writes nothing.
  void check_refused(const std::vector<Strings>& commands, const std::string& said) const {
    for (const Strings& command : commands) {
      CAPTURE(join(command));
      const test::CliResult result = run(command);
      INFO(result.err);
      CHECK(result.exit_code == 3);
      CHECK(result.err.find(said) != std::string::npos);
      CHECK(!fs::exists(temp / "out"));
      CHECK(!fs::exists(temp / "out.json"));
    }
  }

  // Overwrites the first values of a tensor, in its dtype.
  void put(const std::string& name, const std::vector<float>& values) const {
    const SafetensorsHeader header = read_safetensors_header(temp / "m/model.safetensors");
    const auto at = std::find_if(header.tensors.begin(), header.tensors.end(),
                                 [&](const TensorEntry& entry) { return entry.name == name; });
    REQUIRE(at != header.tensors.end());
    std::string bytes = test::read_file(temp / "m/model.safetensors");
    for (size_t i = 0; i < values.size(); ++i) {
      if (at->dtype == DType::f32) {
        std::memcpy(bytes.data() + at->begin + 4 * i, &values[i], 4);
      } else {
        const uint16_t half =
            at->dtype == DType::f16 ? f16_from_float(values[i]) : bf16_from_float(values[i]);
        std::memcpy(bytes.data() + at->begin + 2 * i, &half, 2);
      }
    }
    temp.write("m/model.safetensors", bytes);
  }
  void set_block(const std::string& block) const {
    const std::string text = test::read_file(temp / "m/config.json");
    temp.write("m/config.json", json_with_member(text, "quantization_config", block));
  }
  void remove_block() const {
    const Json config = Json::parse(test::read_file(temp / "m/config.json"), "config.json");
    JsonWriter out;
    out.begin_object();
    for (size_t i = 0; i < config.size(); ++i) {
      if (config.key(i) != "quantization_config") out.key(config.key(i)).value(config.value(i));
    }
    temp.write("m/config.json", out.end_object().text());
  }

  test::TempDir temp;
};

std::string groups(const std::string& targets, int bits, const std::string& type) {
  return cat(R"({"quant_method": "compressed-tensors", "format": "float-quantized", "ignore": )",
             R"(["lm_head"], "config_groups": {"group_0": {"targets": )", targets,
             R"(, "weights": {"num_bits": )", bits, R"(, "type": ")", type,
             R"(", "strategy": "channel"}}}})");
}

const std::string kQ = "model.layers.0.self_attn.q_proj";

}  // namespace

TEST_CASE("cli quantised: codes that no config speaks of are refused by every command") {
  for (const auto& [name, said] :
       {std::pair("fp8-tensor", ".weight': is F8_E4M3 with a scale in 'model.layers.0."),
        {"fp8-channel", ".weight': is F8_E4M3 with a scale in 'model.layers.0."},
        {"fp8-block", ".weight': is F8_E4M3 with a scale in 'model.layers.0."},
        {"int8-channel", ".weight': is I8 with a scale in 'model.layers.0."},
        {"packed-int4", ".weight_packed': is I32 with a scale in 'model.layers.0."},
        {"gptq", ".qweight': is I32 with a scale in 'model.layers.0."}}) {
    CAPTURE(name);
    const Spoiled model(name);
    model.remove_block();
    model.check_refused({{"quantize", "m", "-o", "out"}}, said);
    for (const auto& commands : {model.computing(), model.others()}) {
      model.check_refused(commands, said);
      model.check_refused(commands, ", but config.json has no quantization_config\nhelp: add the ");
    }
    model.set_block(
        R"({"quant_method": "compressed-tensors", "format": "dense", "config_groups": {}, )"
        R"("kv_cache_scheme": {"num_bits": 8, "type": "float", "strategy": "tensor"}})");
    model.check_refused(model.computing(), "says nothing of weights\nhelp: add the ");
  }
}

TEST_CASE("cli quantised: an input scale that nothing can be divided by is refused by its name") {
  for (const auto& [scale, text] : {std::pair(0.0f, "is 0,"),
                                    {-0.5f, "is -0.5,"},
                                    {std::numeric_limits<float>::quiet_NaN(), "is nan,"},
                                    {std::numeric_limits<float>::infinity(), "is inf,"}}) {
    const Spoiled model("fp8-tensor");
    model.put(kQ + ".input_scale", {scale});
    for (const auto& commands : {model.computing(), model.others()}) {
      model.check_refused(commands, cat("'m': tensor '", kQ, ".input_scale': element 0 ", text,
                                        " expected a finite scale above 0\nhelp: "));
    }
  }
}

TEST_CASE("cli quantised: a weight scale of 0, or a negative one, is refused by its name") {
  const auto computing = [](const Spoiled& model) {
    std::vector<Strings> commands = model.computing();
    commands.erase(commands.begin() + 1);  // run asks for a tokenizer before it reads weights
    return commands;
  };
  for (const auto& [name, suffix] : {std::pair("fp8-tensor", ".weight_scale"),
                                     {"fp8-channel", ".weight_scale"},
                                     {"fp8-block", ".weight_scale_inv"},
                                     {"int8-channel", ".weight_scale"}}) {
    CAPTURE(name);
    const std::string tensor = cat("'m': tensor '", kQ, suffix, "': element 0 is ");
    const Spoiled zero(name);
    zero.put(kQ + suffix, {0});
    zero.check_refused(computing(zero), tensor + "0, which makes weights 0 whose codes are not");
    const Spoiled negative(name);
    negative.put(kQ + suffix, {-0.25f});
    negative.check_refused(computing(negative),
                           tensor + "-0.25, expected a finite scale of 0 or more");
  }
  const Spoiled nvfp4("nvfp4-ct");
  nvfp4.put(kQ + ".weight_global_scale", {-3});
  nvfp4.check_refused(computing(nvfp4), ".weight_global_scale': element 0 is -3, expected");
  // AutoRound's scales may be negative: their integers have the sign of the largest weight.
  const Spoiled packed("packed-int4");
  packed.put(kQ + ".weight_scale", {-0.25f});
  CHECK(packed.run(packed.computing()[0]).exit_code == 0);
}

TEST_CASE("cli quantised: groups that contradict the tensors are refused by tensor and key") {
  const Spoiled model("fp8-channel");
  const auto check = [&](const std::string& block, const std::string& said) {
    model.set_block(block);
    model.check_refused(model.computing(), said);
  };
  check(groups(R"(["Linear"])", 4, "int"),
        "is fp8, floats of 8 bits, but 'm/config.json': quantization_config.config_groups.group_0"
        ".weights has num_bits 4 and type 'int'");
  check(groups(R"(["Linear"])", 8, "int"), ".weights has type 'int'\n");
  check(groups(R"(["Linear"])", 4, "float"), ".weights has num_bits 4\n");
  check(
      groups(R"(["re:.*nothing$"])", 8, "float"),
      "is fp8, but no target of 'm/config.json': quantization_config.config_groups.group_0 is for "
      "'model.layers.0.");
  check(groups(R"(["re:.*nothing$"])", 4, "int"), "is for 'model.layers.0.");
  check(R"({"quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups": {)"
        R"("group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float"}}, )"
        R"("group_1": {"targets": ["re:.*nothing$"], "weights": {"num_bits": 4}}}})",
        "config_groups.group_1.targets: no module is one of re:.*nothing$");
  model.set_block(groups(R"(["re:.*_proj$"])", 8, "float"));
  CHECK(model.run(model.computing()[0]).exit_code == 0);
}

}  // namespace fp8kv
