#include <limits>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "quant/expert_forms.h"
#include "quant/weight_forms.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

const std::string kModule = "l.q_proj";

// The tensors of one module, by their suffixes after the module's name.
struct Module {
  std::map<std::string, TensorEntry> tensors;
  QuantSettings settings;

  Module& add(const std::string& suffix, DType dtype, const Shape& shape) {
    TensorEntry& entry = tensors[kModule + suffix];
    entry.name = kModule + suffix;
    entry.dtype = dtype;
    entry.shape = shape;
    return *this;
  }
  Module without(const std::string& suffix) const {
    Module out = *this;
    out.tensors.erase(kModule + suffix);
    return out;
  }
  std::optional<StoredWeight> find(const Shape& shape = {64, 96}, int64_t bands = 1) const {
    return find_stored_weight(
        kModule, {shape, bands}, settings,
        [&](const std::string& name) -> const TensorEntry* {
          const auto at = tensors.find(name);
          return at == tensors.end() ? nullptr : &at->second;
        },
        "'m'");
  }
  // Looks for all experts in one tensor.
  std::optional<StoredWeight> find_experts(bool turned = false,
                                           const Shape& shape = {3, 64, 96}) const {
    return find_stored_experts(
        kModule, {shape, turned}, settings,
        [&](const std::string& name) -> const TensorEntry* {
          const auto at = tensors.find(name);
          return at == tensors.end() ? nullptr : &at->second;
        },
        "'m'");
  }
  std::string experts_error(bool turned = false, const Shape& shape = {3, 64, 96}) const {
    return test::error_of([&] { static_cast<void>(find_experts(turned, shape)); });
  }
  std::string error() const {
    return test::error_of([&] { static_cast<void>(find()); });
  }
};

Module fp8(const Shape& scale, DType dtype = DType::f32) {
  return Module().add(".weight", DType::f8_e4m3, {64, 96}).add(".weight_scale", dtype, scale);
}
Module nvfp4() {
  return Module()
      .add(".weight", DType::u8, {64, 48})
      .add(".weight_scale", DType::f8_e4m3, {64, 6})
      .add(".weight_scale_2", DType::f32, {});
}
Module packed() {
  return Module()
      .add(".weight_packed", DType::i32, {64, 12})
      .add(".weight_scale", DType::bf16, {64, 3});
}
Module gptq() {
  return Module()
      .add(".qweight", DType::i32, {12, 64})
      .add(".qzeros", DType::i32, {3, 8})
      .add(".scales", DType::f16, {3, 64});
}
Module awq() {
  return Module()
      .add(".qweight", DType::i32, {96, 8})
      .add(".qzeros", DType::i32, {3, 8})
      .add(".scales", DType::f16, {3, 64});
}

}  // namespace

TEST_CASE("weight_forms: a scale's shape says what it is for") {
  const auto text = [](const Module& module) { return form_text(*module.find()); };
  CHECK(text(fp8({})) == "fp8, one scale");
  CHECK(text(fp8({1})) == "fp8, one scale");
  CHECK(text(fp8({64})) == "fp8, a scale for each row");
  CHECK(text(fp8({64, 1}, DType::bf16)) == "fp8, a scale for each row");
  CHECK(text(fp8({64, 3})) == "fp8, a scale for each 32 columns of a row");
  CHECK(text(fp8({64, 3}, DType::u8)) == "fp8, a scale for each 32 columns of a row");
  CHECK(text(fp8({1, 1})) == "fp8, one scale");
  Module blocks = fp8({4, 5});
  blocks.settings.block_rows = 16;
  blocks.settings.block_columns = 20;
  CHECK(text(blocks) == "fp8, a scale for each 16 x 20");
  blocks.add(".weight_scale", DType::f32, {4, 1, 5, 1});
  CHECK(text(blocks) == "fp8, a scale for each 16 x 20");
  Module wide;
  wide.add(".weight", DType::f8_e4m3, {300, 140}).add(".weight_scale_inv", DType::f32, {3, 2});
  CHECK(form_text(*wide.find({300, 140})) == "fp8, a scale for each 128 x 128");
}

