// A model on a test hub, and the program that reads it.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "files/output/write_file.h"
#include "formats/safetensors.h"
#include "json/json.h"
#include "support/hub_server.h"
#include "support/models/tiny_checkpoint.h"
#include "support/places.h"
#include "support/program/run_cli.h"
#include "support/skip.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

// Whether the program can read addresses. If it cannot, says why the test is skipped.
inline bool reads_addresses() {
  if (std::filesystem::exists(built_program().parent_path() / "fp8kv_http.so")) return true;
  test::skip("fp8kv_http.so was not built: libcurl is not there");
  return false;
}

// Writes four layers. Each has its own shard of 2 * `half_bytes`, with two scales in the middle.
// The weights are holes.
inline void write_sharded_model(const std::filesystem::path& folder, uint64_t half_bytes) {
  std::filesystem::create_directories(folder);
  TinyConfig config = tiny_config();
  config.n_layers = 4;
  write_new_file(folder / "config.json", tiny_config_json(config));
  JsonWriter index;
  index.begin_object().key("weight_map").begin_object();
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    const std::string at = cat("model.layers.", layer, ".");
    const std::string file = cat("model-", layer + 1, ".safetensors");
    const Shape half({static_cast<int64_t>(half_bytes / 2)});
    std::vector<TensorEntry> entries = {
        {at + "mlp.up_proj.weight", DType::bf16, half, 0, half_bytes},
        {at + "self_attn.k_scale", DType::f32, Shape(), 0, 4},
        {at + "self_attn.v_scale", DType::f32, Shape(), 0, 4},
        {at + "mlp.gate_proj.weight", DType::bf16, half, 0, half_bytes}};
    const std::string head = safetensors_head(entries, {{"format", "pt"}});
    const float scales[] = {0.01f * static_cast<float>(layer + 1), 0.5f};
    const std::string path = (folder / file).string();
    write_new_file(path, head);
    std::filesystem::resize_file(path, head.size() + 2 * half_bytes + sizeof scales);
    std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(head.size() + half_bytes));
    out.write(reinterpret_cast<const char*>(scales), sizeof scales);
    for (const TensorEntry& entry : entries) index.member(entry.name, file);
  }
  write_new_file(folder / kIndexFile, index.end_object().end_object().text());
}

class HubPlace {
 public:
  explicit HubPlace(HubServer::InPlace in_place = {}, uint64_t half_bytes = 1 << 20)
      : server(temp / "hub", std::move(in_place)) {
    write_sharded_model(temp / "hub/org/big", half_bytes);
  }

  // The environment for a run. A variable in `more` overrides the default.
  CliSetup setup(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> environment = more;
    const auto add = [&](const std::string& name, const std::string& value) {
      const bool given = std::any_of(more.begin(), more.end(), [&](const std::string& each) {
        return each.starts_with(name + "=");
      });
      if (!given) environment.push_back(cat(name, "=", value));
    };
    add("HF_ENDPOINT", server.endpoint());
    add("HF_TOKEN", "hf_secret");
    add("XDG_CACHE_HOME", (temp / "cache").string());
    for (const char* none : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "http_proxy", "all_proxy",
                             "ALL_PROXY", "no_proxy", "NO_PROXY"}) {
      add(none, "");
    }
    return {.folder = temp.path(), .environment = environment};
  }
  CliResult run(const std::vector<std::string>& arguments,
                const std::vector<std::string>& more = {}) const {
    return run_cli(arguments, setup(more));
  }
  // The address of a folder of the server, outside of a hub.
  std::string folder(const std::string& name) const { return cat(server.endpoint(), "/", name); }
  // The result of a local extract of the hub's folder.
  std::string local() const { return run({"extract", "hub/org/big"}).out; }

  TempDir temp;
  HubServer server;
};

}  // namespace fp8kv::test
