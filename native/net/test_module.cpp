#include <nanobind/nanobind.h>

void bind_net(nanobind::module_& m);

NB_MODULE(_net_test, m) { bind_net(m); }
