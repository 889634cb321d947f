"""A contract for import-linter (see pyproject.toml): packages that are sent to where nothing else of ours is."""

from __future__ import annotations

from typing import Any

from importlinter import Contract, ContractCheck, fields, output


class Travels(Contract):
    """Packages that import none of the root packages' modules but their own and those of one that they share."""

    packages = fields.ListField(subfield=fields.StringField())
    shared = fields.StringField()

    def check(self, graph: Any, verbose: bool) -> ContractCheck:
        shared: Any = self.shared
        found = [
            f"{module} -> {imported}"
            for package in [*self.packages, shared]  # type: ignore[attr-defined]
            for module in sorted({package, *graph.find_descendants(package)})
            for imported in sorted(graph.find_modules_directly_imported_by(module))
            if imported != package and not imported.startswith((f"{package}.", f"{shared}."))
        ]
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for line in check.metadata["found"]:
            output.print_error(line, bold=False)
