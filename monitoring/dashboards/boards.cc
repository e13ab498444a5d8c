// What the boards show. One question a board: is it learning (Overview), what does this node do
// (Node), how do they average (Exchanges), who sees whom (Topology), what does it cost (Hardware).
#include "monitoring/dashboards/board.h"

namespace kith::boards {
namespace {

using std::string;

string maximum(const string& expression) { return "max(" + named(expression) + ")"; }
string mean(const string& expression) { return "avg(" + named(expression) + ")"; }
string total(const string& expression) { return "sum(" + named(expression) + ")"; }
string total_by(const string& label, const string& expression) {
  return "sum by (" + label + ") (" + named(expression) + ")";
}
string highest_by(const string& label, const string& expression) {
  return "max by (" + label + ") (" + named(expression) + ")";
}

// A quantile of a histogram, per node or (label empty) over all.
string quantile(const string& q, const string& histogram, const string& by = "") {
  return "histogram_quantile(" + q + ", sum by (le" + (by.empty() ? "" : ", " + by) + ") (" +
         named(rate(histogram + "_bucket")) + "))";
}

string age(const string& timestamp) { return "time() - " + of(timestamp); }

string failure_ratio() {
  const string failed = "sum by (job, instance) (" + rate("kith_exchanges_failed_total") + ")";
  const string done = "sum by (job, instance) (" + rate("kith_exchanges_total") + ")";
  return failed + " / (" + failed + " + " + done + " > 0)";
}

Panel loss_curves(int width) {
  return {"Training loss",
          "kith_train_loss: exponential mean of the training loss of each node. It should fall; a "
          "curve that ends had a loss that is not finite.",
          "none",
          {{named(of("kith_train_loss"))}},
          "timeseries",
          width,
          9};
}

Panel accuracy_curves(int width) {
  Panel out{"Accuracy on the test set",
            "kith_eval_accuracy_ratio: share of the test set classified rightly, with each node's "
            "own parameters and, once the run is complete, with the averaged model.",
            "percentunit",
            {{named(of("kith_eval_accuracy_ratio")), "{{node}} {{params}}"}},
            "timeseries",
            width,
            9};
  out.field = {{"max", 1}};
  return out;
}

Panel distance_curves(int width) {
  return {"Distance between nodes",
          "kith_consensus_distance_relative: how far the models of two nodes that exchange are "
          "apart, over the norm of their mean. It should stay flat or fall.",
          "percentunit",
          {{named(of("kith_consensus_distance_relative"))}},
          "timeseries",
          width,
          9};
}

Row overview_tiles() {
  return {
      "At a glance",
      {
          stat("Nodes alive",
               "kith_members{state=\"alive\"}: the most members that any node sees alive.", "none",
               maximum(of("kith_members", "state=\"alive\"")), {{0, "red"}, {2, "green"}}),
          stat("Nodes training", "kith_node_state: nodes that are taking steps.", "none",
               total(of("kith_node_state", "state=\"training\"")), {{0, "red"}, {1, "green"}}),
          stat("Loss", "kith_train_loss, mean over nodes.", "none", mean(of("kith_train_loss"))),
          stat("Accuracy",
               "kith_eval_accuracy_ratio of the nodes' own parameters, mean over nodes.",
               "percentunit", mean(of("kith_eval_accuracy_ratio", "params=\"local\""))),
          stat("Epochs",
               "kith_run_progress_epochs: passes over the data that the cluster has done.", "none",
               maximum(of("kith_run_progress_epochs"))),
          stat("Done",
               "kith_run_progress_samples over kith_run_length_samples; empty when the run has no "
               "end.",
               "percentunit",
               maximum(of("kith_run_progress_samples") + " / " + of("kith_run_length_samples"))),
          stat("Samples per second", "kith_train_samples_total, rate over all nodes.", "cps",
               total(rate("kith_train_samples_total"))),
          stat("Greatest distance",
               "kith_consensus_distance_relative of the node that is furthest from its peers.",
               "percentunit", maximum(of("kith_consensus_distance_relative")),
               {{0, "green"}, {0.2, "yellow"}, {0.5, "red"}}),
          stat("Failed exchanges",
               "kith_exchanges_failed_total over all exchanges; refusals of a busy peer count too.",
               "percentunit", mean(failure_ratio()), {{0, "green"}, {0.3, "yellow"}, {0.6, "red"}}),
          stat("Isolated nodes", "kith_membership_isolated: nodes that no other member answers.",
               "none", total(of("kith_membership_isolated")), {{0, "green"}, {1, "red"}}),
          stat("Nodes not finite",
               "kith_train_healthy is 0: loss or parameters are not finite and training is held.",
               "none", total("1 - " + of("kith_train_healthy")), {{0, "green"}, {1, "red"}}),
          stat("Oldest checkpoint",
               "kith_checkpoint_last_success_timestamp_seconds: age of the oldest newest "
               "checkpoint.",
               "s", maximum(age("kith_checkpoint_last_success_timestamp_seconds"))),
      }};
}

Board overview() {
  Panel slowest{"Slowest nodes",
                "kith_train_steps_total: the five nodes with the fewest steps per second.",
                "ops",
                {{"bottomk(5, " + named(rate("kith_train_steps_total")) + ")", "{{node}}"}}};
  Panel members{"Members as the nodes see them",
                "kith_members: the highest count that any node reports, by state.",
                "none",
                {{highest_by("state", of("kith_members")), "{{state}}"}}};
  Panel speed = stacked({"Samples per second",
                         "kith_train_samples_total, rate of each node.",
                         "cps",
                         {{named(rate("kith_train_samples_total"))}}});
  Panel nodes =
      table("Nodes", "The newest figures of every node.",
            {{named(of("kith_train_model_depth_steps")), "Depth (steps)"},
             {named(rate("kith_train_steps_total")), "Steps per second"},
             {named(of("kith_train_loss")), "Loss"},
             {named(of("kith_eval_accuracy_ratio", "params=\"local\"")), "Accuracy"},
             {named(of("kith_consensus_distance_relative")), "Distance"},
             {named(of("kith_members", "state=\"alive\"")), "Members alive"},
             {named(age("kith_checkpoint_last_success_timestamp_seconds")), "Checkpoint age"}},
            {{"Steps per second", "ops"},
             {"Accuracy", "percentunit"},
             {"Distance", "percentunit"},
             {"Checkpoint age", "s"}});
  nodes.transformations[1]["options"]["excludeByName"].merge_patch(
      {{"params", true}, {"state", true}, {"__name__", true}});
  return {"kith-overview",
          "kith / Overview",
          "Is it learning, who is there, how fast, how far apart.",
          {overview_tiles(),
           {"Learning", {loss_curves(8), accuracy_curves(8), distance_curves(8)}},
           {"Nodes", {speed, slowest, members, nodes}}}};
}

Row node_training() {
  return {
      "Training",
      {
          loss_curves(8),
          accuracy_curves(8),
          {"Learning rate",
           "kith_train_learning_rate of the latest step.",
           "none",
           {{named(of("kith_train_learning_rate"))}},
           "timeseries",
           8,
           9},
          {"Gradient norm",
           "kith_train_grad_norm: Euclidean norm before clipping.",
           "none",
           {{named(of("kith_train_grad_norm"))}}},
          {"Steps per second",
           "kith_train_steps_total, rate.",
           "ops",
           {{named(rate("kith_train_steps_total"))}}},
          {"Duration of a step",
           "kith_train_step_duration_seconds: median and 95th percentile, without idling for "
           "min_step_ms.",
           "s",
           {{quantile("0.5", "kith_train_step_duration_seconds", "node"), "{{node}} p50"},
            {quantile("0.95", "kith_train_step_duration_seconds", "node"), "{{node}} p95"}}},
          stacked({"Where the time goes",
                   "kith_train_step_phase_seconds_total and kith_train_idle_seconds_total: seconds "
                   "per second in each phase of a step, over the chosen nodes.",
                   "s",
                   {{total_by("phase", rate("kith_train_step_phase_seconds_total")), "{{phase}}"},
                    {total(rate("kith_train_idle_seconds_total")), "idle (min_step_ms)"}}}),
          {"Model depth",
           "kith_train_model_depth_steps: optimiser steps in sequence that the model contains. A "
           "node far below the others adopts their state.",
           "none",
           {{named(of("kith_train_model_depth_steps"))}}},
          {"Values merged and published",
           "kith_train_merged_values_total and kith_train_published_values_total: work at safe "
           "points.",
           "cps",
           {{named(rate("kith_train_merged_values_total")), "{{node}} merged"},
            {named(rate("kith_train_published_values_total")), "{{node}} published"}}},
      }};
}

Row node_state() {
  Panel state{"State",
              "kith_node_state: what the node is doing.",
              "none",
              {{named(of("kith_node_state") + " == 1"), "{{node}} {{state}}"}},
              "state-timeline"};
  state.options = {{"showValue", "never"}, {"mergeValues", true}};
  return {
      "State",
      {
          state,
          {"Share of the data",
           "kith_train_shard_samples: samples of the training file that the node trains on.",
           "none",
           {{named(of("kith_train_shard_samples"))}}},
          {"Evaluations",
           "kith_evaluations_total and kith_eval_loss: loss on the test set.",
           "none",
           {{named(of("kith_eval_loss")), "{{node}} {{params}} loss"},
            {named(increase("kith_evaluations_total")), "{{node}} evaluations"}}},
          {"Age of the checkpoint",
           "kith_checkpoint_last_success_timestamp_seconds: time since the latest complete one.",
           "s",
           {{named(age("kith_checkpoint_last_success_timestamp_seconds"))}}},
          {"Checkpoints",
           "kith_checkpoints_total and kith_checkpoint_errors_total in the shown time.",
           "none",
           {{named(increase("kith_checkpoints_total")), "{{node}} written"},
            {named(increase("kith_checkpoint_errors_total")), "{{node}} failed"}}},
          {"Adoptions and recoveries",
           "kith_adoptions_total, kith_train_nonfinite_total and kith_train_clamped_values_total "
           "in the shown time.",
           "none",
           {{named(increase("kith_adoptions_total")), "{{node}} adopted"},
            {named(increase("kith_train_nonfinite_total")), "{{node}} not finite"},
            {named(increase("kith_train_clamped_values_total")), "{{node}} clamped"}}},
          {"Skipped fragments",
           "kith_train_skipped_fragments_total: left for the next safe point because they were "
           "busy.",
           "cps",
           {{named(rate("kith_train_skipped_fragments_total"))}}},
          stat("Nodes with a step log",
               "kith_step_log_lines_total: nodes that write a line per step.", "none",
               "count(" + named(rate("kith_step_log_lines_total")) + ") or vector(0)"),
          stat("Steps without a line",
               "kith_step_log_lost_lines_total: lines of step logs lost in the shown time.", "none",
               "(" + total(increase("kith_step_log_lost_lines_total")) + ") or vector(0)",
               {{0, "green"}, {1, "yellow"}}),
      }};
}

Board node() {
  return {"kith-node",
          "kith / Node",
          "What one node does; choose it above.",
          {node_training(), node_state()}};
}

Row exchange_flow() {
  return {
      "Flow",
      {
          {"Exchanges per second",
           "kith_exchanges_total: exchanges of one fragment that ended in averaging.",
           "ops",
           {{total_by("role", rate("kith_exchanges_total")), "{{role}}"}}},
          {"Failed exchanges per second",
           "kith_exchanges_failed_total by reason. A peer that is busy or that proposed to us at "
           "the same moment (crossing) is ordinary.",
           "ops",
           {{total_by("role, reason", rate("kith_exchanges_failed_total")) + " > 0 or " +
                 total_by("role", rate("kith_exchanges_failed_total")),
             "{{role}} {{reason}}"}}},
          {"Share of failed exchanges",
           "kith_exchanges_failed_total over all exchanges of each node.",
           "percentunit",
           {{named(failure_ratio())}}},
          {"Duration of an exchange",
           "kith_exchange_duration_seconds: from proposing a fragment to applying the result.",
           "s",
           {{quantile("0.5", "kith_exchange_duration_seconds"), "p50"},
            {quantile("0.95", "kith_exchange_duration_seconds"), "p95"},
            {quantile("0.99", "kith_exchange_duration_seconds"), "p99"}}},
          {"Staleness",
           "kith_exchange_staleness_steps: own steps made while an exchange was on its way.",
           "none",
           {{quantile("0.5", "kith_exchange_staleness_steps"), "p50"},
            {quantile("0.95", "kith_exchange_staleness_steps"), "p95"}}},
          distance_curves(8),
          heatmap("Durations", "kith_exchange_duration_seconds: how many exchanges took how long.",
                  "s", "kith_exchange_duration_seconds"),
          heatmap("Staleness in steps",
                  "kith_exchange_staleness_steps: how many exchanges were how stale.", "none",
                  "kith_exchange_staleness_steps"),
      }};
}

Row exchange_bytes() {
  return {
      "Bytes",
      {
          {"Network",
           "kith_network_bytes_total by plane and direction: control is membership, bulk is "
           "parameters.",
           "Bps",
           {{total_by("kind, direction", rate("kith_network_bytes_total")),
             "{{kind}} {{direction}}"}}},
          {"Payload",
           "kith_exchange_payload_bytes_total: encoded parameters.",
           "Bps",
           {{total_by("direction", rate("kith_exchange_payload_bytes_total")), "{{direction}}"}}},
          {"Payload of an exchange",
           "kith_exchange_payload_bytes_total over kith_exchanges_total: bytes sent for each "
           "exchange.",
           "bytes",
           {{"sum(" + named(rate("kith_exchange_payload_bytes_total", "direction=\"sent\"")) +
                 ") / (sum(" + named(rate("kith_exchanges_total")) + ") > 0)",
             "sent"}}},
          {"Distance, absolute",
           "kith_consensus_distance: norm of the difference of two replicas.",
           "none",
           {{named(of("kith_consensus_distance"))}}},
          {"Ledger",
           "kith_exchange_ledger_entries: committed results that no peer has acknowledged yet.",
           "none",
           {{named(of("kith_exchange_ledger_entries"))}}},
          {"Bytes in the ledger",
           "kith_exchange_ledger_bytes.",
           "bytes",
           {{named(of("kith_exchange_ledger_bytes"))}}},
      }};
}

Row exchange_trouble() {
  return {"Trouble",
          {
              {"Repeats",
               "kith_exchange_retries_total, kith_exchange_replays_total and "
               "kith_exchange_duplicates_total: messages sent or answered again.",
               "ops",
               {{total(rate("kith_exchange_retries_total")), "asked again"},
                {total(rate("kith_exchange_replays_total")), "answered again"},
                {total(rate("kith_exchange_duplicates_total")), "duplicates ignored"}}},
              {"Given up",
               "kith_exchange_forfeited_total and kith_exchange_invalid_total: results dropped "
               "before they were acknowledged, and messages that made no sense.",
               "ops",
               {{total(rate("kith_exchange_forfeited_total")), "forfeited"},
                {total(rate("kith_exchange_invalid_total")), "invalid"}}},
              {"Refused connections and full queues",
               "kith_network_refused_total by reason and kith_network_queue_full_total.",
               "ops",
               {{total_by("reason", rate("kith_network_refused_total")), "refused: {{reason}}"},
                {total(rate("kith_network_queue_full_total")), "queue full"}}},
          }};
}

Board exchanges() {
  return {"kith-exchanges",
          "kith / Exchanges",
          "How the nodes average: how often, how long, how stale, how many bytes.",
          {exchange_flow(), exchange_bytes(), exchange_trouble()}};
}

// An edge needs the fields id, source and target, as labels: the panel does not see renamed ones.
string edges(const string& value) {
  return "max by (id, source, target) (label_join(" + named(value) +
         ", \"id\", \" \", \"instance\", \"id\"))";
}

Row topology_graph() {
  const string recent = "(" + age("kith_peer_last_exchange_timestamp_seconds") + ") < 300";
  Panel graph{"Who exchanges with whom",
              "kith_peer_last_exchange_timestamp_seconds: an edge for each pair that exchanged in "
              "the last five minutes; see the table below when a browser cannot draw it.",
              "s",
              {{edges(recent), "", "table"}},
              "nodeGraph",
              12,
              14};
  Panel links{"Who has links with whom",
              "kith_peer_rtt_seconds: an edge for each peer that answers probes.",
              "s",
              {{edges(of("kith_peer_rtt_seconds")), "", "table"}},
              "nodeGraph",
              12,
              14};
  Panel list =
      table("Pairs", "Round trip and time since the latest exchange of every pair.",
            {{edges(of("kith_peer_rtt_seconds")), "Round trip"},
             {edges(age("kith_peer_last_exchange_timestamp_seconds")), "Since the last exchange"}},
            {{"Round trip", "s"}, {"Since the last exchange", "s"}});
  list.transformations[1]["options"]["excludeByName"]["id"] = true;
  return {"Pairs", {graph, links, list}};
}

Row topology_members() {
  Panel isolated{"Isolated",
                 "kith_membership_isolated: 1 while no other member answers.",
                 "none",
                 {{named(of("kith_membership_isolated"))}},
                 "state-timeline"};
  isolated.options = {{"showValue", "never"}, {"mergeValues", true}};
  const string alive = named(of("kith_members", "state=\"alive\""));
  return {"Membership",
          {
              {"Members alive, as each node sees it",
               "kith_members{state=\"alive\"}: lines that stay apart are a split cluster.",
               "none",
               {{alive}}},
              {"Views that disagree",
               "Difference between the highest and the lowest kith_members{state=\"alive\"} of a "
               "run, and between the nodes scraped and the lowest.",
               "none",
               {{"max by (run) (" + alive + ") - min by (run) (" + alive + ")",
                 "{{run}} between views"},
                {"count by (run) (" + alive + ") - min by (run) (" + alive + ")",
                 "{{run}} scraped but not seen"}}},
              {"Suspect, dead and left",
               "kith_members: the highest count that any node reports.",
               "none",
               {{highest_by("state", of("kith_members", "state!=\"alive\"")), "{{state}}"}}},
              {"Round trips",
               "kith_peer_rtt_seconds: the slowest peer of each node.",
               "s",
               {{highest_by("node", of("kith_peer_rtt_seconds"))}}},
              {"Probes",
               "kith_membership_probes_total and kith_membership_probes_failed_total.",
               "ops",
               {{total(rate("kith_membership_probes_total")), "sent"},
                {total(rate("kith_membership_probes_failed_total")), "not answered"}}},
              {"Suspicions",
               "kith_membership_suspicions_total, kith_membership_convictions_total and "
               "kith_membership_refutations_total in the shown time.",
               "none",
               {{total(increase("kith_membership_suspicions_total")), "suspected"},
                {total(increase("kith_membership_convictions_total")), "held dead"},
                {total(increase("kith_membership_refutations_total")), "refuted"}}},
              isolated,
              {"Local health",
               "kith_membership_local_health (Lifeguard): 0 is well; above, the node is slow to "
               "answer and blames others less.",
               "none",
               {{named(of("kith_membership_local_health"))}}},
          }};
}

Board topology() {
  return {"kith-topology",
          "kith / Topology",
          "Who is there, who sees whom, who exchanges with whom.",
          {topology_graph(), topology_members()}};
}

Row hardware_process() {
  return {"Process",
          {
              {"CPU",
               "process_cpu_seconds_total: cores in use.",
               "none",
               {{named(rate("process_cpu_seconds_total"))}}},
              {"Memory",
               "process_resident_memory_bytes.",
               "bytes",
               {{named(of("process_resident_memory_bytes"))}}},
              {"Virtual memory",
               "process_virtual_memory_bytes.",
               "bytes",
               {{named(of("process_virtual_memory_bytes"))}}},
              {"Open files",
               "process_open_fds over process_max_fds.",
               "percentunit",
               {{named(of("process_open_fds") + " / " + of("process_max_fds"))}}},
              {"Threads", "process_threads.", "none", {{named(of("process_threads"))}}},
              {"Uptime",
               "process_start_time_seconds: time since the process started.",
               "s",
               {{named(age("process_start_time_seconds"))}}},
          }};
}

Row hardware_cards() {
  const string card = "{{node}} gpu {{gpu}}";
  Panel busy{"Utilisation",
             "kith_gpu_utilization_ratio: share of the time in which a kernel ran. Empty without "
             "an NVIDIA driver.",
             "percentunit",
             {{named(of("kith_gpu_utilization_ratio")), card}}};
  busy.field = {{"min", 0}, {"max", 1}};
  return {
      "Graphics cards",
      {
          busy,
          {"Memory in use",
           "kith_gpu_memory_used_bytes over kith_gpu_memory_size_bytes, by all processes.",
           "percentunit",
           {{named(of("kith_gpu_memory_used_bytes") + " / " + of("kith_gpu_memory_size_bytes")),
             card}}},
          {"Power", "kith_gpu_power_watts.", "watt", {{named(of("kith_gpu_power_watts")), card}}},
          {"Temperature",
           "kith_gpu_temperature_celsius.",
           "celsius",
           {{named(of("kith_gpu_temperature_celsius")), card}}},
          {"Energy",
           "kith_gpu_energy_joules_total in the shown time.",
           "joule",
           {{named(increase("kith_gpu_energy_joules_total")), card}}},
          table("Cards and programs", "kith_gpu_info and kith_build_info.",
                {{named(of("kith_gpu_info")), "Card"}, {named(of("kith_build_info")), "Program"}},
                {}),
      }};
}

Board hardware() {
  return {"kith-hardware",
          "kith / Hardware",
          "What it costs: processors, memory, graphics cards.",
          {hardware_process(), hardware_cards()}};
}

}  // namespace

std::vector<Board> all_boards() {
  return {overview(), node(), exchanges(), topology(), hardware()};
}

}  // namespace kith::boards
