// The boards for a closer look: how do they average (Exchanges), who sees whom (Topology), what
// does it cost (Hardware).
#include "monitoring/dashboards/boards.h"

namespace kith::boards {
namespace {

using std::string;

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

Board exchanges_board() { return exchanges(); }
Board topology_board() { return topology(); }
Board hardware_board() { return hardware(); }

}  // namespace kith::boards
