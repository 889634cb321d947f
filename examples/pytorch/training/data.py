"""Made-up houses and what they sold for: the same ones each time."""

import torch

FEATURES = ("area", "rooms", "age", "distance")


def houses(count, seed=0):
    """Make houses.

    Args:
        count: how many
        seed: others with another one

    Returns:
        their features, standardised (count x 4), and their prices in units of 100,000 (count)
    """
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, len(FEATURES), generator=generator)
    area, rooms, age, distance = features.unbind(1)
    noise = 0.05 * torch.randn(count, generator=generator)
    prices = 3 + 1.2 * area + 0.3 * area * rooms - 0.4 * age.abs() - 0.5 * torch.tanh(distance)
    return features, prices + noise


def batches(features, prices, size, seed=0):
    """Go through the houses once, in an order of chance.

    Args:
        features: as `houses` makes them
        prices: likewise
        size: houses in a batch; the last one may have fewer
        seed: another order with another one
    """
    order = torch.randperm(len(features), generator=torch.Generator().manual_seed(seed))
    for some in order.split(size):
        yield features[some], prices[some]
