// The boards for one look: is it learning (Overview), what does this node do (Node).
#include "monitoring/dashboards/boards.h"

namespace kith::boards {
namespace {

using std::string;

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
          stat(
              "Arithmetic",
              "kith_train_flops_total, rate over all nodes: floating-point operations of training.",
              "flops", total(rate("kith_train_flops_total"))),
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
          {"Arithmetic and tokens",
           "kith_train_flops_total and kith_train_tokens_total, rates; no tokens where samples "
           "are not sequences of them.",
           "flops",
           {{named(rate("kith_train_flops_total")), "{{node}} FLOP"},
            {named(rate("kith_train_tokens_total")), "{{node}} tokens"}}},
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

}  // namespace

Board overview_board() { return overview(); }
Board node_board() { return node(); }

std::vector<Board> all_boards() {
  return {overview_board(), node_board(), exchanges_board(), topology_board(), hardware_board()};
}

}  // namespace kith::boards
