#include "kernels_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compute/kernels.h"
#include "compute/linear_model.h"
#include "compute/replica.h"

namespace kith::bench {
namespace {

using compute::Replica;

struct Options {
  std::size_t mib = 44, fragment_mib = 4, rounds = 15;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    const long value = i + 1 < argc ? std::atol(argv[i + 1]) : 0;
    std::size_t* target = flag == "--mib"            ? &options.mib
                          : flag == "--fragment-mib" ? &options.fragment_mib
                          : flag == "--rounds"       ? &options.rounds
                                                     : nullptr;
    if (!target || value < 1) {
      std::fprintf(stderr, "usage: kernels [--mib N] [--fragment-mib N] [--rounds N]\n");
      return false;
    }
    *target = static_cast<std::size_t>(value);
  }
  return true;
}

// The model, its replica and two buffers per fragment, all larger than the caches together.
struct Stage {
  explicit Stage(const Options& options)
      : values(options.mib << 18),
        model(make_model(values)),
        replica(model->schema().value_count, options.fragment_mib << 20) {
    replica.reset(*model);
    for (FragmentIndex f = 0; f < replica.fragment_count(); ++f) {
      const std::size_t bytes = Replica::encoded_bytes(replica.range(f).count, CodecId::kFp32);
      in.push_back(std::make_shared<std::vector<std::byte>>(bytes));
      out.push_back(std::make_shared<std::vector<std::byte>>(bytes));
      (void)replica.snapshot(f, CodecId::kFp32, *in.back());
    }
  }

  static std::unique_ptr<compute::Model> make_model(std::size_t values) {
    compute::ModelSpec spec;
    spec.kind = "linear";
    spec.classes = 2;
    spec.input_shape = {static_cast<std::int64_t>(values / 2 - 1)};
    return std::move(*compute::LinearModel::make(spec, {}));
  }

  // As from the network: 1 MiB pieces.
  [[nodiscard]] Payload payload(FragmentIndex f, CodecId codec) const {
    const std::size_t bytes = Replica::encoded_bytes(replica.range(f).count, codec),
                      chunk = std::size_t{1} << 20;
    Payload result;
    for (std::size_t at = 0; at < bytes; at += chunk) {
      result.pieces.emplace_back(
          in[f], std::span<const std::byte>(*in[f]).subspan(at, std::min(chunk, bytes - at)));
    }
    return result;
  }
  [[nodiscard]] std::span<std::byte> room(FragmentIndex f, CodecId codec) const {
    return std::span(*out[f]).first(Replica::encoded_bytes(replica.range(f).count, codec));
  }

  std::size_t values;
  std::unique_ptr<compute::Model> model;
  Replica replica;
  std::vector<std::shared_ptr<std::vector<std::byte>>> in, out;
};

struct Row {
  std::string name;
  std::function<void()> prepare;            // not timed
  std::function<void(FragmentIndex)> pass;  // timed, over every fragment
  std::vector<double> seconds;              // of a whole pass, per round
};

void encode_inputs(Stage& stage, CodecId codec) {
  for (FragmentIndex f = 0; f < stage.replica.fragment_count(); ++f) {
    (void)stage.replica.snapshot(
        f, codec,
        std::span(*stage.in[f]).first(Replica::encoded_bytes(stage.replica.range(f).count, codec)));
  }
}

std::vector<Row> rows(Stage& s) {
  const auto clear = [&s] { s.replica.reset(*s.model); };
  const auto fill_pending = [&s, clear](CodecId codec) {
    clear();
    encode_inputs(s, codec);
    for (FragmentIndex f = 0; f < s.replica.fragment_count(); ++f)
      (void)s.replica.apply(f, s.payload(f, codec), codec);
  };
  std::vector<Row> all;
  all.push_back(
      {"memcpy",
       [] {},
       [&s](FragmentIndex f) { std::memcpy(s.out[f]->data(), s.in[f]->data(), s.in[f]->size()); },
       {}});
  for (const CodecId codec : {CodecId::kFp32, CodecId::kBf16}) {
    const std::string suffix = codec == CodecId::kFp32 ? " fp32" : " bf16";
    const auto fresh = [&s, clear, codec] {
      clear();
      encode_inputs(s, codec);
    };
    all.push_back(
        {"snapshot" + suffix,
         fresh,
         [&s, codec](FragmentIndex f) { (void)s.replica.snapshot(f, codec, s.room(f, codec)); },
         {}});
    const auto commit = [&s, codec](FragmentIndex f) {
      (void)s.replica.commit(f, s.payload(f, codec), codec, 0.5, s.room(f, codec));
    };
    all.push_back({"commit, D empty" + suffix, fresh, commit, {}});
    all.push_back(
        {"commit, D pending" + suffix, [fill_pending, codec] { fill_pending(codec); }, commit, {}});
    const auto apply = [&s, codec](FragmentIndex f) {
      (void)s.replica.apply(f, s.payload(f, codec), codec);
    };
    all.push_back({"apply, D empty" + suffix, fresh, apply, {}});
    all.push_back(
        {"apply, D pending" + suffix, [fill_pending, codec] { fill_pending(codec); }, apply, {}});
  }
  const auto whole = [&s](FragmentIndex f) {
    if (f == 0) s.replica.safe_point(*s.model, false);
  };
  all.push_back({"merge and publish", [fill_pending] { fill_pending(CodecId::kFp32); }, whole, {}});
  all.push_back({"publish only",
                 [fresh =
                      [&s, clear] {
                        clear();
                        encode_inputs(s, CodecId::kFp32);
                      }] { fresh(); },
                 whole,
                 {}});
  return all;
}

double timed(Stage& stage, const Row& row) {
  row.prepare();
  const auto start = std::chrono::steady_clock::now();
  for (FragmentIndex f = 0; f < stage.replica.fragment_count(); ++f) row.pass(f);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void run_level(Stage& stage, const Options& options, std::string_view level) {
  compute::force_kernel_level(level);
  auto all = rows(stage);
  for (std::size_t round = 0; round <= options.rounds;
       ++round) {  // interleaved; the first round warms up
    for (Row& row : all) {
      const double seconds = timed(stage, row);
      if (round > 0) row.seconds.push_back(seconds);
    }
  }
  const double copy = median(all[0].seconds);
  std::printf("level %.*s, %zu MiB in fragments of %zu MiB, medians of %zu rounds\n",
              static_cast<int>(level.size()), level.data(), options.mib, options.fragment_mib,
              options.rounds);
  std::printf("  %-26s %12s %14s %10s\n", "pass", "ms/fragment", "GiB/s (values)", "memcpys");
  for (const Row& row : all) {
    const double seconds = median(row.seconds);
    std::printf("  %-26s %12.3f %14.2f %10.2f\n", row.name.c_str(),
                1e3 * seconds / stage.replica.fragment_count(),
                static_cast<double>(options.mib) / 1024 / seconds, seconds / copy);
  }
}

}  // namespace

int run_kernels_bench(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) return 2;
  Stage stage(options);
  for (const auto level : compute::kernel_levels()) run_level(stage, options, level);
  compute::force_kernel_level("");
  return 0;
}

}  // namespace kith::bench
