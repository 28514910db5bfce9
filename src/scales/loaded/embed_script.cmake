# Writes OUT, a source with the text of IN as a function's result.
file(READ ${IN} text)
file(WRITE ${OUT} "#include \"scales/loaded/load_scales_script.h\"

namespace fp8kv {

std::string_view load_scales_script() {
  return R\"script(${text})script\";
}

}  // namespace fp8kv
")
