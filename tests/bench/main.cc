// kith_bench: what kith costs, beside what the machine can do. Each benchmark prints one table; the
// last line is for scripts.
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <string>

#include "tests/bench/exchange_bench.h"
#include "tests/bench/kernels_bench.h"
#include "tests/bench/trainer_bench.h"
#include "tests/bench/watch_bench.h"

namespace {

void add_exchange(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand(
      "exchange", "two processes average a model over loopback, beside a plain socket");
  auto options = std::make_shared<kith::bench::ExchangeBenchOptions>();  // shared with the callback
                                                                         // below, which outlives us
  command->add_option("--mib", options->mib, "MiB of parameters")
      ->check(CLI::Range(0.01, 4096.0))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "measured rounds")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_flag("--encrypt", options->encrypt, "with a cluster key");
  command
      ->add_option("--fragment-bytes", options->fragment_bytes, "unit of exchange, a multiple of 4")
      ->check(CLI::Range(std::size_t{4}, std::size_t{1} << 30))
      ->check(CLI::Validator(
          [](const std::string& text) {
            const bool fits = std::strtoull(text.c_str(), nullptr, 10) % 4 == 0;
            return fits ? std::string() : text + " is not a multiple of 4";
          },
          "multiple of 4"))
      ->capture_default_str();
  command->add_option("--chunk-bytes", options->chunk_bytes, "unit of transport")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20))
      ->capture_default_str();
  command->callback(
      [options, &exit_code] { exit_code = kith::bench::run_exchange_bench(*options); });
}

// A benchmark that reads its own flags: argv from its name on.
void add_other(CLI::App& app, const std::string& name, const std::string& summary,
               int (*run)(int, char**), int argc, char** argv, int& exit_code) {
  app.add_subcommand(name, summary)->prefix_command()->callback([=, &exit_code] {
    exit_code = run(argc - 1, argv + 1);
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What kith costs, beside what the machine can do.", "kith_bench");
  app.require_subcommand(1);
  int exit_code = 0;
  add_exchange(app, exit_code);
  add_other(app, "kernels", "delta and merge kernels beside memcpy",
            &kith::bench::run_kernels_bench, argc, argv, exit_code);
  add_other(app, "trainer", "a trainer's steps with and without averaging",
            &kith::bench::run_trainer_bench, argc, argv, exit_code);
  add_other(app, "watch", "what it costs a node to be watched", &kith::bench::run_watch_bench, argc,
            argv, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  return exit_code;
}
