#!/usr/bin/env bash
# Fetches the pinned LibTorch (scripts/torch.lock) into the user's cache and prints its folder as the last line.
#
#   scripts/fetch_torch.sh           CPU: headers, three libraries and two of CUDA's that libtorch_cpu links to, 0.5 GB
#   scripts/fetch_torch.sh --cuda    also libtorch_cuda and the CUDA libraries, 4 GB
#   scripts/fetch_torch.sh --where   prints the folder it would be in, fetches nothing; exit 1 when it is not there
#
# The wheel is only a container of headers and libraries: pip (from the user's own configuration) downloads it, Python
# unpacks it, and nothing of Python is needed afterwards. A folder appears complete or not at all: it is made under
# another name and renamed, under a lock. KITH_TORCH_ROOT, if set, is checked and printed instead.
set -euo pipefail
{  # Bash reads a block as a whole before running it: a pull that changes this file does not break a fetch under way.

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
say() { echo "fetch_torch: $*" >&2; }
die() { say "$*"; exit 1; }

sets=cpu
where=no
for argument in "$@"; do
  case $argument in
    --cuda) sets=cuda ;;
    --where) where=yes ;;
    *) say "unknown argument '$argument' (known: --cuda, --where)"; exit 2 ;;
  esac
done

if [[ -n ${KITH_TORCH_ROOT:-} ]]; then
  for root in "$KITH_TORCH_ROOT" "$KITH_TORCH_ROOT/torch"; do
    if [[ -f $root/lib/libtorch_cpu.so && -f $root/include/ATen/ATen.h ]]; then
      echo "$root"
      exit 0
    fi
  done
  die "KITH_TORCH_ROOT=$KITH_TORCH_ROOT holds no lib/libtorch_cpu.so with include/ATen/ATen.h"
fi

# The lines of the lock that count, "name version sha256", blanks squeezed: what the cache folder is named after.
lines=$(awk -v want="$sets" '$1 == "cpu" || ($1 == "cuda" && want == "cuda") {print $2, $3, $4}' "$scripts/torch.lock")
version=$(awk '$1 == "torch" {print $2}' <<< "$lines")
key=$(printf %s "$lines" | sha256sum | cut -c1-8)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kith
folder=$cache/torch-$version-$key

# Complete: every library still has the size that it had when it was unpacked.
complete() {
  [[ -f $1/complete ]] || return 1
  local size path
  while read -r size path; do
    [[ $(stat -c %s "$1/$path" 2> /dev/null) == "$size" ]] || return 1
  done < "$1/complete"
}

if complete "$folder"; then
  echo "$folder"
  exit 0
fi
if [[ $where == yes ]]; then
  echo "$folder"
  exit 1
fi

[[ $(uname -s)-$(uname -m) == Linux-x86_64 ]] ||
  die "the pinned LibTorch is for Linux on x86_64, this is $(uname -s) on $(uname -m): set KITH_TORCH_ROOT=<another LibTorch >= 2.6>"
python3 -m pip --version > /dev/null 2>&1 ||
  die "python3 with pip is missing: apt-get install python3-pip, or set KITH_TORCH_ROOT=<another LibTorch >= 2.6>"
mkdir -p "$cache" || die "cannot make the cache folder $cache: set XDG_CACHE_HOME or KITH_TORCH_ROOT"

exec 9> "$cache/fetch.lock"
if ! flock -n 9; then
  say "another fetch is running, waiting for it"
  flock 9
fi
if complete "$folder"; then
  echo "$folder"
  exit 0
fi

# What an interrupted fetch left is of no use (a wheel that is whole is kept: see below).
rm -rf "$cache"/unpacking-*
downloads=$cache/downloads
work=$cache/unpacking-$$
mkdir -p "$downloads" "$work"
trap 'rm -rf "$work"; rmdir "$downloads" 2> /dev/null || true' EXIT
trap 'exit 130' INT TERM

