// kith_bench watch: what it costs a node to be watched. Times requests of /metrics, /members,
// /status and / as a scraper or a page makes them, and says what share of a core a scrape every
// five seconds and a page that asks every two would take.
#pragma once

namespace kith::bench {

// [--members 200] [--requests 200]: a server in this process, over a node with so many members.
// --at HOST:PORT: a running node instead (its own process_cpu_seconds_total counts).
// A table on stdout, last line `metrics_ms=`; exit code.
int run_watch_bench(int argc, char** argv);

}  // namespace kith::bench
