"""A sweep killed at 25 moments resumes and ends with the content of one never killed.

ctest-timeout: 900"""

import sweep_tools

sweep_tools.kill_often(25, sweep_tools.seeded("kill"))
