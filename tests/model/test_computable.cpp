// Models that the forward pass refuses: it would compute them wrongly, or their table of tensors
// leaves some out.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/cpu_backend.h"
#include "config/families/tensor_rows.h"
#include "config/families/tensor_table.h"
#include "model/computable.h"
#include "model/model.h"
#include "model/weights/check_rows.h"
#include "model/weights/weights.h"
#include "support/expect_error.h"
#include "support/models/block_model.h"
#include "support/models/tiny_checkpoint.h"
#include "support/refused_model.h"

namespace fp8kv {
namespace {

// Llama's rows except those of one role.
std::vector<TensorRow> rows_without(TensorRole role) {
  std::vector<TensorRow> rows(llama_tensors().begin(), llama_tensors().end());
  std::erase_if(rows, [&](const TensorRow& row) { return row.roles.front() == role; });
  return rows;
}

std::string rows_error(ModelConfig config, std::span<const TensorRow> rows) {
  config.tensors = rows;
  return test::error_of([&] { check_rows(config); });
}

}  // namespace

TEST_CASE("computable: models that differ from the tests' in nothing that matters are taken") {
  ModelConfig config = test::tiny_model();
  config.layers[1].mixing = Mixing::window;
  config.layers[1].reach = 5;
  check_computable(config);
  for (const test::BlockVariant& variant : test::block_variants()) {
    CAPTURE(variant.name);
    const test::BlockModel model(variant, DType::f32, 8);
    check_computable(model.config);
    check_rows(model.config);
  }
}

TEST_CASE("computable: layers that are of another kind are refused") {
  CHECK(test::refusal([](ModelConfig& c) { c.layers[1].mixing = Mixing::recurrent; }) ==
        "LlamaForCausalLM: layer 1 mixes tokens by 'recurrent', expected 'full', 'window' or "
        "'chunks'");
  CHECK(test::refusal([](ModelConfig& c) { c.block.qk_norm = QkNorm::own_heads; }) ==
        "LlamaForCausalLM: heads have weights of their own for a norm by the root mean square, "
        "expected NormKind::layer");
  CHECK(test::refusal([](ModelConfig& c) { c.block.qk_norm_bias = true; }) ==
        "LlamaForCausalLM: norms of Q and K have a bias, expected QkNorm::per_head and "
        "NormKind::layer");
  CHECK(test::refusal([](ModelConfig& c) {
          c.bare_norms = true;
          c.block.norm_place = NormPlace::after;
        }) ==
        "LlamaForCausalLM: norms without weights are behind blocks, or have a bias, expected norms "
        "before the blocks");
  CHECK(test::refusal([](ModelConfig& c) { c.qk_norm_rotated = true; }) ==
        "LlamaForCausalLM: Q and K are normalised after their rotation, expected QkNorm::per_head "
        "or plain, and no norm of V");
  CHECK(test::refusal([](ModelConfig& c) {
          c.block.qk_norm = QkNorm::plain;
          c.qk_norm_rotated = true;
          c.layer_ropes[1] = -1;
        }) ==
        "LlamaForCausalLM: layer 1 norms Q and K after a rotation, and has none, expected a "
        "rotation");
  CHECK(test::refusal([](ModelConfig& c) {
          c.block.qk_norm = QkNorm::per_head;
          c.qk_norm_rotated = true;
          c.ropes[0].k_factor = 0.5;
        }) ==
        "LlamaForCausalLM: Q and K are normalised after a rotation that scales one of them, "
        "expected a rotation that turns both alike");
  CHECK(test::refusal([](ModelConfig& c) { c.layers[1].n_kv_heads = 3; }) ==
        "LlamaForCausalLM: layer 1 has 3 KV heads, expected a number that divides 4 heads");
  CHECK(test::refusal([](ModelConfig& c) {
          c.heads_by_layer = {4, 3};
        }) == "LlamaForCausalLM: layer 1 has 2 KV heads, expected a number that divides 3 heads");
  CHECK(
      test::refusal([](ModelConfig& c) { c.layers[0].k_head_dim = c.layers[0].v_head_dim = 16; }) ==
      "LlamaForCausalLM: layers with heads of 8 and of 16 elements have the rotation 0, expected "
      "one for each size");
}

TEST_CASE("computable: a state beside a cache has a size, and nothing norms what it gives") {
  CHECK(test::refusal([](ModelConfig& c) { c.layers[1].state_beside = true; }) ==
        "LlamaForCausalLM: layer 1 keeps a state of unknown size beside its cache, expected "
        "RecurrenceConfig, or none");
  CHECK(test::refusal([](ModelConfig& c) {
          c.layers[1].state_beside = true;
          c.recurrence.emplace();
          c.block.norm_place = NormPlace::around;
        }) ==
        "LlamaForCausalLM: layer 1 has attention and a state side by side, with a norm of what "
        "they give, expected a norm before them alone");
}

TEST_CASE("computable: layers that keep a state may differ from the others in few ways") {
  CHECK(test::refusal([](ModelConfig& c) { c.block.states_normed_before = true; }) ==
        "LlamaForCausalLM: layers that keep a state have norms of another place than others, "
        "expected norms after the blocks in the others");
  CHECK(test::refusal([](ModelConfig& c) {
          c.recurrence.emplace();
          c.recurrence->steps_by_row = true;
          c.recurrence->k_heads = 2;
          c.recurrence->v_heads = 4;
        }) ==
        "LlamaForCausalLM: rows of a state decay by steps of their own, expected "
        "StateUpdate::delta, and as many heads of V as of K");
  const auto scan = [](ModelConfig& c) {
    c.recurrence.emplace();
    c.recurrence->update = StateUpdate::add;
    c.recurrence->norm = StateNorm::none;
    c.recurrence->from_v = true;
    c.recurrence->k_heads = c.recurrence->v_heads = 1;
    c.recurrence->rank = 2;
    c.recurrence->k_dim = 16;
  };
  ModelConfig plain = test::tiny_model();
  scan(plain);
  check_computable(plain);
  const std::function<void(RecurrenceConfig&)> changes[] = {
      [](RecurrenceConfig& state) { state.update = StateUpdate::delta; },
      [](RecurrenceConfig& state) { state.v_heads = 2; },
      [](RecurrenceConfig& state) { state.rank = 0; },
      [](RecurrenceConfig& state) { state.norm = StateNorm::heads; },
      [](RecurrenceConfig& state) { state.multipliers.step = 2; }};
  for (const auto& change : changes) {
    CHECK(test::refusal([&](ModelConfig& c) {
            scan(c);
            change(*c.recurrence);
          }).find("Q, K and steps of a state come from V") != std::string::npos);
  }
  CHECK(test::refusal([&](ModelConfig& c) {
          scan(c);
          c.recurrence->k_dim = 65;
        }) == "LlamaForCausalLM: a state has 65 rows with rates of their own, expected 64 at most");
  for (const double least : {-5.0, 5.0}) {
    CHECK(test::refusal([&](ModelConfig& c) {
            c.recurrence.emplace();
            c.recurrence->steps_by_row = least > 0;
            c.recurrence->least_log_decay = least;
          }) == "LlamaForCausalLM: decays have the least logarithm " + cat(least) +
                    ", expected one below 0, where rows decay by steps of their own");
  }
}

TEST_CASE("computable: multipliers are of blocks that have nothing else of the kind") {
  CHECK(test::refusal([](ModelConfig& c) {
          c.block.q_multiplier = 2;
          c.block.qk_norm = QkNorm::per_head;
        }) ==
        "LlamaForCausalLM: Q is multiplied and not normed, or normed with weights, expected a norm "
        "without weights");
  CHECK(test::refusal([](ModelConfig& c) {
          c.block.v_multiplier = 2;
          c.block.qk_norm = QkNorm::per_head;
        }) ==
        "LlamaForCausalLM: V is multiplied, and there is a latent or a norm of heads, expected "
        "neither");
  CHECK(test::refusal([](ModelConfig& c) {
          c.block.norm_place = NormPlace::after;
          c.block.attention_in_multiplier = 2;
        }) ==
        "LlamaForCausalLM: rows that go into attention are multiplied and not normed, expected "
        "both or neither");
  for (double BlockConfig::*multiplier :
       {&BlockConfig::gate_multiplier, &BlockConfig::down_multiplier}) {
    CHECK(test::refusal([&](ModelConfig& c) {
            c.block.gated = false;
            c.block.*multiplier = 2;
          }) ==
          "LlamaForCausalLM: the feed-forward part has multipliers, and experts or no gate, "
          "expected a gate and no experts");
  }
  CHECK(test::refusal([](ModelConfig& c) {
          c.ropes[0].rotary_dim = 4;
          c.ropes[0].k_factor = 2;
        }) ==
        "LlamaForCausalLM: K has a factor where 4 of its 8 elements are rotated, expected all of "
        "them");
}

TEST_CASE("computable: a layer reads its own cache, or that of one before it like it") {
  ModelConfig sharing = test::tiny_model();
  sharing.layers[1].cache_of = 0;
  check_computable(sharing);
  CHECK(test::refusal([](ModelConfig& c) { c.layers[0].cache_of = 1; }) ==
        "LlamaForCausalLM: layer 0 reads the cache of layer 1, expected that of a layer before it");
  CHECK(test::refusal([](ModelConfig& c) {
          c.layers[1].cache_of = 0;
          c.layers[1].n_kv_heads = 1;
        }) ==
        "LlamaForCausalLM: layer 1 reads the cache of layer 0, which has other heads, expected "
        "heads of one number and size");
  CHECK(test::refusal([](ModelConfig& c) { c.layers[1].cache_of = -1; }) ==
        "LlamaForCausalLM: layer 1 has no cache, expected one");
}

TEST_CASE("computable: layers have rotations that there are, of an even part of a head") {
  CHECK(test::refusal([](ModelConfig& c) { c.layer_ropes[1] = 1; }) ==
        "LlamaForCausalLM: layer 1 has the rotation 1, expected -1, which is none, or one of 1");
  CHECK(test::refusal([](ModelConfig& c) { c.layer_ropes[0] = -2; }) ==
        "LlamaForCausalLM: layer 0 has the rotation -2, expected -1, which is none, or one of 1");
  CHECK(test::refusal([](ModelConfig& c) { c.ropes[0].rotary_dim = 3; }) ==
        "LlamaForCausalLM: 3 elements of a head are rotated, expected an even number of its 8");
  CHECK(test::refusal([](ModelConfig& c) { c.ropes[0].rotary_dim = 10; }) ==
        "LlamaForCausalLM: 10 elements of a head are rotated, expected an even number of its 8");
}

TEST_CASE("computable: blocks keep the rules that stand beside BlockConfig's fields") {
  CHECK(test::refusal([](ModelConfig& c) { c.block.shared_norm = true; }) ==
        "LlamaForCausalLM: blocks that come one after another share a norm, expected parallel "
        "ones");
  CHECK(test::refusal([](ModelConfig& c) {
          c.block.parallel = true;
          c.block.norm_place = NormPlace::after_add;
        }) ==
        "LlamaForCausalLM: parallel blocks have norms of the sum (after_add), expected norms of "
        "another place");
  CHECK(test::refusal([](ModelConfig& c) { c.block.norm_bias = true; }) ==
        "LlamaForCausalLM: norms by the root mean square have a bias, expected none, or "
        "NormKind::layer");
}

TEST_CASE("computable: fixed decays are those of a state whose steps are 1") {
  const auto fixed = [](ModelConfig& c) {
    c.recurrence.emplace();
    c.recurrence->update = StateUpdate::add;
    c.recurrence->norm = StateNorm::whole;
    c.recurrence->fixed_decays = true;
    c.recurrence->least_step = c.recurrence->most_step = 1;
  };
  ModelConfig lightning = test::tiny_model();
  fixed(lightning);
  check_computable(lightning);
  const std::function<void(RecurrenceConfig&)> other_steps[] = {
      [](RecurrenceConfig& state) { state.update = StateUpdate::delta; },
      [](RecurrenceConfig& state) { state.rank = 2; },
      [](RecurrenceConfig& state) { state.skip = true; },
      [](RecurrenceConfig& state) { state.most_step = 2; },
      [](RecurrenceConfig& state) { state.multipliers.step = 2; }};
  for (const auto& change : other_steps) {
    CHECK(test::refusal([&](ModelConfig& c) {
            fixed(c);
            change(*c.recurrence);
          }).find("the decays of a state are fixed") != std::string::npos);
  }
}

TEST_CASE("computable: a normed stream goes on through blocks in turn, which alone have factors") {
  CHECK(test::refusal([](ModelConfig& c) { c.block.stream_factors.attention = 2; }) ==
        "LlamaForCausalLM: the stream is multiplied where outputs join it, expected "
        "NormPlace::carried");
  const std::function<void(ModelConfig&)> changes[] = {
      [](ModelConfig& c) { c.block.parallel = true; }, [](ModelConfig& c) { c.laurel_rank = 4; },
      [](ModelConfig& c) { c.layer_input_dim = 4; }};
  for (const auto& change : changes) {
    CHECK(test::refusal([&](ModelConfig& c) {
            c.block.norm_place = NormPlace::carried;
            change(c);
          }) ==
          "LlamaForCausalLM: the normed stream goes on beside blocks of another kind, expected "
          "blocks in turn, on one stream");
  }
}

TEST_CASE("tensor rows: a tensor that the config has is missed when no row names it") {
  ModelConfig config = test::tiny_model();
  config.block.qk_norm = QkNorm::per_head;
  for (const TensorRow& row : llama_tensors()) {
    CAPTURE(std::string(row.name));
    const std::string error = rows_error(config, rows_without(row.roles.front()));
    CHECK(error.starts_with("the table of tensors of LlamaForCausalLM: has 0 rows for '"));
    CHECK(error.ends_with("with this config, expected 1"));
  }
  config.block.norm_place = NormPlace::around;
  CHECK(rows_error(config, llama_tensors()) ==
        "the table of tensors of LlamaForCausalLM: has 0 rows for 'attn_post_norm' with this "
        "config, expected 1");
}

TEST_CASE("tensor rows: rows for what a config has not are no mistake, two for one tensor are") {
  const ModelConfig config = test::tiny_model();
  check_rows(config);
  const std::vector<TensorRow> without = rows_without(TensorRole::q_norm);
  CHECK(without.size() + 1 == llama_tensors().size());
  ModelConfig same = config;
  same.tensors = without;
  check_rows(same);
  std::vector<TensorRow> rows(llama_tensors().begin(), llama_tensors().end());
  rows.push_back({"model.layers.{}.other_norm", {TensorRole::ffn_norm}});
  CHECK(rows_error(config, rows) ==
        "the table of tensors of LlamaForCausalLM: has 2 rows for 'ffn_norm' with this config, "
        "expected 1");
}

TEST_CASE("computable: an indexer fits its attention") {
  const auto refused = [](const std::function<void(IndexerConfig&)>& change) {
    return test::refusal([&](ModelConfig& config) {
      const int64_t rotated = config.layers.front().k_head_dim;
      config.indexer = IndexerConfig{.n_heads = config.layers.front().n_kv_heads,
                                     .head_dim = rotated + 2,
                                     .rope_dim = rotated,
                                     .top_k = 3,
                                     .block = 4,
                                     .local_blocks = 1,
                                     .by_kv_head = true};
      for (LayerDescription& layer : config.layers) layer.index_bytes = 8;
      change(*config.indexer);
    });
  };
  CHECK(refused([](IndexerConfig& indexer) {
          indexer.by_kv_head = false;
        }).starts_with("LlamaForCausalLM: an indexer chooses tokens of another kind than its "));
  CHECK(refused([](IndexerConfig& indexer) {
          indexer.rope_dim -= 2;
        }).starts_with("LlamaForCausalLM: an indexer rotates "));
  CHECK(refused([](IndexerConfig& indexer) { indexer.local_blocks = 0; }) ==
        "LlamaForCausalLM: an indexer always chooses the last 0 blocks, expected 1 to 3");
  CHECK(refused([](IndexerConfig& indexer) {
          indexer.n_heads += 1;
        }).find("full attention with as many KV heads, which rotate") != std::string::npos);
}

TEST_CASE("computable: a clamped SwiGLU is in blocks with a plain gate") {
  CHECK(test::refusal([](ModelConfig& config) {
          config.swiglus.assign(config.layers.size(), {.dense = ClampedSwiglu{}});
          config.block.gate_multiplier = 2;
        }).starts_with("LlamaForCausalLM: a clamped SwiGLU is in blocks without a gate, "));
}

TEST_CASE("tensor rows: one whose first part the config has not hides the others") {
  ModelConfig config = test::tiny_model();
  config.block.gated = false;
  std::vector<TensorRow> rows = rows_without(TensorRole::gate);
  for (TensorRow& row : rows) {
    if (row.roles.front() == TensorRole::up) row.roles = {TensorRole::gate, TensorRole::up};
  }
  CHECK(rows_error(config, rows) ==
        "the table of tensors of LlamaForCausalLM: has 0 rows for 'up' with this config, expected "
        "1");
}

TEST_CASE("tensor rows: a layer's are named with its number, and no others") {
  const ModelConfig config = test::tiny_model();
  std::vector<TensorRow> rows = rows_without(TensorRole::o);
  rows.push_back({"model.o_proj", {TensorRole::o}});
  CHECK(rows_error(config, rows) ==
        "the table of tensors of LlamaForCausalLM: has 0 rows for 'o' with this config, expected "
        "1");
  rows = rows_without(TensorRole::norm);
  rows.push_back({"model.layers.{}.norm", {TensorRole::norm}});
  CHECK(rows_error(config, rows) ==
        "the table of tensors of LlamaForCausalLM: has 0 rows for 'norm' with this config, "
        "expected 1");
}

TEST_CASE("forward: is not made for a model or a table that is refused") {
  const auto backend = make_cpu_backend(1);
  ModelConfig config = test::tiny_model();
  config.block.norm_bias = true;
  CHECK(test::error_of([&] {
          Forward(*backend, config, 4, 4);
        }).starts_with("LlamaForCausalLM: norms by the root mean square"));
  config = test::tiny_model();
  const std::vector<TensorRow> rows = rows_without(TensorRole::gate);
  config.tensors = rows;
  CHECK(test::error_of([&] { Forward(*backend, config, 4, 4); }) ==
        "the table of tensors of LlamaForCausalLM: has 0 rows for 'gate' with this config, "
        "expected 1");
}

}  // namespace fp8kv