TEST_CASE("weight_forms: parts of a matrix may have blocks of their own") {
  Module fused;
  fused.add(".weight", DType::f8_e4m3, {300, 140}).add(".weight_scale_inv", DType::f32, {4, 2});
  const StoredWeight found = *fused.find({300, 140}, 2);
  CHECK(form_text(found) == "fp8, a scale for each 128 x 128 of each of 2 parts");
  CHECK(found.matrix.rows == 150);
  // The whole matrix would have as many blocks. The parts count, like in vLLM.
  fused.settings.block_rows = fused.settings.block_columns = 100;
  fused.add(".weight_scale_inv", DType::f32, {4, 2});
  CHECK(fused.find({300, 140}, 2)->bands == 2);
  fused.add(".weight_scale_inv", DType::f32, {3, 2});
  CHECK(fused.find({300, 140}, 2)->bands == 1);
  fused.add(".weight_scale_inv", DType::f32, {3, 2});
  CHECK(fused.find({300, 140}, 3)->bands == 1);
  fused.settings.block_rows = 75;
  fused.add(".weight_scale_inv", DType::f32, {4, 2});
  CHECK(fused.find({300, 140}, 2)->bands == 1);
  fused.add(".weight_scale_inv", DType::f32, {5, 2});
  CHECK(test::error_of([&] { fused.find({300, 140}, 2); }).find("[5, 2]") != std::string::npos);
}

TEST_CASE("weight_forms: a matrix of few rows is in groups where the config gives no blocks") {
  CHECK(form_text(*packed().find()) == "pack-quantized, a scale for each 32 columns of a row");
  CHECK(form_text(*gptq().find()) == "gptq, a scale for each 32 columns of a row");
  CHECK(form_text(*awq().find()) == "awq, a scale for each 32 columns of a row");
  CHECK(gptq().find()->matrix.zero_add == 1);
  CHECK(awq().find()->matrix.zero_add == 0);
}

TEST_CASE("weight_forms: plain tensors, and forms that are not here, are none of these") {
  CHECK_FALSE(Module().find());
  CHECK_FALSE(Module().add(".weight", DType::bf16, {64, 96}).find());
  // bitsandbytes stores 4-bit weights like this.
  CHECK_FALSE(
      Module().add(".weight", DType::u8, {3072, 1}).add(".weight.absmax", DType::u8, {96}).find());
}

TEST_CASE("weight_forms: a form without its scales is an error that names them") {
  CHECK(fp8({}).without(".weight_scale").error() ==
        "'m': tensor 'l.q_proj.weight': is F8_E4M3, and there is no 'l.q_proj.weight_scale', "
        "'l.q_proj.weight_scale_inv', 'l.q_proj.scale' or 'l.q_proj.qscale_weight' beside it");
  CHECK(nvfp4().without(".weight_scale_2").error() ==
        "'m': tensor 'l.q_proj.weight_scale': is F8_E4M3, and there is no "
        "'l.q_proj.weight_scale_2' or 'l.q_proj.weight_global_scale' beside it");
  CHECK(packed().without(".weight_scale").error() ==
        "'m': tensor 'l.q_proj.weight_packed': is I32, and there is no 'l.q_proj.weight_scale' "
        "beside it");
  CHECK(gptq().without(".qzeros").error() ==
        "'m': tensor 'l.q_proj.qweight': is I32, and there is no 'l.q_proj.qzeros' beside it");
  CHECK(awq().without(".scales").error() ==
        "'m': tensor 'l.q_proj.qweight': is I32, and there is no 'l.q_proj.scales' beside it");
}

