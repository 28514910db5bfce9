// Commands accept or refuse scales of another model.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/text.h"
#include "json/json.h"
#include "support/models/tiny_checkpoint.h"
#include "support/program/run_cli.h"
#include "support/says.h"
#include "support/temp_dir.h"

namespace fp8kv {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

const std::string kHelp =
    "help: calibrate this model; where you know that the scales serve it, pass "
    "--accept-foreign-scales, which is recorded in what is written\n";

// The tiny model with its own scales, and room for related models.
struct Shell {
  Shell() {
    test::write_tiny_checkpoint(temp / "model", test::tiny_config());
    temp.write("ids.jsonl", "{\"input_ids\": [1, 5, 9, 33]}\n");
    CHECK(run({"calibrate", "model", "--data", "ids.jsonl", "-o", "s.json"}).exit_code == 0);
  }

  test::CliResult run(const Strings& arguments) const {
    return test::run_cli(arguments, {.folder = temp.path()});
  }
  std::string file(const char* name) const { return test::read_file(temp / name); }
  void set_in(const char* name, const char* key, const std::string& value) const {
    temp.write(name, json_with_member(file(name), key, value));
  }
  // Writes a copy of the model with changed weights as "tuned".
  void write_tuned(const std::function<void(test::TinyTensor&)>& edit) const {
    test::write_tiny_checkpoint(temp / "tuned", test::tiny_config());
    std::vector<test::TinyTensor> tensors = test::tiny_tensors(test::tiny_config());
    for (test::TinyTensor& tensor : tensors) edit(tensor);
    test::write_tiny_weights(temp / "tuned", tensors, DType::f32);
  }
  // Every command that takes scales for a model.
  std::vector<Strings> users(const std::string& model) const {
    return {{"inject", model, "-s", "s.json", "-o", "out"},
            {"inject", model, "-s", "s.json", "--for", "json", "-o", "out.json"},
            {"run", model, "-s", "s.json", "--prompts", "ids.jsonl", "-n", "1", "--device", "cpu"},
            {"eval", model, "-s", "s.json", "--data", "ids.jsonl", "--device", "cpu", "--json",
             "--greedy-tokens", "0"}};
  }
  void clean() const {
    fs::remove_all(temp / "out");
    fs::remove(temp / "out.json");
  }

  test::TempDir temp;
};

using test::says;

}  // namespace

TEST_CASE("cli foreign scales: those of the model itself go through without a word") {
  const Shell shell;
  for (const Strings& command : shell.users("model")) {
    CAPTURE(command[0]);
    const test::CliResult result = shell.run(command);
    // Only inject mentions the scale file, because it was made from few tokens.
    const bool silent = !says(result.err, "s.json': ") ||
                        (command[0] == "inject" && says(result.err, "s.json': too little text"));
    CHECK(silent);
    if (command[0] != "run") CHECK(result.exit_code == 0);  // run needs a tokenizer
  }
}

TEST_CASE("cli foreign scales: another number of the config is refused by name") {
  const Shell shell;
  for (const auto& [key, value, said] :
       {std::tuple("rope_theta", "500000", "rope_theta is 500000 instead of 10000"),
        {"rms_norm_eps", "0.001", "rms_norm_eps is 0.001 instead of 1e-05"}}) {
    test::write_tiny_checkpoint(shell.temp / "other", test::tiny_config());
    shell.set_in("other/config.json", key, value);
    for (const Strings& command : shell.users("other")) {
      const test::CliResult result = shell.run(command);
      CHECK(result.exit_code == 3);
      CHECK(result.err == cat("fp8kv: ", command[0],
                              ": 's.json': was calibrated on another model than 'other': ", said,
                              "\n", kHelp));
      CHECK(!fs::exists(shell.temp / "out"));
    }
  }
}

TEST_CASE("cli foreign scales: another MLP, another norm and another embedding are seen") {
  const Shell shell;
  for (const auto& [name, part] : {std::pair("model.layers.0.mlp.up_proj.weight", "layer 0 are"),
                                   {"model.layers.1.input_layernorm.weight", "layer 1 are"},
                                   {"model.layers.0.self_attn.q_proj.weight", "layer 0 are"},
                                   {"model.embed_tokens.weight", "the embedding are"}}) {
    shell.write_tuned([&](test::TinyTensor& tensor) {
      if (tensor.name != name) return;
      for (float& value : tensor.values) value = -value;
    });
    const test::CliResult result = shell.run({"inject", "tuned", "-s", "s.json", "-o", "out"});
    CHECK(result.exit_code == 3);
    CHECK(says(result.err, cat("the weights of ", part, " others, moved by up to ")));
  }
}

