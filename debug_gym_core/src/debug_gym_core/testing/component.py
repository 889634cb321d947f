"""What every component promises, whatever its kind."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, ClassVar

import pydantic
import pytest

from debug_gym_core.components.catalogue import KINDS
from debug_gym_core.components.component import Component
from debug_gym_core.errors import UsageError
from debug_gym_core.plugins import default_plugins

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
"""What a name may be: what providers of models take as the name of a function, and a shell as a word."""

FIRST_LINE = 200
"""Characters that the first line of a component's help may have."""


class ComponentContract:
    """Base of the contract classes.

    Attributes:
        settings: what every instance is made with
        registered: whether an installed plugin brings the component; false for one that is not packaged (yet)
    """

    settings: ClassVar[Mapping[str, Any]] = {}
    registered: ClassVar[bool] = True
    _kind: ClassVar[str] = ""

    @pytest.fixture(scope="class", autouse=True)
    @staticmethod
    def attributes_are_right(request: pytest.FixtureRequest) -> None:
        """Say what the class lacks before any test fails by it."""
        contract: type[ComponentContract] = request.cls
        contract.check_attributes()

    @classmethod
    def check_attributes(cls) -> None:
        """Check what the class says of the component.

        Raises:
            TypeError: it does not name its class, or an attribute is not what it must be
        """
        cls.component()

    @classmethod
    def component(cls) -> type[Component]:
        """The component that is tried: the class attribute named like its kind.

        Raises:
            TypeError: there is none
        """
        singular = cls._kind.removesuffix("s")
        found = getattr(cls, singular, None)
        if not (inspect.isclass(found) and issubclass(found, Component)):
            raise TypeError(f"{cls.__name__}.{singular} must be the class that is tried, as in `{singular} = MyClass`")
        return found

    def test_name_and_help_are_fit(self) -> None:
        """It has a name that everybody can write, and a docstring whose first line tells what it is for."""
        component = self.component()
        name = getattr(component, "name", None)
        assert isinstance(name, str) and NAME.fullmatch(name), (
            f"{component.__name__}.name is {name!r}; say ASCII letters, digits, _ and -, 64 at most, a letter first"
        )
        own = component.__doc__ or ""
        first = inspect.cleandoc(own).partition("\n")[0]
        assert first.strip(), f"{component.__name__} has no docstring of its own; it is the component's help"
        assert len(first) <= FIRST_LINE, f"the docstring's first line has {len(first)} characters, over {FIRST_LINE}"

    def test_unknown_settings_are_refused_by_name(self) -> None:
        """A setting that does not exist is an error that names it."""
        component = self.component()
        with pytest.raises(UsageError, match="no_such_setting"):
            component(**{**self.settings, "no_such_setting": 1})

    def test_settings_have_defaults_and_are_explained(self) -> None:
        """Settings are a pydantic model, and its docstring says what each is for, which `config show` prints."""
        model = self.component().Settings
        assert issubclass(model, pydantic.BaseModel)
        text = "\n".join(inspect.getdoc(cls) or "" for cls in model.__mro__ if cls.__module__ != "pydantic.main")
        silent = [name for name in model.model_fields if not re.search(rf"^\s*{re.escape(name)}: ", text, re.MULTILINE)]
        assert not silent, f"say in the docstring of {model.__name__}, under `Attributes:`, what {silent[0]} is for"

    def test_a_plugin_registers_it_under_its_name(self) -> None:
        """What `debug-gym plugins` lists under the component's name is this component."""
        if not self.registered:
            pytest.skip("not registered: this contract says `registered = False`")
        component = self.component()
        assert self._kind in KINDS
        plugins = default_plugins()
        broken = [f"{record}: {record.cause}" for record in plugins.failed()]
        known: Mapping[str, type[Any]] = getattr(plugins, self._kind)
        assert component.name in known, (
            f"no installed plugin brings {self._kind.removesuffix('s')} {component.name!r}. Its module needs a function"
            f" debug_gym_register_{self._kind} marked @hookimpl, its pyproject.toml a line below"
            f" [project.entry-points.debug_gym], and it must be installed: pip install -e .  (failed: {broken})"
        )
        assert known[component.name] is component
