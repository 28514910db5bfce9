# Writes OUT, a source with the text of the files PARTS in FOLDER, one after the other, as a
# function's result. PARTS has commas between names.
string(REPLACE "," ";" PARTS "${PARTS}")
set(text "")
foreach(part IN LISTS PARTS)
  file(READ ${FOLDER}/${part}.py more)
  string(APPEND text "${more}\n\n")
endforeach()
string(STRIP "${text}" text)
file(WRITE ${OUT} "#include \"scales/loaded/load_scales_script.h\"

namespace fp8kv {

std::string_view load_scales_script() {
  return R\"script(${text}
)script\";
}

}  // namespace fp8kv
")
