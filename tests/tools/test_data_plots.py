"""Plots look as they did when somebody looked at them: `plots/` has the pictures.

`python -m tests.tools.test_data_plots` draws them anew; look at them before keeping them.
"""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.sixels import coloured, decoded, png, uncoloured
from toolgate.tools.data.latex.rendering import rendered
from toolgate.tools.data.plotting.bins import bins_of, text_of
from toolgate.tools.data.plotting.chart import Chart, Look
from toolgate.tools.data.plotting.curve import broken, curves, visible
from toolgate.tools.data.plotting.drawing import drawn
from toolgate.tools.data.plotting.scale import scale
from toolgate.tools.data.plotting.series import Series, series_of, span

pytestmark = pytest.mark.req("T1", "T2")
PLOTS = Path(__file__).parent / "plots"
STEPS = [at / 5 for at in range(51)]
WAVES = {
    "sin": [math.sin(one) * math.exp(-one / 8) for one in STEPS],
    "cos": [math.cos(one) for one in STEPS],
}
FORMULAS = [
    r"x = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}",
    r"\sum_{i=1}^{n} i^2 = \frac{n(n+1)(2n+1)}{6}",
    r"\int_0^\infty e^{-x^2} \, dx = \frac{\sqrt{\pi}}{2}",
    r"\begin{pmatrix} a & b \\ c & d \end{pmatrix} \begin{pmatrix} x \\ y \end{pmatrix}",
    r"\lim_{x \to 0} \frac{\sin x}{x} = 1",
    r"f(x) = \begin{cases} x^2 & \text{if } x \geq 0 \\ -x & \text{otherwise} \end{cases}",
    r"\left( \frac{a}{b} \right)^{n+1} + \sqrt[3]{\frac{x}{y}}",
    r"\prod_{k=1}^{\infty} \left(1 - \frac{1}{k^2}\right)",
    r"\nabla \cdot \vec{E} = \frac{\rho}{\varepsilon_0}",
    r"\hat{H}\psi = E\psi, \quad \psi \in \mathcal{L}(\mathbb{R}^n)",
    r"\frac{1}{1+\frac{1}{1+\frac{1}{x}}}",
    r"\binom{n}{k} = \frac{n!}{k!(n-k)!}",
    r"\det\begin{vmatrix} a & b \\ c & d \end{vmatrix} = ad - bc",
    r"\begin{aligned} x &= 1 + 2 \\ &= 3 \end{aligned}",
    r"A = \begin{bmatrix} 1 & \frac{1}{2} \\ 0 & -1 \end{bmatrix}",
    r"\forall \epsilon > 0 \; \exists \delta > 0",
    r"\underbrace{a+b+c}_{n} \leq \overline{xyz}",
    r"P(A|B) = \frac{P(B|A)P(A)}{P(B)}",
    r"\sigma = \sqrt{\frac{1}{N}\sum_{i=1}^N (x_i-\mu)^2}",
    r"\frac{\partial^2 u}{\partial t^2} = c^2 \nabla^2 u",
    r"\left\{ x \mid x > \frac12 \right\} \cup \emptyset",
    r"\log_2 x + \max_{x \in S} f(x)",
    r"\left. \frac{df}{dx} \right|_{x=0}",
    r"\|x\|_2 \leq \sqrt{n}\,\|x\|_\infty",
    r"\oint \vec{F}\cdot d\vec{r} = \iint_D f(x,y)\,dA",
    r"a_1^2 + a_{n+1}^{2k} - x_{\max} \equiv 1 \pmod{n}",
    r"\boxed{E = mc^2} \implies \neg (p \land q)",
    r"H_2O \rightleftharpoons x^{a^b} \pm f''(t)",
    r"{n \choose k} + {a \over b} \times -\frac{1}{2}",
    r"\bigcup_{i \in I} A_i \subseteq \left\lfloor \frac{a}{b} \right\rfloor",
]


def chart(given: Any, x: list[float] | None = None, **look: Any) -> str:
    series = series_of(given, x)
    across = span([place for one in series for place, _y in one.points], None, None)
    up = span([y for one in series for y in one.heights], None, None)
    return Chart(series, across, up, Look(**look)).text()


def function(*expressions: str, low: float = -10, high: float = 10, **look: Any) -> str:
    found = curves(list(expressions), {}, low, high, 4 * Look(**look).width + 1)
    up = span([end for one in found for end in visible(one["y"])], None, None)
    series = [
        broken(Series(text, tuple(zip(one["x"], one["y"], strict=True))), *up)
        for text, one in zip(expressions, found, strict=True)
    ]
    return Chart(series, (low, high), up, Look(**look)).text()


def bars(values: list[float]) -> str:
    is_whole = all(map(float.is_integer, values))
    found = bins_of(values, None, min(values), max(values))
    return text_of(found, 40, "Sizes", is_whole=is_whole)


