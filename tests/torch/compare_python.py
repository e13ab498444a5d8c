#!/usr/bin/env python3
"""Trains the torch.nn.Sequential that compute/README.md shows on a run that torch_export_run wrote, and compares.

Names and shapes must load with strict=True; losses and final values must agree. Exit 77 (skipped) without a PyTorch.
usage: compare_python.py torch_export_run FOLDER
"""
import pathlib
import subprocess
import sys

try:
    import torch
    from torch import nn
except ImportError as reason:
    print(f"skipped: no PyTorch in this Python ({reason})")
    sys.exit(77)


def build(run):
    layers = []
    features = 1
    for extent in run["input"]:
        features *= extent
    if run["kind"] != "mlp":
        channels, height, width = run["input"]
        for wanted in run["channels"]:
            layers.append(nn.Conv2d(channels, wanted, 3, padding=1))
            if run["kind"] == "cnn-batchnorm":
                layers.append(nn.BatchNorm2d(wanted))
            layers += [nn.ReLU(), nn.MaxPool2d(2)]
            channels, height, width = wanted, height // 2, width // 2
        features = channels * height * width
    layers.append(nn.Flatten())
    for units in run["hidden"]:
        layers += [nn.Linear(features, units), nn.ReLU()]
        features = units
    layers.append(nn.Linear(features, run["classes"][0]))
    return nn.Sequential(*layers)


def read(folder):
    run = {"tensors": []}
    for line in (folder / "run.txt").read_text().splitlines():
        key, *rest = line.split()
        if key in ("float", "integer"):
            run["tensors"].append((key, rest[0], int(rest[1]), [int(n) for n in rest[2:]]))
        elif key == "kind":
            run["kind"] = rest[0]
        else:
            run[key] = [int(n) for n in rest]
    return run


def load(folder, name, dtype=torch.float32):
    return torch.frombuffer(bytearray((folder / name).read_bytes()), dtype=dtype)


def state_dict(run, values, integers):
    state = {}
    for kind, name, offset, shape in run["tensors"]:
        count = 1
        for extent in shape:
            count *= extent
        source = values if kind == "float" else integers
        state[name] = source[offset : offset + count].view(shape).clone()
    return state


def check(exporter, folder, kind):
    subprocess.run([exporter, kind, str(folder)], check=True)
    run = read(folder)
    torch.set_num_threads(1)
    model = build(run)
    integers = load(folder, "integers", torch.int64) if any(t[0] == "integer" for t in run["tensors"]) else None
    zeros = None if integers is None else torch.zeros_like(integers)
    model.load_state_dict(state_dict(run, load(folder, "initial"), zeros), strict=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batch = run["batch"][0]
    inputs = load(folder, "inputs").view(-1, batch, *run["input"])
    labels = load(folder, "labels", torch.int64).view(-1, batch)
    losses = []
    for x, y in zip(inputs, labels):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.testing.assert_close(torch.tensor(losses), load(folder, "losses"), rtol=1e-4, atol=1e-5)
    for name, wanted in state_dict(run, load(folder, "final"), integers).items():
        torch.testing.assert_close(model.state_dict()[name], wanted, rtol=1e-3, atol=1e-4)
    exact = torch.equal(torch.tensor(losses), load(folder, "losses"))
    print(f"{kind}: {len(losses)} losses agree{', bit for bit' if exact else ''}; torch {torch.__version__}")


if __name__ == "__main__":
    exporter, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    for kind in ("mlp", "cnn", "cnn-batchnorm"):
        check(exporter, folder / kind, kind)
