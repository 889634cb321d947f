"""Train the network: `python train.py` shows how the loss falls."""

import torch

from data import FEATURES, batches, houses
from model import new_network

torch.set_num_threads(1)


def loss_of(network, features, prices, decay=1e-5):
    """The mean squared error of the network's guesses, and a little for large weights."""
    guesses = network(features)
    errors = guesses - prices
    weights = sum((parameter**2).sum() for parameter in network.parameters())
    return (errors**2).mean() + decay * weights


def step(network, velocities, loss, rate, momentum=0.9):
    """Go down the loss's gradient: stochastic gradient descent with momentum."""
    network.zero_grad()
    loss.backward()
    with torch.no_grad():
        for parameter, velocity in zip(network.parameters(), velocities):
            velocity.mul_(momentum).sub_(rate * parameter.grad)
            parameter.add_(velocity)


def train(epochs=40, count=512, size=64, rate=0.02):
    """Train a network.

    Returns:
        the network, and the mean loss of each epoch
    """
    features, prices = houses(count)
    network = new_network(len(FEATURES))
    velocities = [torch.zeros_like(parameter) for parameter in network.parameters()]
    history = []
    for epoch in range(epochs):
        losses = []
        for some_features, some_prices in batches(features, prices, size, seed=epoch):
            loss = loss_of(network, some_features, some_prices)
            step(network, velocities, loss, rate)
            losses.append(loss.item())
        history.append(sum(losses) / len(losses))
    return network, history


def main():
    _, history = train()
    for epoch, loss in enumerate(history, 1):
        print(f"epoch {epoch:2}  loss {loss:.4f}")


if __name__ == "__main__":
    main()