TEST_CASE("cli foreign scales: a fine-tune is warned of, with how far it moved") {
  const Shell shell;
  shell.write_tuned([](test::TinyTensor& tensor) {
    if (!tensor.name.starts_with("model.layers.0.")) return;
    for (float& value : tensor.values) value *= 1.01f;
  });
  const std::string warning =
      "warning: 's.json': was calibrated on a model of which 'tuned' is a fine-tune: the weights "
      "of layer 0 are others, moved by up to 1.00 % of their size (layer 0); the scales may still "
      "serve: 'fp8kv eval' with --scales shows what they cost, and 'fp8kv calibrate' makes its "
      "own\n";
  for (const Strings& command : shell.users("tuned")) {
    CAPTURE(command[0]);
    const test::CliResult result = shell.run(command);
    CHECK(says(result.err, warning));
    if (command[0] != "run") CHECK(result.exit_code == 0);
  }
  CHECK(!says(shell.run({"inspect", "out"}).out, "another model's"));
}

TEST_CASE("cli foreign scales: what comes behind the last K and V may differ") {
  const Shell shell;
  shell.write_tuned([](test::TinyTensor& tensor) {
    if (tensor.name == "lm_head.weight") tensor.values[0] = 7;
  });
  const test::CliResult result = shell.run({"inject", "tuned", "-s", "s.json", "-o", "out"});
  CHECK(result.exit_code == 0);
  CHECK(
      says(result.err,
           "note: 's.json': was calibrated on a model with the same K and V as 'tuned'; different "
           "is what comes behind the last K and V (Q, O, MLP, final norm, lm_head)\n"));
}

TEST_CASE("cli foreign scales: accepting them is recorded in what is written, and shown") {
  const Shell shell;
  test::write_tiny_checkpoint(shell.temp / "other", test::tiny_config());
  shell.set_in("other/config.json", "rope_theta", "500000");
  const std::string difference = "rope_theta is 500000 instead of 10000";
  for (Strings command : shell.users("other")) {
    CAPTURE(command[0]);
    command.push_back("--accept-foreign-scales");
    const test::CliResult result = shell.run(command);
    CHECK(says(result.err, cat("warning: 's.json': was calibrated on another model than 'other': ",
                               difference, "; taken because of --accept-foreign-scales\n")));
    if (command[0] == "run") continue;
    CHECK(result.exit_code == 0);
    if (command[0] == "eval") CHECK(says(result.out, cat("\"accepted_foreign\": \"", difference)));
  }
  const std::string row = cat("another model's   accepted: ", difference, "\n");
  CHECK(says(shell.run({"inspect", "out"}).out, row));
  CHECK(says(shell.run({"inspect", "out.json"}).out, row));
  CHECK(says(shell.run({"inspect", "out", "--json"}).out,
             cat("\"accepted_foreign\": \"", difference, "\"")));
  // Scales accepted once must be accepted again for the next output.
  CHECK(shell.run({"inject", "other", "-s", "out.json", "-o", "again"}).exit_code == 3);
}

TEST_CASE("cli foreign scales: a fingerprint of version 1 is read, and what it leaves out said") {
  const Shell shell;
  const std::string text = shell.file("s.json");
  const size_t at = text.find("kv-proj-v1:");
  REQUIRE(at != text.npos);
  const std::string own = text.substr(at, 11 + 64);
  const auto old_file = [&](const std::string& fingerprint) {
    const Json file = Json::parse(text, "s.json");
    JsonWriter model;
    model.begin_object().member("fingerprint", fingerprint).member("n_layers", 2).end_object();
    const std::string extension = json_with_member(
        text.substr(text.find("\"fp8kv\": ") + 9, text.rfind('}') - text.find("\"fp8kv\": ") - 9),
        "model", model.text());
    shell.temp.write("s.json", json_with_member(text, "fp8kv", extension));
  };
  old_file(own);
  const test::CliResult same = shell.run({"inject", "model", "-s", "s.json", "-o", "out"});
  CHECK(same.exit_code == 0);
  CHECK(says(same.err,
             "note: 's.json': its fingerprint is of version 1, which tells of the K and V "
             "projections alone, not of norms, Q, O, MLP, embedding or config\n"));
  old_file("kv-proj-v1:" + std::string(64, '0'));
  const test::CliResult other = shell.run({"inject", "model", "-s", "s.json", "-o", "out2"});
  CHECK(other.exit_code == 3);
  CHECK(says(other.err, cat("fp8kv: inject: 's.json': was calibrated on another model than "
                            "'model': the K and V projections are others (",
                            own, " instead of kv-proj-v1:", std::string(64, '0'), ")\n", kHelp)));
}

