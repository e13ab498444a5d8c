add_library(kith_membership STATIC
  data_sharing.cc
  finish.cc
  partial_view.cc
  partial_view_messages.cc
  partial_view_set.cc
  progress.cc
  swim.cc
  swim_accusations.cc
  swim_limits.cc
  swim_news.cc
  swim_probe.cc
  swim_queues.cc
  swim_records.cc
  swim_suspicion.cc
  swim_sync.cc
  swim_table.cc
)
add_library(kith::membership ALIAS kith_membership)
target_link_libraries(kith_membership PUBLIC kith::base kith::messages)