TEST_CASE("weight_forms: what does not fit is an error with both shapes") {
  CHECK(fp8({65}).error() ==
        "'m': tensor 'l.q_proj.weight_scale': has the shape [65], expected one scale, one for each "
        "row, for each group of columns, or for each 128 x 128 for a weight of [64, 96]");
  CHECK(fp8({64, 5}).error().find("has the shape [64, 5]") != std::string::npos);
  CHECK(fp8({}, DType::i32).error() ==
        "'m': tensor 'l.q_proj.weight_scale': is I32, expected F32, F16 or BF16");
  CHECK(Module(fp8({})).add(".weight", DType::f8_e4m3, {64, 95}).error() ==
        "'m': tensor 'l.q_proj.weight': has the shape [64, 95], expected [64, 96] for a weight of "
        "[64, 96]");
  CHECK(Module(nvfp4()).add(".weight_scale", DType::f8_e4m3, {64, 5}).error() ==
        "'m': tensor 'l.q_proj.weight_scale': has the shape [64, 5], expected [64, 6] for a weight "
        "of [64, 96]");
  CHECK(Module(nvfp4()).add(".weight_scale_2", DType::f32, {2}).error() ==
        "'m': tensor 'l.q_proj.weight_scale_2': has the shape [2], expected one number for a "
        "weight of [64, 96]");
  CHECK(Module(packed()).add(".weight_packed", DType::i32, {64, 13}).error() ==
        "'m': tensor 'l.q_proj.weight_packed': has the shape [64, 13], expected rows of 4 or 8 "
        "bits packed into words for a weight of [64, 96]");
  CHECK(Module(packed()).add(".weight_zero_point", DType::i32, {64, 3}).error() ==
        "'m': tensor 'l.q_proj.weight_zero_point': has the shape [64, 3], expected [8, 3] for a "
        "weight of [64, 96]");
  CHECK(Module(gptq()).add(".scales", DType::f16, {5, 64}).error() ==
        "'m': tensor 'l.q_proj.qzeros': has the shape [3, 8], expected [5, 8] for a weight of "
        "[64, 96]");
  CHECK(Module(gptq())
            .add(".scales", DType::f16, {5, 64})
            .add(".qzeros", DType::i32, {5, 8})
            .error() ==
        "'m': tensor 'l.q_proj.scales': has 5 groups, which do not divide the 96 columns of the "
        "weight");
  CHECK(Module(gptq()).add(".g_idx", DType::i32, {95}).error() ==
        "'m': tensor 'l.q_proj.g_idx': has the shape [95], expected [96] for a weight of [64, 96]");
  CHECK(Module(gptq()).add(".qweight", DType::i32, {13, 64}).error() ==
        "'m': tensor 'l.q_proj.qweight': has the shape [13, 64], expected columns of 4 or 8 bits "
        "packed into words, as [12, 64] of GPTQ or [96, 8] of AWQ for a weight of [64, 96]");
  CHECK(Module(awq()).add(".qweight", DType::f32, {96, 8}).error() ==
        "'m': tensor 'l.q_proj.qweight': is F32, expected I32");
}

TEST_CASE("weight_forms: a group size of the config that does not divide the columns is refused") {
  // 96 columns make two groups of 64, and also two groups of 48.
  const auto of_64 = [](Module module, const char* scales, const Shape& shape) {
    module.settings.group_columns = 64;
    return module.add(scales, DType::bf16, shape);
  };
  const std::string refused =
      "has 2 groups, of 64 columns as config.json says, which do not divide the 96 columns of the "
      "weight";
  CHECK(of_64(packed(), ".weight_scale", {64, 2}).error() ==
        "'m': tensor 'l.q_proj.weight_scale': " + refused);
  CHECK(of_64(fp8({}), ".weight_scale", {64, 2}).error() ==
        "'m': tensor 'l.q_proj.weight_scale': " + refused);
  Module words = of_64(gptq(), ".scales", {2, 64}).add(".qzeros", DType::i32, {2, 8});
  CHECK(words.error() == "'m': tensor 'l.q_proj.scales': " + refused);
  // g_idx gives the group of each column, so the size does not matter.
  CHECK(words.add(".g_idx", DType::i32, {96}).find());
  // A layer may have another group size than the config.
  CHECK(of_64(packed(), ".weight_scale", {64, 3}).find());
}

