import pytest
import torch

from data import FEATURES, batches, houses
from model import new_network
from train import train


@pytest.fixture(scope="module")
def trained():
    return train()


def test_houses_are_the_same_each_time():
    for one, other in zip(houses(10), houses(10)):
        assert torch.equal(one, other)
    assert not torch.equal(houses(10)[1], houses(10, seed=1)[1])


def test_batches_have_each_house_once():
    features, prices = houses(100)
    some = list(batches(features, prices, 32))
    assert [len(part) for _, part in some] == [32, 32, 32, 4]
    assert torch.equal(torch.cat([part for _, part in some]).sort()[0], prices.sort()[0])


def test_networks_begin_alike():
    first, second = new_network(len(FEATURES)), new_network(len(FEATURES))
    assert all(torch.equal(one, other) for one, other in zip(first.parameters(), second.parameters()))


def test_the_loss_falls(trained):
    _, history = trained
    assert history[-1] < 0.1 < history[0]


def test_new_houses_are_guessed_well(trained):
    network, _ = trained
    features, prices = houses(200, seed=1)
    with torch.no_grad():
        guesses = network(features).flatten()
    unexplained = ((guesses - prices) ** 2).mean() / prices.var()
    assert unexplained < 0.1
