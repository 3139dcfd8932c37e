"""The same as test_sweep_kill with 100 kills.

ctest-labels: soak
ctest-timeout: 1800"""

import sweep_tools

sweep_tools.kill_often(100, sweep_tools.seeded("soak"))