TEST_CASE("weight_forms: MXFP4 of all experts in one tensor, as gpt-oss has it") {
  const Module module =
      Module().add("_blocks", DType::u8, {3, 64, 3, 16}).add("_scales", DType::u8, {3, 64, 3});
  const StoredWeight weight = *module.find_experts();
  CHECK(form_text(weight) == "mxfp4, a scale for each 32 columns of a row");
  CHECK(weight.matrix.rows == 3 * 64);
  CHECK(weight.matrix.columns == 96);
  CHECK(weight.matrix.row_step == 3);
  CHECK_FALSE(module.find({64, 96}));
  CHECK(module.without("_scales").experts_error() ==
        "'m': tensor 'l.q_proj_blocks': is U8, and there is no 'l.q_proj_scales' beside it");
  CHECK(Module(module).add("_scales", DType::f16, {3, 64, 3}).experts_error() ==
        "'m': tensor 'l.q_proj_scales': is F16, expected F8_E8M0");
  CHECK(Module(module).add("_scales", DType::u8, {3, 64, 2}).experts_error() ==
        "'m': tensor 'l.q_proj_scales': has the shape [3, 64, 2], expected [3, 64, 3] for a weight "
        "of [3, 64, 96]");
  CHECK(Module(module).add("_blocks", DType::i8, {3, 64, 3, 16}).experts_error() ==
        "'m': tensor 'l.q_proj_blocks': is I8, expected U8");
  CHECK(
      module.experts_error(false, {3, 64, 95}) ==
      "'m': tensor 'l.q_proj_blocks': has the shape [3, 64, 3, 16], expected groups of 32 columns "
      "for a weight of [3, 64, 95]");
}

TEST_CASE("weight_forms: MXFP4 as DeepSeek V4 publishes its experts") {
  const Module module =
      Module().add(".weight", DType::i8, {64, 48}).add(".scale", DType::f8_e8m0, {64, 3});
  const StoredWeight weight = *module.find();
  CHECK(form_text(weight) == "mxfp4, a scale for each 32 columns of a row");
  CHECK(weight.matrix.rows == 64);
  CHECK(weight.matrix.columns == 96);
  CHECK(Module(module).add(".weight", DType::i8, {64, 96}).error() ==
        "'m': tensor 'l.q_proj.weight': has the shape [64, 96], expected [64, 48] for a weight of "
        "[64, 96]");
  CHECK(Module(module).add(".scale", DType::f8_e8m0, {64, 2}).error() ==
        "'m': tensor 'l.q_proj.scale': has the shape [64, 2], expected [64, 3] for a weight of "
        "[64, 96]");
  // Other bytes of a .weight are INT8.
  const Module int8 = Module().add(".weight", DType::i8, {64, 96}).add(".scale", DType::f32, {64});
  CHECK(form_text(*int8.find()) == "int8, a scale for each row");
}

