#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "quant/weight_forms.h"
#include "support/expect_error.h"

namespace fp8kv {
namespace {

const std::string kModule = "l.q_proj";

// The tensors of one module, by what stands behind its name.
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
  std::optional<StoredWeight> find(const Shape& shape = {64, 96}) const {
    return find_stored_weight(
        kModule, shape, settings,
        [&](const std::string& name) -> const TensorEntry* {
          const auto at = tensors.find(name);
          return at == tensors.end() ? nullptr : &at->second;
        },
        "'m'");
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
  // As bitsandbytes has 4 bits.
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

TEST_CASE("weight_forms: MXFP4 of all experts in one tensor, as gpt-oss has it") {
  const Shape experts{3, 64, 96};
  const Module module =
      Module().add("_blocks", DType::u8, {3, 64, 3, 16}).add("_scales", DType::u8, {3, 64, 3});
  const auto error = [&](const Module& changed, const Shape& shape) {
    return test::error_of([&] { static_cast<void>(changed.find(shape)); });
  };
  const StoredWeight weight = *module.find(experts);
  CHECK(form_text(weight) == "mxfp4, a scale for each 32 columns of a row");
  CHECK(weight.matrix.rows == 3 * 64);
  CHECK(weight.matrix.columns == 96);
  CHECK(weight.matrix.row_step == 3);
  CHECK_FALSE(module.find({64, 96}));
  CHECK(error(module.without("_scales"), experts) ==
        "'m': tensor 'l.q_proj_blocks': is U8, and there is no 'l.q_proj_scales' beside it");
  CHECK(error(Module(module).add("_scales", DType::f16, {3, 64, 3}), experts) ==
        "'m': tensor 'l.q_proj_scales': is F16, expected F8_E8M0");
  CHECK(error(Module(module).add("_scales", DType::u8, {3, 64, 2}), experts) ==
        "'m': tensor 'l.q_proj_scales': has the shape [3, 64, 2], expected [3, 64, 3] for a weight "
        "of [3, 64, 96]");
  CHECK(error(Module(module).add("_blocks", DType::i8, {3, 64, 3, 16}), experts) ==
        "'m': tensor 'l.q_proj_blocks': is I8, expected U8");
  CHECK(
      error(module, {3, 64, 95}) ==
      "'m': tensor 'l.q_proj_blocks': has the shape [3, 64, 3, 16], expected groups of 32 columns "
      "for a weight of [3, 64, 95]");
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

}  // namespace fp8kv
