"""Texts, their formulas and figures as other programs take them: spoken, typed, for Office, for typst, as pictures."""
