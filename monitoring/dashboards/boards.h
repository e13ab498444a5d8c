// The five boards, each with one question, and the expressions that several of them use.
// boards.cc: Overview, Node; boards_cluster.cc: Exchanges, Topology, Hardware.
#pragma once

#include <string>

#include "monitoring/dashboards/board.h"

namespace kith::boards {

Board overview_board();   // is it learning, who is there
Board node_board();       // what does this node do
Board exchanges_board();  // how do they average
Board topology_board();   // who sees whom
Board hardware_board();   // what does it cost

// Over the chosen nodes; each is one number, or one for each value of `label`.
std::string maximum(const std::string& expression);
std::string mean(const std::string& expression);
std::string total(const std::string& expression);
std::string total_by(const std::string& label, const std::string& expression);
std::string highest_by(const std::string& label, const std::string& expression);

// A quantile of a histogram, for each value of the label `by`, or over all.
std::string quantile(const std::string& q, const std::string& histogram,
                     const std::string& by = "");
// Seconds since a timestamp.
std::string age(const std::string& timestamp);
// Of each node's exchanges.
std::string failure_ratio();

Panel distance_curves(int width);

}  // namespace kith::boards
