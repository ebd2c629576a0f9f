"""Letters of other alphabets, and small ones that stand above and below a line."""

_ABOVE = (
    "0⁰ 1¹ 2² 3³ 4⁴ 5⁵ 6⁶ 7⁷ 8⁸ 9⁹ +⁺ -⁻ −⁻ =⁼ (⁽ )⁾ aᵃ bᵇ cᶜ dᵈ eᵉ fᶠ gᵍ hʰ iⁱ "
    "jʲ kᵏ lˡ mᵐ nⁿ oᵒ pᵖ rʳ sˢ tᵗ uᵘ vᵛ wʷ xˣ yʸ zᶻ Tᵀ ′′ ∗* **"
)
_BELOW = (
    "0₀ 1₁ 2₂ 3₃ 4₄ 5₅ 6₆ 7₇ 8₈ 9₉ +₊ -₋ −₋ =₌ (₍ )₎ aₐ eₑ hₕ iᵢ jⱼ kₖ lₗ mₘ nₙ "
    "oₒ pₚ rᵣ sₛ tₜ uᵤ vᵥ xₓ"
)
ABOVE = {one[0]: one[1] for one in _ABOVE.split()}
BELOW = {one[0]: one[1] for one in _BELOW.split()}
# Letters that were there before the alphabet had a place of its own.
_ODD = {
    "mathbb": dict(zip("CHNPQRZ", "ℂℍℕℙℚℝℤ", strict=True)),
    "mathcal": dict(zip("BEFHILMR", "ℬℰℱℋℐℒℳℛ", strict=True))
    | dict(zip("ego", "ℯℊℴ", strict=True)),
    "mathfrak": dict(zip("CHIRZ", "ℭℌℑℜℨ", strict=True)),
}
_FIRST = {
    "mathbb": (0x1D538, 0x1D552),
    "mathcal": (0x1D49C, 0x1D4B6),
    "mathfrak": (0x1D504, 0x1D51E),
}
ALPHABETS = {"mathscr": "mathcal", "mathbb": "mathbb", "mathcal": "mathcal", "mathfrak": "mathfrak"}


def raised(text: str) -> str | None:
    """A text of small letters above the line, where there are such."""
    return _small(text, ABOVE)


def lowered(text: str) -> str | None:
    """The same below the line."""
    return _small(text, BELOW)


def letters(alphabet: str, text: str) -> str:
    """A text in another alphabet."""
    name = ALPHABETS[alphabet]
    large, small = _FIRST[name]
    found: list[str] = []
    for sign in text:
        if sign in _ODD[name]:
            found.append(_ODD[name][sign])
        elif "A" <= sign <= "Z":
            found.append(chr(large + ord(sign) - ord("A")))
        elif "a" <= sign <= "z":
            found.append(chr(small + ord(sign) - ord("a")))
        else:
            found.append(sign)
    return "".join(found)


def _small(text: str, table: dict[str, str]) -> str | None:
    found = [table.get(one, "") for one in text.replace(" ", "")]
    return "".join(found) if found and all(found) else None
