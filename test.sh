#!/usr/bin/env bash
# Tests kith on this machine: installs what is missing, builds, runs. The last line is CTest's verdict over everything
# that ran; the exit code is 0 only when all passed.
#
#   ./test.sh                 every default test: units, simulation, real sockets, whole clusters (under 15 minutes on 2 cores)
#   ./test.sh --quick         without clusters of processes
#   ./test.sh --full          everything: also long simulations and all faults, all sanitizers, a minute of fuzzing
#   ./test.sh --asan          what does not touch LibTorch, under the address and undefined behaviour sanitizers
#   ./test.sh --tsan          likewise under the thread sanitizer
#   ./test.sh --fuzz SECONDS  every fuzz target, about so long in all
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() { sed -n '5,10s/^# \{0,1\}//p' "$0"; }
mode=default
fuzz_seconds=60
case ${1:-} in
  "") ;;
  --quick | --full | --asan | --tsan) mode=${1#--} ;;
  --fuzz)
    mode=fuzz
    fuzz_seconds=${2:-}
    [[ $fuzz_seconds =~ ^[1-9][0-9]*$ ]] || { echo "test.sh: --fuzz needs a number of seconds, for example --fuzz 60" >&2; exit 2; }
    ;;
  -h | --help) usage; exit 0 ;;
  *) echo "test.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
esac

started=$SECONDS
passed=0
failed=0
stage_started=$SECONDS
say() { echo "test: $*"; }
# stage NAME: says how long the one before took.
stage() {
  [[ -z ${stage_name:-} ]] || say "$stage_name took $((SECONDS - stage_started)) s"
  stage_name=$1
  stage_started=$SECONDS
  [[ -z $1 ]] || say "$1"
}

jobs=$(scripts/jobs.sh)
mkdir -p build

# build PRESET [TARGET...]: everything when no target is named; the compiler's output only when it fails.
build() {
  local preset=$1 log=build/$1.log targets=()
  shift
  [[ $# == 0 ]] || targets=(--target "$@")
  stage "building ($preset)"
  if ! { cmake --preset "$preset" && cmake --build --preset "$preset" -j "$jobs" "${targets[@]}"; } > "$log" 2>&1; then
    grep -E -A 12 'FAILED|error:|CMake Error' "$log" | head -n 60 || tail -n 40 "$log"
    say "the $preset build failed: see $log"
    exit 1
  fi
}

# run PRESET CTEST-ARGUMENT...: adds what passed and failed to the totals.
launcher=()
places=$jobs
run() {
  local preset=$1 summary
  shift
  stage "running tests ($preset)"
  "${launcher[@]}" ctest --test-dir "build/$preset" -j "$places" --output-on-failure --no-tests=error "$@" | tee "build/$preset.tests.log" || true
  # What a test left out, and why: ctest itself counts it as passed.
  awk '/: Skipped$/ { getline reason; print "test: skipped: " reason }' "build/$preset/Testing/Temporary/LastTest.log" |
    sort | uniq -c | sed 's/^ *\([0-9]*\) \(test: skipped: \)/\2\1 x /' || true
  summary=$(grep -E '% tests passed, [0-9]+ tests? failed out of [0-9]+' "build/$preset.tests.log" || true)
  if [[ $summary =~ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+) ]]; then
    failed=$((failed + BASH_REMATCH[1]))
    passed=$((passed + BASH_REMATCH[2] - BASH_REMATCH[1]))
  else
    say "no test ran in build/$preset"
    failed=$((failed + 1))
  fi
}

# Most of what is long waits for clusters: two places per core, of which a test that keeps one busy takes both.
run_release() {
  build release
  places=$((2 * jobs))
  run release "$@"
  places=$jobs
}

# The sanitizers make everything several times slower: clusters and what measures time stay out.
run_asan() {
  build asan
  ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1 \
    run asan -LE 'e2e|bench|timing|full'
}
run_tsan() {
  build tsan
  # Without address randomisation: GCC 12's runtime does not know all memory layouts of newer kernels.
  if setarch "$(uname -m)" -R true 2> /dev/null; then launcher=(setarch "$(uname -m)" -R); fi
  TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1 suppressions=$PWD/tests/tsan.supp" \
    run tsan -LE 'e2e|bench|timing|full'
  launcher=()
}

# About so many seconds in all, shared out among the targets; each is one test.
run_fuzz() {
  stage "fuzzing"
  tests/fuzz/run.sh "$1" build/fuzz 2>&1 | tee build/fuzz.tests.log || true
  local clean found
  clean=$(grep -c ' findings=0' build/fuzz.tests.log || true)
  found=$(grep -c ' findings=[1-9]' build/fuzz.tests.log || true)
  passed=$((passed + clean))
  failed=$((failed + found))
  grep -q '^fuzz: .* no findings$' build/fuzz.tests.log || [[ $found -gt 0 ]] || failed=$((failed + 1))
}

# The same seed must give the same event hash whoever compiled the simulator.
run_clang() {
  build clang kith
  stage "comparing the simulator's hashes (g++, clang++)"
  local seed gcc clang
  for seed in 1 2 3; do
    gcc=$(build/release/bin/kith simulate --nodes 64 --seconds 20 --seed "$seed" --loss 0.1 | tail -n 1)
    clang=$(build/clang/bin/kith simulate --nodes 64 --seconds 20 --seed "$seed" --loss 0.1 | tail -n 1)
    if [[ -n $gcc && $gcc == "$clang" ]]; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      say "seed $seed differs FAILED: g++ '$gcc', clang++ '$clang'"
    fi
  done
}

stage "set-up"
case $mode in
  asan | tsan | fuzz) scripts/setup.sh --test --no-torch ;;
  full) scripts/setup.sh --test --containers ;;
  *) scripts/setup.sh --test ;;
esac

case $mode in
  default) run_release -LE full ;;
  quick) run_release -LE 'e2e|full' ;;
  asan) run_asan ;;
  tsan) run_tsan ;;
  fuzz) run_fuzz "$fuzz_seconds" ;;
  full)
    run_release
    run_clang
    run_asan
    run_tsan
    run_fuzz "$fuzz_seconds"
    ;;
esac

stage ""
total=$((passed + failed))
say "everything took $((SECONDS - started)) s"
echo "$((total == 0 ? 0 : passed * 100 / total))% tests passed, $failed tests failed out of $total"
[[ $failed == 0 && $total -gt 0 ]]