# Why pip failed, in a few words.
reason() {
  if grep -q 'No space left' "$1"; then
    echo "no space left in $cache"
  elif grep -q 'DO NOT MATCH THE HASHES' "$1"; then
    echo "what the registry sent does not have the hash in scripts/torch.lock"
  elif grep -q -E 'Retrying|Connection|timed out|resolution' "$1"; then
    echo "the package registry cannot be reached"
  else
    grep -m1 '^ERROR' "$1" || tail -n 1 "$1"
  fi
}

download() {
  local name=$1 wanted=$2 hash=$3 log=$work/pip.log
  echo "$name==$wanted --hash=sha256:$hash" > "$work/requirement.txt"
  if ! python3 -m pip download --no-deps --require-hashes --no-cache-dir --disable-pip-version-check --quiet \
      --retries 2 --timeout 60 --python-version 3.11 --implementation cp --abi cp311 --abi none --only-binary=:all: \
      --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_25_x86_64 \
      --platform manylinux_2_18_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
      --platform manylinux_2_12_x86_64 --platform manylinux2010_x86_64 --platform any \
      --dest "$work" -r "$work/requirement.txt" > "$log" 2>&1; then
    die "cannot download $name==$wanted ($(reason "$log")): check the network and pip's index, or set" \
      "KITH_TORCH_ROOT=<another LibTorch >= 2.6>"
  fi
  mv "$work"/*.whl "$downloads/$hash.whl"  # pip has checked the hash
}

count=$(wc -l <<< "$lines")
number=0
while read -r name wanted hash; do
  number=$((number + 1))
  wheel=$downloads/$hash.whl
  if ! [[ -f $wheel && $(sha256sum < "$wheel") == "$hash "* ]]; then  # whole, from an interrupted fetch?
    say "[$number/$count] downloading $name $wanted"
    download "$name" "$wanted" "$hash"
  fi
  say "[$number/$count] unpacking $name $wanted"
  python3 - "$wheel" "$work/site" "$sets" << 'PYTHON' || die "cannot unpack $wheel into $work (disk full?)"
import os, shutil, sys, zipfile

wheel, target, sets = sys.argv[1:]
cpu_libraries = ("libtorch_cpu.so", "libc10.so", "libgomp", "libgfortran")
cuda_libraries = cpu_libraries + ("libtorch_cuda", "libc10_cuda", "libtorch_nvshmem", "libcaffe2_nvrtc", "libtorch.so")
libraries = cuda_libraries if sets == "cuda" else cpu_libraries

def wanted(name):
    if name.startswith(("torch/include/", "torch/share/cmake/")):
        return True
    folder, _, file = name.rpartition("/")
    if folder == "torch/lib":
        return file.startswith(libraries)
    if not name.startswith("nvidia/"):
        return "license" in name.lower() and not name.startswith("torch/")
    if sets == "cuda":
        return folder.endswith("/lib") or "/include/" in name
    return file in ("libcudart.so.13", "libcupti.so.13")

with zipfile.ZipFile(wheel) as archive:
    for entry in archive.infolist():
        name = entry.filename
        if name.endswith("/") or not wanted(name):
            continue
        path = os.path.normpath(os.path.join(target, name))
        if not path.startswith(target + os.sep):
            sys.exit("a path in the wheel leaves its folder: " + name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with archive.open(entry) as source, open(path, "wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
PYTHON
done <<< "$lines"

[[ -f $work/site/torch/lib/libtorch_cpu.so ]] || die "the torch wheel held no libtorch_cpu.so"
(cd "$work/site" && find . -name '*.so*' -type f -printf '%s %P\n' | sort -k 2) > "$work/complete"
mv "$work/complete" "$work/site/complete"
sync -f "$work/site" 2> /dev/null || true
rm -rf "$folder"
mv "$work/site" "$folder"
rm -rf "$downloads"
say "LibTorch $version is in $folder ($(du -sh "$folder" | cut -f1))"
echo "$folder"
exit 0
}