TEST_CASE("cli foreign scales: a model that cannot be computed is another, with -q too") {
  const Shell shell;
  const auto check = [&](const std::string& why) {
    for (Strings command : shell.users("tuned")) {
      if (command[0] != "inject") continue;
      command.push_back("-q");
      const test::CliResult result = shell.run(command);
      CHECK(result.exit_code == 3);
      CHECK(says(result.err,
                 "'s.json': was calibrated on another model than 'tuned': that one was computed, "
                 "and this one cannot be: "));
      CHECK(says(result.err, why));
      CHECK(says(result.err, kHelp));
      CHECK(!fs::exists(shell.temp / "out"));
      CHECK(!fs::exists(shell.temp / "out.json"));
    }
  };
  shell.write_tuned([](test::TinyTensor&) {});
  shell.set_in("tuned/config.json", "hidden_act", "\"gelu\"");
  check("hidden_act");
  shell.write_tuned([](test::TinyTensor&) {});
  shell.set_in("tuned/config.json", "architectures", "[\"FooForCausalLM\"]");
  check("'FooForCausalLM' is not supported");
  test::write_tiny_checkpoint(shell.temp / "tuned", test::tiny_config());
  std::vector<test::TinyTensor> tensors = test::tiny_tensors(test::tiny_config());
  tensors.push_back(
      {"model.layers.0.self_attn.stray.weight", Shape{{4, 4}}, std::vector<float>(16, 1.0f)});
  test::write_tiny_weights(shell.temp / "tuned", tensors, DType::f32);
  check("model.layers.0.self_attn.stray.weight");
}

TEST_CASE("cli foreign scales: a model that cannot be computed is taken where that is asked for") {
  const Shell shell;
  shell.write_tuned([](test::TinyTensor&) {});
  shell.set_in("tuned/config.json", "hidden_act", "\"gelu\"");
  const test::CliResult result =
      shell.run({"inject", "tuned", "-s", "s.json", "-o", "out", "--accept-foreign-scales"});
  CHECK(result.exit_code == 0);
  CHECK(says(result.err, "that one was computed, and this one cannot be: "));
  CHECK(
      says(shell.run({"inspect", "out"}).out, "another model's   accepted: that one was computed"));
}

TEST_CASE("cli foreign scales: a few rows that grew are another model's, and named") {
  const Shell shell;
  const auto check_refused = [&](const std::string& name, size_t first_row, size_t n_rows,
                                 const std::string& said) {
    CAPTURE(name);
    shell.write_tuned([&](test::TinyTensor& tensor) {
      if (tensor.name != name) return;
      const auto columns = static_cast<size_t>(tensor.shape[tensor.shape.rank() - 1]);
      for (size_t i = first_row * columns; i < (first_row + n_rows) * columns; ++i) {
        tensor.values.at(i) *= 1000;
      }
    });
    for (const Strings& command : shell.users("tuned")) {
      const test::CliResult result = shell.run(command);
      CHECK(result.exit_code == 3);
      CHECK(says(result.err, said));
      CHECK(says(result.err, kHelp));
    }
  };
  check_refused("model.layers.1.self_attn.v_proj.weight", 3, 2,
                "with rows of 'model.layers.1.self_attn.v_proj.weight' that are ");
  check_refused("model.layers.0.self_attn.k_proj.weight", 5, 1, "k_proj.weight' that are ");
  check_refused("model.layers.0.mlp.down_proj.weight", 13, 1, "down_proj.weight' that are ");
  check_refused("model.layers.0.self_attn.q_proj.weight", 9, 1, "q_proj.weight' that are ");
}

