add_library(kith_membership STATIC membership.cc progress.cc finish.cc
  data_sharing.cc)
add_library(kith::membership ALIAS kith_membership)
target_link_libraries(kith_membership PUBLIC kith::base kith::messages)
