#include "node/setup/dry_run.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "compute/data.h"
#include "gossip/method.h"
#include "node/setup/run_setup.h"
#include "node/text/text.h"

namespace kith::node {
namespace {

constexpr double kLinkBytesPerSecond = 1e9 / 8;  // what the share is said of
constexpr int kWarmUpSteps = 2;
constexpr double kTrySeconds = 0.5;
constexpr int kTrySteps = 50;

std::string counted(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.0f", value);
  return text;
}

std::string line(const std::string& name, const std::string& text) {
  std::string padded = name;
  padded.resize(10, ' ');
  return padded + text + "\n";
}

// Steps a second of this machine on this data, as min_step_ms leaves them.
double measured_speed(const Config& config, const compute::LoadedData& data,
                      compute::Model& model) {
  using Clock = std::chrono::steady_clock;
  compute::BatchCursor cursor(data.train, config.train.batch_size, config.run.seed);
  for (int i = 0; i < kWarmUpSteps; ++i) model.step(cursor.next(), config.train.learning_rate);
  const auto began = Clock::now();
  int steps = 0;
  double seconds = 0;
  while (steps < kTrySteps && seconds < kTrySeconds) {
    model.step(cursor.next(), config.train.learning_rate);
    ++steps;
    seconds = std::chrono::duration<double>(Clock::now() - began).count();
  }
  return 1.0 / std::max(seconds / steps, config.train.min_step_ms / 1e3);
}

double bytes_per_value(const gossip::Composition& composition) {
  for (const auto& codec : gossip::codecs())
    if (codec.id == composition.codec) return codec.bytes_per_value;
  return 4.0;
}

std::string network_lines(const gossip::Composition& composition, std::size_t values,
                          std::size_t fragment_bytes, double speed) {
  const bool averages =
      composition.what != gossip::What::kNothing && composition.when != gossip::When::kNever;
  if (!averages) return line("exchange", "none: this method does not average");
  const double payload = static_cast<double>(values) * bytes_per_value(composition);
  const double every = composition.when == gossip::When::kEverySteps
                           ? static_cast<double>(composition.every_steps)
                           : 1.0;
  const double rate = averaging_bytes_per_second(payload, speed, every);
  const auto fragments = (values * 4 + fragment_bytes - 1) / fragment_bytes;
  char share[64];
  std::snprintf(share, sizeof share, "%.2g %% of a link of 1 Gbit/s",
                100 * rate / kLinkBytesPerSecond);
  return line("exchange",
              bytes_text(payload) + " each way for one averaging of the whole model, in " +
                  std::to_string(fragments) + (fragments == 1 ? " fragment" : " fragments")) +
         line("network", "at most " + bytes_text(rate) + "/s each way (" + share + ")" +
                             (rate > kLinkBytesPerSecond / 2
                                  ? "; a slower link means rarer averagings, never slower steps"
                                  : ""));
}

}  // namespace

double averaging_bytes_per_second(double payload_bytes, double steps_per_second,
                                  double every_steps) {
  return 2.0 * payload_bytes * steps_per_second / every_steps;
}

Result<std::string> dry_run_report(const Config& config) {
  KITH_ASSIGN(const auto composition,
              gossip::compose(config.method.name, method_overrides(config)));
  KITH_ASSIGN(const auto data, compute::load_data(data_spec(config)));
  KITH_ASSIGN(const auto model,
              compute::make_model(model_spec(config, data), optimizer_spec(config)));
  const auto& schema = model->schema();
  const double speed = measured_speed(config, data, *model);
  double parameters = 0;
  for (const auto& tensor : schema.tensors)
    if (tensor.kind == compute::TensorKind::kParameter)
      parameters += static_cast<double>(tensor.count);
  const double model_bytes = 4.0 * static_cast<double>(schema.value_count);
  const double moments = static_cast<double>(model->optimizer_state().size());
  // Values and gradients in the model; published copy, deltas that wait and a proposal in the
  // replica.
  const double copies = 5.0 * model_bytes + moments;
  const double data_bytes =
      4.0 * static_cast<double>(data.train.inputs.size() + data.test.inputs.size());
  char pace[64];
  std::snprintf(pace, sizeof pace, "%.1f steps/s on %s", speed,
                std::string(model->device()).c_str());
  return line("model", config.model.kind + ", " + counted(parameters) + " parameters, " +
                           bytes_text(model_bytes) + ", schema " +
                           schema.hash(config.exchange.fragment_bytes).hex().substr(0, 12)) +
         line("data", std::to_string(data.train.labels.size()) + " of " +
                          std::to_string(data.whole_count) + " samples here, " +
                          std::to_string(data.classes) + " classes, batches of " +
                          std::to_string(config.train.batch_size)) +
         line("memory", "about " + bytes_text(copies) +
                            " for the model, its moments and averaging, " + bytes_text(data_bytes) +
                            " for data") +
         line("speed", std::string(pace) + ", as a few steps here tell") +
         network_lines(composition, schema.value_count, config.exchange.fragment_bytes, speed) +
         line("started", "nothing: this was a dry run");
}

}  // namespace kith::node
