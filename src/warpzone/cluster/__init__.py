"""More than one machine: environments on the hosts of a Ray cluster, learners on several GPUs, jobs."""
