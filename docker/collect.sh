#!/usr/bin/env bash
# collect.sh cpu|cuda BUILD PREFIX: puts the programs of the build folder BUILD, without debug information, and the libraries
# of LibTorch that they load into PREFIX, which may then be copied anywhere:
#
#   bin/kithd bin/kith  lib/libkith_torch.so  torch/lib  nvidia/*/lib  licenses
#
# For the CPU that is libtorch_cpu, libc10, libgomp and the two small CUDA libraries that PyPI's libtorch_cpu is linked to; for
# CUDA everything that was fetched, since much of it is loaded by name at run time.
set -euo pipefail
torch=$1
build=$2
prefix=$3
flags=()
[[ $torch == cuda ]] && flags=(--cuda)
site=$(scripts/fetch_torch.sh --where "${flags[@]}")

for program in kithd kith; do
  install -D -m 755 -s "$build/bin/$program" "$prefix/bin/$program"
done
install -D -m 644 -s "$build/lib/libkith_torch.so" "$prefix/lib/libkith_torch.so"

needed() {
  if [[ $torch == cuda ]]; then
    find "$site" -name '*.so*' -type f
  else
    ldd "$build/lib/libkith_torch.so" | awk '$3 ~ /^\// {print $3}' | xargs realpath | grep -F "$site/"
  fi
}
needed | while read -r library; do
  install -D -m 644 "$library" "$prefix/${library#"$(realpath "$site")/"}"
done
# Symbol names that only a debugger reads: a fifth of LibTorch. What NVIDIA made is left as it is.
strip --strip-unneeded "$prefix"/torch/lib/*.so*
(cd "$site" && find . -path '*.dist-info/licenses/*' -type f) | while read -r license; do
  install -D -m 644 "$site/$license" "$prefix/licenses/$license"
done
