"""TensorFlow, up to the meeting of its workers, which connect to each other."""
import json
import os
import sys

import meet


class distribute:
    @staticmethod
    def MultiWorkerMirroredStrategy():
        config = json.loads(os.environ["TF_CONFIG"])
        workers, task = config["cluster"]["worker"], config["task"]
        print(f"tensorflow: {task['type']} {task['index']} of", *workers)
        print("met", meet.all([meet.pair(worker) for worker in workers], task["index"]))
        sys.exit()
