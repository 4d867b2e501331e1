"""Equations of chemistry are balanced: atoms and charges are counted, what is none is left alone."""

from __future__ import annotations

import pytest

from pipeline.content.checks_prose import unbalanced


@pytest.mark.parametrize(
    "text",
    [
        "CH₄ + 2O₂ → CO₂ + 2H₂O",
        "In Mg + 2HCl → MgCl₂ + H₂, 0.1 mol of magnesium is used.",
        "Fe³⁺(aq) + 3OH⁻(aq) → Fe(OH)₃(s)",
        "MnO₄⁻ + 8H⁺ + 5e⁻ → Mn²⁺ + 4H₂O",
        "CuSO₄·5H₂O → CuSO₄ + 5H₂O",
        "N₂(g) + 3H₂(g) ⇌ 2NH₃(g)",
        "CH₃CH₂OH → CH₂=CH₂ + H₂O",
        "A → B + C, glucose + O₂ → CO₂ + H₂O",
        "Balance the equation Mg + HCl → MgCl₂ + H₂.",
    ],
)
def test_balanced_equations_and_what_is_none_stand(text: str) -> None:
    assert not list(unbalanced(text))


@pytest.mark.parametrize(
    "text",
    [
        "Mg + HCl → MgCl₂ + H₂. Calculate the mass of magnesium.",
        "CaCO₃ → CaO + 2CO₂",
        "Cu²⁺ + e⁻ → Cu",
        "Zn + 2AgNO₃ → Zn(NO₃)₂ + Ag",
        "MnO₄⁻ + 8H⁺ + 4e⁻ → Mn²⁺ + 4H₂O",
    ],
)
def test_other_atoms_or_charges_are_found(text: str) -> None:
    assert list(unbalanced(text))