TEST_CASE("cli foreign scales: one row that changed a little is warned of, whichever it is") {
  const Shell shell;
  for (const size_t row : {1u, 7u, 18u}) {
    shell.write_tuned([&](test::TinyTensor& tensor) {
      if (tensor.name != "model.layers.0.mlp.down_proj.weight") return;
      const auto columns = static_cast<size_t>(tensor.shape[1]);
      for (size_t i = 0; i < columns; ++i) tensor.values.at(row * columns + i) *= 1.25f;
    });
    const test::CliResult result =
        shell.run({"inject", "tuned", "-s", "s.json", "-o", cat("out", row)});
    CHECK(result.exit_code == 0);
    CHECK(says(result.err, "'tuned' is a fine-tune: the weights of layer 0 are others"));
  }
}

TEST_CASE("cli foreign scales: a file without sizes of rows is compared by the old rule") {
  const Shell shell;
  const Json file = Json::parse(shell.file("s.json"), "s.json");
  const Json model = file.at("fp8kv").at("model");
  std::string identity;
  {
    const Json whole = model.at("identity");
    JsonWriter out;
    out.begin_object();
    for (size_t i = 0; i < whole.size(); ++i) {
      if (!whole.key(i).starts_with("row_")) out.key(whole.key(i)).value(whole.value(i));
    }
    identity = std::move(out.end_object()).text();
  }
  const auto written = [](const Json& json) {
    JsonWriter out;
    out.value(json);
    return out.text();
  };
  const std::string old_model = json_with_member(written(model), "identity", identity);
  CHECK(!says(old_model, "row_"));
  const std::string extension = json_with_member(written(file.at("fp8kv")), "model", old_model);
  shell.temp.write("s.json", json_with_member(shell.file("s.json"), "fp8kv", extension));
  shell.write_tuned([](test::TinyTensor& tensor) {
    if (tensor.name == "model.layers.0.mlp.up_proj.weight") tensor.values.back() *= 1.01f;
  });
  CHECK(shell.run({"inject", "model", "-s", "s.json", "-o", "out"}).exit_code == 0);
  const test::CliResult tuned = shell.run({"inject", "tuned", "-s", "s.json", "-o", "out2"});
  CHECK(tuned.exit_code == 0);
  CHECK(says(tuned.err, "'tuned' is a fine-tune: the weights of layer 0 are others"));
}

TEST_CASE("cli foreign scales: an identity that was edited does not give its fingerprint") {
  const Shell shell;
  std::string text = shell.file("s.json");
  const size_t at = text.find("\"rope_theta\": \"10000\"");
  REQUIRE(at != text.npos);
  text.replace(at, 21, "\"rope_theta\": \"20000\"");
  shell.temp.write("s.json", text);
  const test::CliResult result = shell.run({"inject", "model", "-s", "s.json", "-o", "out"});
  CHECK(result.exit_code == 3);
  CHECK(result.err ==
        "fp8kv: inject: 's.json': fp8kv.model.identity: does not give the fingerprint beside it\n"
        "help: the file was edited: calibrate again\n");
}

TEST_CASE(
    "cli foreign scales: calibrations of two models do not merge, saying in what they differ") {
  const Shell shell;
  test::write_tiny_checkpoint(shell.temp / "other", test::tiny_config());
  shell.set_in("other/config.json", "rope_theta", "500000");
  shell.temp.write("more.jsonl", "{\"input_ids\": [2, 4, 8]}\n");
  CHECK(shell.run({"calibrate", "other", "--data", "more.jsonl", "-o", "o.json"}).exit_code == 0);
  const test::CliResult result = shell.run({"merge", "s.json", "o.json", "-o", "m.json"});
  CHECK(result.exit_code == 3);
  CHECK(
      result.err ==
      "fp8kv: merge: 'o.json': is of another model than 's.json': rope_theta is 500000 instead of "
      "10000\nhelp: only calibrations of one model, made in the same way, can be merged\n");
}

TEST_CASE("cli foreign scales: the flag is for scales that are given") {
  const Shell shell;
  const test::CliResult result =
      shell.run({"run", "model", "--prompt", "x", "--accept-foreign-scales"});
  CHECK(result.exit_code == 2);
  CHECK(says(result.err, "--accept-foreign-scales"));
}

}  // namespace fp8kv
