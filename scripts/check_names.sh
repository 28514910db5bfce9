#!/usr/bin/env bash
# Usage: scripts/check_names.sh [FOLDER...] | --self-test
# Fails if two files define a class with the same name in one namespace. The linker would silently
# use one of the two for both (the one-definition rule). Anonymous namespaces are allowed. In
# kernels, FP8KV_GPU is another namespace for each toolchain.
# Reads the sources of FOLDER (default: src, tools and kernels). Relies on the format of
# scripts/format.sh: the contents of a namespace begin at the start of a line.
set -euo pipefail
cd "$(dirname "$0")/.."
# One line for each definition: namespace::name, and the file.
definitions() {
  grep -rlE '^(template .*> )?(struct|class|union|enum) ' --include='*.h' --include='*.cpp' --include='*.cu' \
    --include='*.cuh' "$@" | sort | xargs awk '
    FNR == 1 { depth = 0 }
    /^(inline )?namespace .*\{$/ { sub(/^inline /, ""); name[++depth] = $2 == "{" ? "" : $2 "::"; next }
    /^\}  \/\/ namespace/ { --depth; next }
    /^(template .*> )?(struct|class|union|enum)( class)? / && !/^[^{]*;$/ {
      sub(/^template .*> /, "")
      sub(/^(struct|class|union|enum)( class)? +((alignas|__align__)\([^)]*\) +)?/, "")
      if (match($0, /^[A-Za-z_0-9:]+/) == 0) next
      own = substr($0, 1, RLENGTH)
      sub(/:+$/, "", own)
      if (substr($0, RLENGTH + 1) ~ /^</) next   # a specialisation has the name of its template
      within = ""
      for (i = 1; i <= depth; ++i) {
        if (name[i] == "" || name[i] == "FP8KV_GPU::" || name[i] ~ /::FP8KV_GPU::/) next
        within = within name[i]
      }
      print within own, FILENAME
    }'
}

clashes() {
  definitions "$@" | sort -u | awk '
    $1 == last { files = files ", " $2; ++n; next }
    { if (n > 1) print last ": defined in " files; last = $1; files = $2; n = 1 }
    END { if (n > 1) print last ": defined in " files }'
}

# self_check EXPECTED TEXT: checks the clashes of a file with TEXT beside a file that defines A.
self_check() {
  local found
  printf 'namespace n {\nclass A {\n};\nstruct D;\n}  // namespace n\n' >"$work/one.h"
  printf '%b' "$2" >"$work/two.cpp"
  found=$(clashes "$work" | cut -d: -f1-3)
  [[ $found == "$1" ]] && return
  echo "check_names: self-test: found '$found', expected '$1' in: $2"
  failed=1
}

if [[ ${1:-} == --self-test ]]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  failed=0
  self_check n::A 'namespace n {\nstruct A {\n};\n}  // namespace n\n'
  self_check n::A 'namespace n {\nstruct A final\n    : B {\n};\n}  // namespace n\n'
  self_check n::A 'namespace n {\nnamespace {\n}  // namespace\nenum class A { x };\n}  // namespace n\n'
  self_check n::A 'namespace n {\ntemplate <typename T>\nclass alignas(8) A {\n};\n}  // namespace n\n'
  self_check '' 'namespace n {\nnamespace {\nstruct A {\n};\n}  // namespace\n}  // namespace n\n'
  self_check '' 'namespace m {\nstruct A {\n};\n}  // namespace m\n'
  self_check '' 'namespace n {\nstruct A;\nstruct D {\n};\nstruct A::B {\n};\n}  // namespace n\n'
  self_check '' 'namespace n {\ntemplate <>\nstruct A<int> {\n};\n}  // namespace n\n'
  exit $failed
fi
[[ $# -gt 0 ]] || set -- src tools kernels
twice=$(clashes "$@")
[[ -z $twice ]] && exit 0
echo "$twice"
echo "two classes of one name: rename one, or put what one file needs alone into an anonymous namespace"
exit 1
