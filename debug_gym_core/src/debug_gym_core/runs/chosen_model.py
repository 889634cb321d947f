"""The model that plays the episodes of a run: looked up once, made anew for each of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from debug_gym_core.components.component import blamed, construct
from debug_gym_core.config.llm_yaml import Models, read_models, unknown
from debug_gym_core.errors import DebugGymError, RequirementError, UsageError
from debug_gym_core.models.answer_bounds import without
from debug_gym_core.models.gate import Gate
from debug_gym_core.models.service import ServiceLLM
from debug_gym_core.runs.ledger import Ledger, Limits
from debug_gym_core.runs.model_record import ModelRecord, recorded

if TYPE_CHECKING:
    from debug_gym_core.components.catalogue import Plugins
    from debug_gym_core.config.model import Config
    from debug_gym_core.models.llm import LLM

LEAST = 1024
"""Tokens that an answer has to have room for, besides a model's thinking."""

SHARE = 0.5
"""Of what a call may cost, what its answer may where nothing bounds it; the rest is for the prompt."""


class ChosenModel:
    """The model that a config names.

    Attributes:
        name: what the config calls it
        backend: its class
    """

    def __init__(self, config: Config, plugins: Plugins) -> None:
        """Look it up.

        Args:
            config: of the run
            plugins: what is installed

        Raises:
            UsageError: its name is unknown
            PluginError: its backend's plugin failed
        """
        self.name = config.llm.name
        self._config, self._plugins = config, plugins
        self._entries = Models()
        self._gate = Gate()
        self._bound: dict[str, int] | None = None
        self.backend = self._find()

    def _find(self) -> type[LLM]:
        """The backend: of its entry in llm.yaml, else the one of that name."""
        known = self._plugins.llms.get(self.name)
        if known is not None and not issubclass(known, ServiceLLM):
            return known  # such as a person, who needs no entry
        self._entries = read_models(self._config.llm_config_file_path)
        if self.name in self._entries.names:
            return self._entries.backend(self.name, self._plugins)
        from debug_gym_core.components.homes import HOMES

        if self.name in self._plugins.llms or self.name in HOMES["llms"] or ":" in self.name:
            found: type[LLM] = self._plugins.get("llms", self.name)
            return found
        raise unknown(self.name, self._entries, self._plugins)

    def make(self, ledger: Ledger, note: Callable[[str], None]) -> LLM:
        """Make one for an episode.

        Args:
            ledger: what the run may spend; gets the model's own bound
            note: is told what bounds its answers that nobody has said, and what weakens the count of its tokens

        Raises:
            UsageError: a setting is wrong, or said twice, or a call may cost less than any answer
        """
        llm = self._made()
        if isinstance(llm, ServiceLLM):
            if self._bound is None:  # found by the first that is made; the others are made with it
                self._bound = self._bound_by_money(llm, note)
                return self.make(ledger, note)
            llm.gate, llm.note = self._gate, note
            ledger.limits = Limits(self._config.run.max_cost, llm.settings.max_run_tokens)
        return llm

    def _made(self) -> LLM:
        """One with the settings of its entry and of the config, and with what bounds its answers, all checked."""
        given = {**self._given(), **(self._bound or {})}
        if self.name in self._entries.names:
            return self._entries.make(self.name, self._plugins, given)
        return construct(self.backend, **{key: value for key, value in given.items() if value is not None})

    def _bound_by_money(self, llm: ServiceLLM, note: Callable[[str], None]) -> dict[str, int]:
        """What has a model answer no more than a call may cost, where nothing else bounds what it answers.

        Returns:
            the setting, if there is one

        Raises:
            UsageError: that would be too little, or what bounds it costs more
        """
        most, prices = llm.settings.max_call_cost, llm.settings.prices
        if most is None or prices is None or not prices.completion:
            return {}
        price = prices.completion / 1e6
        longest, said = llm.longest_answer, bool(llm.settings.answer_bounds)
        fitting = int(most * (1.0 if said else SHARE) / price)
        if fitting >= longest:
            return {}
        least = longest if said else min(longest, llm.thinking_budget + LEAST)
        in_config = self._config.llm.settings_for(self.backend).get("max_call_cost") is not None
        bound = "llm.max_call_cost" if in_config else "max_call_cost"
        where = "" if in_config else f"{self._entries.layer.origin((self.name, 'max_call_cost'))}: "
        if fitting < least:
            mend = f"raise it, or {'lower' if said else 'say'} max_tokens"
            what = f"an answer of {least} tokens costs ${least * price:.4g}"
            raise UsageError(f"{where}{self.name}: {bound} (${most:g}) lets no call through, {what}: {mend}")
        note(f"{bound} (${most:g}) has {self.name} answer at most {fitting} tokens; max_tokens may say another number")
        return {"max_tokens": fitting}

    def _given(self) -> dict[str, Any]:
        """What the config says of the model."""
        given = self._config.llm.settings_for(self.backend)
        sent = given.get("generate_kwargs")
        if isinstance(sent, Mapping):
            said = {key for key, value in given.items() if value is not None}
            twice = next(iter(sent.keys() - without(sent, said)), None)
            if twice is not None:
                other = twice if twice in said else "max_tokens"
                raise UsageError(f"llm.{other} and llm.generate_kwargs.{twice} say the same: leave one of them out")
        return given

    def check(self, ledger: Ledger, note: Callable[[str], None]) -> ModelRecord:
        """Make sure that it can be asked, and that what it may cost can be bounded.

        Args:
            ledger: what the run may spend
            note: is told what weakens the run

        Returns:
            what a run records of it

        Raises:
            UsageError, PluginError, RequirementError: it cannot
        """
        llm = self.make(ledger, note)
        for other in self._entries.names:
            try:
                self._entries.refuse_unknown_keys(other, self._plugins)
            except UsageError as error:
                note(f"{error}; {other} is not played here")
            except DebugGymError:
                continue  # such as a backend that is not installed
        if isinstance(llm, ServiceLLM):
            self._check_prices(llm, note)
            with contextlib.closing(llm), blamed(type(llm), "find what it needs"):
                llm.prepare()
        kept, plain = ({"backend": self.backend.name, **recorded(llm.settings, plain=one)} for one in (False, True))
        return ModelRecord(kept, plain)

    def _check_prices(self, llm: ServiceLLM, note: Callable[[str], None]) -> None:
        """Refuse a bound in dollars that cannot be kept."""
        if llm.settings.prices is not None:
            return
        bounds = [
            *(["run.max_cost"] if self._config.run.max_cost is not None else []),
            *(f"llm.{key}" for key in ("max_task_cost", "max_call_cost") if getattr(llm.settings, key) is not None),
        ]
        if not bounds:
            return
        text = f"{self.name} has no prices in {self._entries.path or 'llm.yaml'}"
        if not llm.settings.allow_unknown_price:
            raise RequirementError(
                f"{text}, so {bounds[0]} cannot be kept.\nAdd prices: {{prompt: 1.0, completion: 2.0}} (dollars a "
                "million tokens), or say -p llm.allow_unknown_price=true"
            )
        note(f"{text}: {bounds[0]} bounds nothing")