TEST_CASE("weight_forms: FP8 of all experts in one tensor, each with rows") {
  const auto of = [](const std::string& codes, const std::string& scales, const Shape& shape) {
    return Module().add(codes, DType::f8_e4m3, {3, 64, 96}).add(scales, DType::f32, shape);
  };
  const auto text = [](const Module& module) { return form_text(*module.find_experts()); };
  CHECK(text(of(".weight", ".weight_scale", {3, 64, 1})) == "fp8, a scale for each row");
  CHECK(text(of("", "_scale_inv", {})) == "fp8, one scale");
  CHECK(text(of("", "_scale_inv", {3, 1, 1})) == "fp8, a scale for each expert");
  CHECK(text(of("", "_scale_inv", {3})) == "fp8, a scale for each expert");
  CHECK(text(of("", "_scale_inv", {3, 2, 1})) == "fp8, a scale for each half of an expert's rows");
  CHECK(text(of("", "_scale_inv", {3, 64, 3})) == "fp8, a scale for each 32 columns of a row");
  Module blocks = of("", "_scale_inv", {3, 4, 5});
  blocks.settings.block_rows = 16;
  blocks.settings.block_columns = 20;
  CHECK(text(blocks) == "fp8, a scale for each 16 x 20");
  const QuantisedMatrix matrix = blocks.find_experts()->matrix;
  CHECK(matrix.rows == 3 * 64);
  CHECK(matrix.row_step == 5);
  CHECK_FALSE(blocks.find_experts()->turned);
  // A single matrix uses other names.
  CHECK_FALSE(of("", "_scale_inv", {}).find({64, 96}));
}

TEST_CASE("weight_forms: experts in one tensor whose scales do not fit are refused with numbers") {
  const auto of = [](const std::string& scales, const Shape& shape, DType dtype = DType::f32) {
    return Module().add("", DType::f8_e4m3, {3, 64, 96}).add(scales, dtype, shape);
  };
  CHECK(of("_other", {}).experts_error() ==
        "'m': tensor 'l.q_proj': is F8_E4M3, and there is no 'l.q_proj_scale_inv' beside it");
  CHECK(of("_scale_inv", {4, 64, 1}).experts_error() ==
        "'m': tensor 'l.q_proj_scale_inv': has the shape [4, 64, 1], expected one scale, one for "
        "each expert, for each row of each, for each group of columns, or for each 128 x 128 for a "
        "weight of [3, 64, 96]");
  CHECK(of("_scale_inv", {3, 64, 5}).experts_error().find("has the shape [3, 64, 5]") !=
        std::string::npos);
  CHECK(of("_scale_inv", {192, 1}).experts_error().find("has the shape [192, 1]") !=
        std::string::npos);
  CHECK(of("_scale_inv", {3, 64, 1}, DType::i32).experts_error() ==
        "'m': tensor 'l.q_proj_scale_inv': is I32, expected F32, F16 or BF16");
  CHECK(Module(of("_scale_inv", {})).add("", DType::f8_e4m3, {2, 64, 96}).experts_error() ==
        "'m': tensor 'l.q_proj': has the shape [2, 64, 96], expected [3, 64, 96] for a weight of "
        "[3, 64, 96]");
  Module blocks = of("_scale_inv", {3, 3, 4});
  blocks.settings.block_rows = blocks.settings.block_columns = 24;
  CHECK(blocks.experts_error() ==
        "'m': tensor 'l.q_proj_scale_inv': has the shape [3, 3, 4], expected blocks of 24 rows "
        "that divide those of an expert for a weight of [3, 64, 96]");
}

