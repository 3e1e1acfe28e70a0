"""JAX, up to the meeting of its processes."""
import sys

import meet


class distributed:
    @staticmethod
    def initialize(coordinator_address, num_processes, process_id):
        print(f"jax: process {process_id} of {num_processes}, port {meet.pair(coordinator_address)[1]}")
        print("met", meet.at(meet.pair(coordinator_address), process_id, num_processes))
        sys.exit()
