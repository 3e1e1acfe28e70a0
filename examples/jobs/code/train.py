"""What a real training script would be: it reads its own modules from the folder it came in."""

import argparse

from mymodel.model import Model

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
model = Model()
for epoch in range(parser.parse_args().epochs):
    print(f"epoch {epoch + 1}: loss {model.step():.3f}")
