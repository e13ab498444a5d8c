#!/bin/bash
# Runs every libFuzzer target with AddressSanitizer and UndefinedBehaviorSanitizer, one line each; exit 1 on a finding.
#   tests/fuzz/run.sh SECONDS    [BUILD_DIR]   about SECONDS in all, shared out among the targets
#   tests/fuzz/run.sh --runs N   [BUILD_DIR]   N runs per message; a tenth of them per file format, which are slower
# Configures and builds BUILD_DIR (default build/fuzz) with clang++ first. Inputs that are found interesting stay in
# BUILD_DIR/fuzz-corpus, findings in BUILD_DIR/fuzz-findings with the command that replays them.
# KITH_FUZZ_ONLY="propose chunk" runs only these.
set -euo pipefail
cd "$(dirname "$0")/../.."

usage() { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
is_number() { [[ $1 =~ ^[1-9][0-9]*$ ]]; }

seconds=0 runs=0
case "${1:-}" in
  --runs) is_number "${2:-}" || usage; runs=$2; shift 2 ;;
  *) is_number "${1:-}" || usage; seconds=$1; shift ;;
esac
build=${1:-build/fuzz}
jobs=$(nproc)

compiler=$(command -v clang++ || command -v clang++-14 || true)
if [[ -z $compiler ]]; then
  echo "fuzz: clang++ is missing; install clang-14 and libclang-rt-14-dev" >&2
  exit 1
fi
wanted=(fuzzers)
[[ -z ${KITH_FUZZ_ONLY:-} ]] || { read -ra wanted <<<"$KITH_FUZZ_ONLY"; wanted=("${wanted[@]/#/fuzz_}"); }
log=$build/fuzz-build.log
mkdir -p "$build"
if ! { cmake -S . -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DKITH_FUZZ=ON \
         -DKITH_SANITIZE=address -DKITH_TORCH=OFF && cmake --build "$build" --target "${wanted[@]}" -j "$jobs"; } >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "fuzz: the build failed, see $log" >&2
  exit 1
fi

targets=()
for program in "$build"/fuzzers/fuzz_*; do
  name=${program##*/fuzz_}
  [[ -x $program ]] || continue
  [[ -z ${KITH_FUZZ_ONLY:-} || " $KITH_FUZZ_ONLY " == *" $name "* ]] && targets+=("$name")
done
if [[ ${#targets[@]} -eq 0 ]]; then
  echo "fuzz: no target is named \"${KITH_FUZZ_ONLY:-}\"" >&2
  exit 2
fi

if [[ $seconds -gt 0 ]]; then
  each=$(((seconds * jobs + ${#targets[@]} - 1) / ${#targets[@]}))
  limit=-max_total_time=$each
else
  limit=-runs=$runs
fi

export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=0
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

# One target: prints its line; the exit status is that of the fuzzer.
run_target() {
  local name=$1 build=$2 limit=$3 status=0
  case $name in
    idx | npy | csv | safetensors) [[ $limit == -runs=* ]] && limit=-runs=$(((${limit#-runs=} + 9) / 10)) ;;
  esac
  local found=$build/fuzz-findings/$name corpus=$build/fuzz-corpus/$name seeds=tests/fuzz/corpus/$name
  mkdir -p "$found" "$corpus"
  [[ -d $seeds ]] || seeds=
  "$build/fuzzers/fuzz_$name" "$limit" -max_len=8192 -timeout=10 -malloc_limit_mb=64 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="$found/" "$corpus" ${seeds:+"$seeds"} >"$found/log" 2>&1 || status=$?
  local executed
  executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$found/log" | tail -n 1)
  if [[ $status -eq 0 ]]; then
    printf '%-14s runs=%-9s findings=0\n' "$name" "${executed:-0}"
  else
    local input
    input=$(sed -n 's/.*Test unit written to //p' "$found/log" | tail -n 1)
    printf '%-14s runs=%-9s findings=1  log: %s  replay: %s %s\n' "$name" "${executed:-0}" "$found/log" \
      "$build/fuzzers/fuzz_$name" "$input"
  fi
  return "$status"
}
export -f run_target

if printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I{} bash -c 'run_target "$@"' _ {} "$build" "$limit"; then
  echo "fuzz: ${#targets[@]} targets, no findings"
else
  echo "fuzz: findings above" >&2
  exit 1
fi