def formulas(style: str) -> str:
    return "\n\n".join(f"{one}\n{rendered(one, style)['text']}" for one in FORMULAS)


TEXTS = {
    "waves": lambda: chart(WAVES, STEPS, title="Waves", x_label="t in s", y_label="amplitude"),
    "gap": lambda: chart([3, 1, 4, 1, 5, 9, 2, 6, None, 5, 3, 5], width=40, height=10),
    "points": lambda: chart([[1, 2], [2, 4], [3, 5], [4.5, 8]], kind="scatter", width=40, height=8),
    "large": lambda: chart([1e6, 2.5e6, 1.2e7], width=30, height=6),
    "sinc": lambda: function("sin(x)/x"),
    "tan": lambda: function("tan(x)", low=-5, high=5),
    "three": lambda: function("x^2", "1/x", "sqrt(x)", low=-3, high=3),
    "exp": lambda: function("exp(x)", height=10),
    "histogram": lambda: bars([at % 37 * at % 53 / 7 for at in range(1, 300)]),
    "whole": lambda: bars([float(at * at % 7) for at in range(60)]),
    "formulas": lambda: formulas("unicode"),
    "formulas_ascii": lambda: formulas("ascii"),
}
PICTURES: dict[str, dict[str, Any]] = {
    "waves": {
        "series": WAVES,
        "x": STEPS,
        "look": {"title": "Waves", "x_label": "t in s", "y_label": "amplitude", "width": 640},
    },
    "points": {
        "series": {"a": [[at, at * at % 17] for at in range(40)], "b": [[3, 4], [9, 12]]},
        "look": {"kind": "scatter"},
        "dark": True,
    },
    "gap": {"series": [1, 2, None, 4, 3, 2, None, 7, None, 3], "look": {}},
}


def picture(name: str) -> tuple[list[list[int]], dict[int, tuple[int, int, int]]]:
    asked: dict[str, Any] = {"x": None, "y_min": None, "y_max": None, "dark": False}
    found = drawn(
        **(
            asked
            | PICTURES[name]
            | {"look": {"width": 320, "height": 200} | PICTURES[name]["look"]}
        )
    )
    return decoded(found["sixel"])


@pytest.mark.parametrize("name", TEXTS)
def test_a_plot_looks_as_it_did(name: str) -> None:
    assert TEXTS[name]() + "\n" == (PLOTS / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_looks_as_it_did(name: str) -> None:
    rows, palette = picture(name)
    assert coloured(rows, palette) == uncoloured((PLOTS / f"{name}.png").read_bytes())
    # Every dot is drawn, and the first series is.
    assert not any(-1 in row for row in rows)
    assert any(3 in row for row in rows)


@settings(max_examples=80, deadline=None)
@given(
    low=st.floats(-1e12, 1e12),
    size=st.floats(1e-9, 1e12),
    most=st.integers(2, 20),
    is_loose=st.booleans(),
)
def test_an_axis_holds_its_range_and_tells_its_numbers_apart(
    low: float,
    size: float,
    most: int,
    is_loose: bool,  # noqa: FBT001
) -> None:
    high = low + size
    if high - low < max(abs(low), abs(high)) * 1e-9:
        return
    found = scale(low, high, most, is_loose=is_loose)
    slack = (high - low) * 1e-6
    assert len(found.ticks) <= max(most, 3)
    assert len(set(found.labels)) == len(found.labels)
    if is_loose:
        assert found.low <= low + slack
        assert found.high >= high - slack
        assert len(found.ticks) >= 2
    else:
        assert (found.low, found.high) == (low, high)


@settings(max_examples=80, deadline=None)
@given(
    values=st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60),
    bins=st.none() | st.integers(1, 50),
)
def test_every_number_is_in_one_bin(values: list[float], bins: int | None) -> None:
    found = bins_of(values, bins, min(values), max(values))
    assert sum(one.count for one in found) == len(values)
    assert len(found) <= 50


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.none() | st.floats(-1e200, 1e200), min_size=1, max_size=30).filter(
        lambda some: any(one is not None for one in some)
    ),
    width=st.integers(16, 60),
    height=st.integers(4, 20),
)
def test_any_numbers_fit_into_their_frame(
    values: list[float | None], width: int, height: int
) -> None:
    lines = chart(values, width=width, height=height).split("\n")
    margin = max(line.find("│") if "│" in line else line.find("┤") for line in lines)
    assert len(lines) <= height + 4
    assert all(len(line) <= margin + 1 + width + 8 for line in lines)


def main() -> None:
    """All of them, anew."""
    PLOTS.mkdir(exist_ok=True)
    for name, plot in TEXTS.items():
        (PLOTS / f"{name}.txt").write_text(plot() + "\n", "utf-8")
    for name in PICTURES:
        (PLOTS / f"{name}.png").write_bytes(png(*picture(name)))


if __name__ == "__main__":
    main()