TEST_CASE("weight_forms: experts whose rows are columns, as ModelOpt and fbgemm leave them") {
  const auto fp8_of = [](const std::string& scales, const Shape& shape) {
    return Module().add("", DType::f8_e4m3, {3, 96, 64}).add(scales, DType::f32, shape);
  };
  const auto text = [](const Module& module) { return form_text(*module.find_experts(true)); };
  CHECK(text(fp8_of("_weight_scale", {})) == "fp8, one scale");
  CHECK(text(fp8_of("_weight_scale", {3})) == "fp8, a scale for each expert");
  CHECK(text(fp8_of("_scale", {3, 1, 64})) == "fp8, a scale for each row");
  CHECK(text(fp8_of("_scale", {3, 64, 1})) == "fp8, a scale for each row");
  const StoredWeight weight = *fp8_of("_scale", {3, 1, 64}).find_experts(true);
  CHECK(weight.turned);
  CHECK(weight.matrix.rows == 3 * 96);
  CHECK(weight.matrix.columns == 64);
  CHECK(fp8_of("_scale", {3, 96, 1}).experts_error(true) ==
        "'m': tensor 'l.q_proj_scale': has the shape [3, 96, 1], expected one scale, one for each "
        "expert, or for each row of each for a weight of [3, 64, 96]");
  const Module nvfp4 = Module()
                           .add("", DType::u8, {3, 48, 64})
                           .add("_weight_scale", DType::f8_e4m3, {3, 6, 64})
                           .add("_weight_scale_2", DType::f32, {});
  CHECK(text(nvfp4) == "nvfp4, a scale for each 16 columns of a row");
  CHECK_FALSE(nvfp4.find_experts());  // the groups run along rows, which no tool writes
  CHECK(nvfp4.without("_weight_scale_2").experts_error(true) ==
        "'m': tensor 'l.q_proj_weight_scale': is F8_E4M3, and there is no "
        "'l.q_proj_weight_scale_2' beside it");
  CHECK(Module(nvfp4).add("_weight_scale", DType::f8_e4m3, {3, 5, 64}).experts_error(true) ==
        "'m': tensor 'l.q_proj_weight_scale': has the shape [3, 5, 64], expected [3, 6, 64] for a "
        "weight of [3, 64, 96]");
  CHECK(Module(nvfp4).add("", DType::u8, {2, 48, 64}).experts_error(true) ==
        "'m': tensor 'l.q_proj': has the shape [2, 48, 64], expected [3, 48, 64] for a weight of "
        "[3, 64, 96]");
  CHECK(nvfp4.experts_error(true, {3, 64, 88}) ==
        "'m': tensor 'l.q_proj': has the shape [3, 48, 64], expected groups of 16 columns for a "
        "weight of [3, 64, 88]");
}

TEST_CASE("weight_forms: scales that are no numbers, and groups that are not there, are refused") {
  Module module = gptq().add(".g_idx", DType::i32, {96});
  const StoredWeight weight = *module.find();
  std::vector<uint16_t> scales(3 * 64, f16_from_float(1));
  std::vector<int32_t> groups(96, 2);
  QuantisedMatrix matrix = weight.matrix;
  matrix.scales = scales.data();
  matrix.groups = groups.data();
  check_values(weight, matrix, "'m'");
  groups[95] = 3;
  CHECK(test::error_of([&] { check_values(weight, matrix, "'m'"); }) ==
        "'m': tensor 'l.q_proj.g_idx': element 95 is 3, expected a group from 0 to 2");
  groups[95] = -1;
  CHECK(test::error_of([&] { check_values(weight, matrix, "'m'"); }) ==
        "'m': tensor 'l.q_proj.g_idx': element 95 is -1, expected a group from 0 to 2");
  groups[95] = 0;
  scales[191] = 0x7E00;
  CHECK(test::error_of([&] { check_values(weight, matrix, "'m'"); }) ==
        "'m': tensor 'l.q_proj.scales': element 191 is nan, expected a finite scale");
}

TEST_CASE("weight_forms: of experts in one tensor every scale is looked at") {
  Module module;
  module.add("", DType::f8_e4m3, {3, 96, 64}).add("_scale", DType::f32, {3, 1, 64});
  const StoredWeight weight = *module.find_experts(true);
  std::vector<float> scales(3 * 64, 1.0f);
  QuantisedMatrix matrix = weight.matrix;
  matrix.scales = scales.data();
  check_values(weight, matrix, "'m'");
  scales.back() = 1e38f;
  CHECK(test::error_of([&] { check_values(weight, matrix, "'m'"); }) ==
        "'m': tensor 'l.q_proj_scale': element 191 makes a scale of 1e+38, which times the largest "
        "code, 448, is no finite number");
  scales.back() = std::numeric_limits<float>::quiet_NaN();
  CHECK(test::error_of([&] { check_values(weight, matrix, "'m'"); }) ==
        "'m': tensor 'l.q_proj_scale': element 191 is nan, expected a finite scale of 0 or more");
}

}  // namespace fp8kv
