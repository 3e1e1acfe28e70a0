"""A model of one number."""


class Model:
    def __init__(self):
        self.x = 0.0

    def step(self):
        self.x -= 0.25 * 2 * (self.x - 3)
        return (self.x - 3) ** 2
