#!/usr/bin/env bash
# From nothing to an averaged model: installs what is missing, builds, trains local nodes on the digits in data/mnist and
# shows them live. Everything it writes is below build/.
#
#   ./demo.sh                 four nodes, each with only some of the digits
#   ./demo.sh --build-only    stops after the build
#   ./demo.sh --nodes N       so many nodes (1 to 32)
#   ./demo.sh --method NAME   another training method (build/release/bin/kith methods lists them)
#   ./demo.sh --epochs E      goes so many times through the digits instead of six
#   ./demo.sh --seconds S     trains for so long instead of some epochs
#   ./demo.sh --folder F      writes the run there instead of into build/demo: several demos at once
#   ./demo.sh --programs B    takes kithd and kith from the folder B: installs and builds nothing
#   ./demo.sh --check         writes the configuration, lets kithd check it, and stops
set -euo pipefail
called_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() { sed -n '5,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]##*/}"; }
refuse() { echo "demo.sh: $*" >&2; usage >&2; exit 2; }
say() { echo "demo: $*"; }

build_only=no
check_only=no
nodes=4
method=ad-psgd
epochs=6
seconds=0
folder=
programs=
while [[ $# -gt 0 ]]; do
  case $1 in
    --build-only) build_only=yes ;;
    --check) check_only=yes ;;
    --nodes | --method | --epochs | --seconds | --folder | --programs)
      [[ $# -ge 2 ]] || refuse "$1 needs a value"
      declare "${1#--}=$2"
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) refuse "unknown option '$1'" ;;
  esac
  shift
done
[[ $nodes =~ ^[1-9][0-9]?$ && $nodes -le 32 ]] || refuse "--nodes takes a number from 1 to 32, not '$nodes'"
[[ $epochs =~ ^[1-9][0-9]{0,5}$ ]] || refuse "--epochs takes a number from 1, not '$epochs'"
[[ $seconds =~ ^(0|[1-9][0-9]{0,5})$ ]] || refuse "--seconds takes a number of seconds, not '$seconds'"
((seconds == 0)) || epochs=0
bin=build/release/bin
run=build/demo
# As meant where the script was called.
path() { (cd "$called_from" && realpath -m -- "$1"); }
[[ -z $folder ]] || run=$(path "$folder")
[[ -z $programs ]] || bin=$(path "$programs")
[[ -z $programs || -x $bin/kithd && -x $bin/kith ]] || refuse "--programs: kithd and kith are not in $bin"
# A demo empties its folder: never one that holds something, but not what only a demo puts there.
mark=.kith-demo
if [[ -n $folder && -e $run && ! -f $run/$mark && (! -d $run || -n $(ls -A "$run")) ]]; then
  refuse "--folder: $run holds something else than a demo"
fi

# ---- set-up and build -------------------------------------------------------------------------------------------------
build() {
  scripts/setup.sh
  mkdir -p build
  say "building into build/release (a few minutes the first time)"
  if ! { cmake --preset release && cmake --build --preset release -j "$(scripts/jobs.sh)" --target kith_programs; } \
      > build/release.log 2>&1; then
    grep -m 20 -E -A 6 'FAILED|error:|CMake Error' build/release.log || tail -n 30 build/release.log
    say "the build failed: see build/release.log"
    exit 1
  fi
  say "built: $bin/kithd, $bin/kith"
}
[[ -n $programs ]] || build
[[ $build_only == no ]] || exit 0

# ---- the run ----------------------------------------------------------------------------------------------------------
pids=()

# Ends what this script started, in order first.
stop_nodes() {
  local pid tries
  for pid in "${pids[@]}"; do kill -TERM "$pid" 2> /dev/null || true; done
  for ((tries = 0; tries < 100; ++tries)); do
    [[ -n $(jobs -pr) ]] || break
    sleep 0.1
  done
  for pid in $(jobs -pr); do kill -KILL "$pid" 2> /dev/null || true; done
}
# However this script ends, its nodes end first. One trap for all: bash 5.2 loses a trap of a signal that comes while it reads
# a $(...), and says "unexpected EOF" instead.
at_exit() {
  [[ -n $(jobs -pr) ]] || return 0
  trap '' INT TERM HUP # a second Ctrl-C does not cut this short
  stop_nodes
  echo
  say "stopped; logs are in $run"
}
trap at_exit EXIT

mkdir -p "$run"
exec 9>> "$run/$mark"
flock -n 9 || { say "another demo runs here ($run is its folder): end that one first"; exit 1; }
find "$run" -mindepth 1 -maxdepth 1 ! -name "$mark" -exec rm -rf {} +
# Few nodes get only some of the digits each, which shows what averaging does; many share them evenly.
shard_by=index
((nodes >= 2 && nodes <= 5)) && shard_by=label
cat > "$run/run.toml" << TOML
[cluster]
name = "demo"
preset = "local"
[run]
id = "digits-demo"
seed = 7
epochs = $epochs
start_members = $nodes
[model]
kind = "cnn"
channels = [16, 32]
hidden = [64]
[data]
format = "idx"
train = ["$PWD/data/mnist/train-images-idx3-ubyte.gz", "$PWD/data/mnist/train-labels-idx1-ubyte.gz"]
test = ["$PWD/data/mnist/t10k-images-idx3-ubyte.gz", "$PWD/data/mnist/t10k-labels-idx1-ubyte.gz"]
shard_by = "$shard_by"
[train]
optimizer = "sgd"
learning_rate = 0.05
min_step_ms = 15
momentum = 0.9
batch_size = 32
[method]
name = "$method"
TOML

# The value of a top-level key in JSON, without quotes; nothing if it is absent or null.
field() {
  local pattern="\"$2\": *\"?([^\",}"$'\n'"]*)"
  if [[ $1 =~ $pattern && ${BASH_REMATCH[1]} != null ]]; then echo "${BASH_REMATCH[1]}"; fi
}
# A number in a printf format; "-" if it is not known.
number() { if [[ -n $2 ]]; then LC_ALL=C printf "$1" "$2"; else echo -; fi; }
status_of() { "$bin/kith" status --at "${http[$1]}" -o json 2> /dev/null || true; }

# kithd in the background, with a name, a folder, which part of the digits, and further arguments. In a session of its own,
# so that Ctrl-C reaches it through this script only: a second signal would cut its leave short; and told to leave when this
# script is killed.
run_node() {
  local name=$1 folder=$2 part=$3
  shift 3
  setsid setpriv --pdeathsig TERM "$bin/kithd" -c "$run/run.toml" --name "$name" --listen 127.0.0.1:0 --http 127.0.0.1:0 \
    --data-dir "$folder" --set "data.shard=$part/$nodes" "$@" < /dev/null 9>&- &
  pids+=($!)
}

# Starts node $1 with further arguments and reads its addresses from its first line.
address=()
http=()
start_node() {
  local k=$1 line tries folder=$run/n$1
  shift
  mkdir -p "$folder"
  run_node "n$k" "$folder" "$k" "$@" > "$folder/out" 2> "$folder/log"
  for ((tries = 0; tries < 600; ++tries)); do
    line=$(head -n 1 "$folder/out" 2> /dev/null || true)
    [[ $line == *http=* ]] && break
    if ! kill -0 "${pids[-1]}" 2> /dev/null; then
      tail -n 3 "$folder/log"
      say "node n$k did not start: see $folder/log"
      exit 1
    fi
    sleep 0.1
  done
  address[k]=$(sed -n 's/.* address=\([^ ]*\).*/\1/p' <<< "$line")
  http[k]=$(sed -n 's/.* http=\([^ ]*\).*/\1/p' <<< "$line")
}

if ! "$bin/kithd" -c "$run/run.toml" --data-dir "$run/n1" --set "data.shard=1/$nodes" --check > "$run/check" 2>&1; then
  cat "$run/check"
  exit 2
fi
if [[ $check_only == yes ]]; then
  say "kithd accepts $run/run.toml"
  exit 0
fi
say "$nodes nodes, method $method, every node has $([[ $shard_by == label ]] && echo "only some of the digits" || echo "1/$nodes of the digits")"
for ((k = 1; k <= nodes; ++k)); do
  if ((k == 1)); then start_node 1; else start_node "$k" --join "${address[1]}"; fi
  say "n$k  status page http://${http[k]}/  metrics http://${http[k]}/metrics"
done

say "in another terminal: $bin/kith top --at $run/n1 (h shows its keys)"

# ---- live table ---------------------------------------------------------------------------------------------------
started=$SECONDS
last_epoch=-1
declare -A last_status accuracy
outcome=""
drawn=no
tty=no
[[ -t 1 ]] && tty=yes

print_table() {
  local k s
  printf '%-5s %-10s %6s %7s %8s %9s %8s %10s %9s\n' NODE STATE EPOCH STEP LOSS ACCURACY STEPS/S EXCHANGES DISTANCE
  for ((k = 1; k <= nodes; ++k)); do
    s=${last_status[$k]:-}
    printf '%-5s %-10s %6s %7s %8s %9s %8s %10s %9s\n' "n$k" "${outcome:-$(field "$s" state)}" \
      "$(number %.2f "$(field "$s" epoch)")" "$(number %d "$(field "$s" step)")" "$(number %.4f "$(field "$s" loss)")" \
      "$(number %.3f "${accuracy[$k]:-$(field "$s" accuracy)}")" "$(number %.1f "$(field "$s" steps_per_second)")" \
      "$(number %d "$(field "$s" exchanges_total)")" "$(number %.1e "$(field "$s" consensus_distance)")"
  done
}

# The table again over the one drawn before; on a terminal only.
redraw() {
  [[ $drawn == no ]] || printf '\033[%dA' $((nodes + 1))
  print_table | sed 's/$/\x1b[K/'
  drawn=yes
}

look() {
  local k s
  for ((k = 1; k <= nodes; ++k)); do
    s=$(status_of "$k")
    [[ -z $s ]] || last_status[$k]=$s
  done
}

while [[ -n $(jobs -pr) ]]; do
  look
  s=${last_status[1]:-}
  epoch=$(field "$s" epoch)
  if [[ $tty == yes ]]; then
    redraw
  elif [[ -n $epoch && ${epoch%.*} != "$last_epoch" ]]; then
    last_epoch=${epoch%.*}
    say "epoch $last_epoch: n1 at step $(field "$s" step), loss $(number %.4f "$(field "$s" loss)")," \
      "accuracy $(number %.3f "$(field "$s" accuracy)"), $(field "$s" exchanges_total) exchanges"
  fi
  ((seconds == 0 || SECONDS - started < seconds)) || break
  sleep 1
done

# ---- what came of it --------------------------------------------------------------------------------------------------
if ((seconds > 0)) && [[ -n $(jobs -pr) ]]; then
  say "time is up: exporting the model and leaving"
  drawn=no  # what is said now stands below the table
  "$bin/kith" checkpoint export --averaged -o "$run/model.safetensors" --at "$run/n1"
  stop_nodes
fi
failed=no
for ((k = 1; k <= nodes; ++k)); do
  code=0
  wait "${pids[k - 1]}" || code=$?
  if [[ $code != 0 ]]; then
    tail -n 3 "$run/n$k/log"
    say "n$k ended with exit code $code: see $run/n$k/log"
    failed=yes
  fi
done
pids=()
[[ $failed == no ]] || exit 1

percent() { LC_ALL=C awk -v a="$1" 'BEGIN {if (a == "") print "not known yet"; else printf "%.1f %%", 100 * a}'; }
accuracy_in() { field "$("$bin/kith" checkpoint show "$1" -o json 2> /dev/null || true)" accuracy; }
if ((seconds == 0)); then
  outcome=complete
  for ((k = 1; k <= nodes; ++k)); do accuracy[$k]=$(accuracy_in "$run/n$k/model.safetensors"); done
fi
if [[ $tty == yes ]]; then redraw; else print_table; fi
echo
model=$run/n1/model.safetensors
if ((seconds > 0)); then
  model=$run/model.safetensors
  say "accuracy on the test digits when time was up: $(percent "$(field "${last_status[1]}" accuracy)")"
else
  same=yes
  for ((k = 2; k <= nodes; ++k)); do cmp -s "$model" "$run/n$k/model.safetensors" || same=no; done
  if [[ $same == yes ]]; then
    say "the averaged model gets $(percent "${accuracy[1]}") of the 1,000 test digits right; all $nodes files are the same bytes"
  else
    for ((k = 1; k <= nodes; ++k)); do
      say "n$k gets $(percent "${accuracy[$k]}") of the 1,000 test digits right"
    done
  fi
  steps=$(field "${last_status[1]}" step)
  if ((nodes > 1)) && [[ $same == yes && -n $steps && $steps -gt 0 ]]; then
    say "for comparison, n1's share of the data alone for as many steps ..."
    run_node alone "$run/alone" 1 --standalone --set run.start_members=1 --set run.epochs=0 --set "run.steps=$steps" \
      > "$run/alone.out" 2> "$run/alone.log"
    wait "${pids[0]}" || { tail -n 3 "$run/alone.log"; exit 1; }
    pids=()
    alone=$(accuracy_in "$run/alone/model.safetensors")
    say "n1 alone gets $(percent "$alone") right"
  fi
fi
cat << NEXT

Try next:
  $bin/kith checkpoint show $model
  $bin/kith methods
  $bin/kith simulate --nodes 1000 --seconds 10 --seed 1 --loss 0.1
  $bin/kithd -c $run/run.toml --name me --standalone --data-dir $run/me --set run.start_members=1 --set run.epochs=0 --set data.shard=all
      and meanwhile: $bin/kith members --at $run/me
NEXT
