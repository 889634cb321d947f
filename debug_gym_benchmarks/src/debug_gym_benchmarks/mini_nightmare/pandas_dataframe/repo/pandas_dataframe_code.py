"""Figures of a passenger list: takings and prices by class and port.

The list comes from the shipping office as a CSV file. Headings there differ in case, have spaces around them and come
in changing order, so they are put into one form when the file is read.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

CLASS = "class"
PORT = "port"
AGE = "age"
PRICE = "price"
COLUMNS = [CLASS, PORT, AGE, PRICE]

ADULT_AGE = 16


def load_passengers(path: str | Path) -> pd.DataFrame:
    """Read a passenger list.

    Returns:
        A frame with the columns that we work with, one row a passenger. Columns of the file that we have no use for
        are dropped; a list may lack some of ours, which are then empty.
    """
    frame = pd.read_csv(path, skipinitialspace=True)
    frame.columns = [str(heading).strip().lower().replace(" ", "_") for heading in frame.columns]
    frame = frame.reindex(columns=COLUMNS)
    for column in (CLASS, PORT):
        frame[column] = frame[column].astype(object).where(frame[column].notna(), "unknown")
    return frame


def passengers_by_port(frame: pd.DataFrame) -> dict[str, int]:
    """Return the number of passengers from each port."""
    counts = frame.groupby(PORT)[CLASS].count()
    return {str(port): int(number) for port, number in counts.items()}


def adults(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the passengers who are at least 16; those of unknown age count as adults."""
    return frame[frame[AGE].isna() | (frame[AGE] >= ADULT_AGE)]


def takings_by_class(frame: pd.DataFrame) -> dict[str, float]:
    """Return what the passengers of each class paid together; somebody without a price travelled free."""
    sums = frame[PRICE].fillna(0).groupby(frame[CLASS]).sum()
    return {str(name): round(float(amount), 2) for name, amount in sums.items()}


def dearest_ticket(frame: pd.DataFrame) -> float:
    """Return the highest price that anybody paid, 0.0 when all travelled free."""
    highest = frame[PRICE].max()
    return 0.0 if pd.isna(highest) else round(float(highest), 2)


def mean_adult_price(frame: pd.DataFrame, port: str) -> float:
    """Return the mean price of the adults from a port, 0.0 when there are none; who travelled free is left out."""
    grown = adults(frame)
    prices = grown.loc[grown[PORT] == port, PRICE].dropna()
    return round(float(prices.mean()), 2) if len(prices) else 0.0


def summary(path: str | Path) -> str:
    """Return the line for the board of the office."""
    frame = load_passengers(path)
    takings = sum(takings_by_class(frame).values())
    return f"{len(frame)} passengers, takings {takings:.2f}, dearest ticket {dearest_ticket(frame):.2f}"
