"""Roots of a polynomial in one unknown: exact where they can be read, and numbers for all others.

Needs SymPy and numpy, so that only workers import this.
"""

from typing import Any

import numpy as np

from toolgate.tools.math.symbols import sympy

# A cubic's roots are exact where they are not a page of cubic roots with i in them.
_CUBIC = 3
# Above this degree all roots are numbers, of as many digits as a float has.
_SEVERAL = 20
_HIGHEST = 200
_DIGITS = 17


def polynomial(side: Any, unknown: Any) -> Any:
    """As a polynomial with rational coefficients, where it is one that is not too large."""
    if any(one.exp.is_Integer and one.exp > _HIGHEST for one in side.atoms(sympy.Pow)):
        return None
    if not side.is_polynomial(unknown):
        return None
    found = sympy.Poly(side, unknown)
    is_rational = found.domain.is_ZZ or found.domain.is_QQ
    return found if is_rational and 1 <= found.degree() <= _HIGHEST else None


def roots(found: Any) -> list[Any]:
    """Each once, however often it is one."""
    every: list[Any] = []
    for factor, _times in found.factor_list()[1]:
        exact = list(sympy.roots(factor, quartics=False)) if _is_readable(factor) else []
        if len(exact) == factor.degree():
            every += exact
        elif factor.degree() <= _SEVERAL:
            every += factor.nroots(n=_DIGITS, maxsteps=200)
        else:
            every += _nearly(factor)
    return every


def _is_readable(factor: Any) -> bool:
    if factor.degree() == _CUBIC:
        return sympy.discriminant(factor) < 0
    return factor.degree() <= _SEVERAL


def _nearly(factor: Any) -> list[Any]:
    """As eigenvalues of a matrix, each made better by a few steps of Newton's."""
    coefficients = np.array([float(one) for one in factor.all_coeffs()])
    slopes = np.polyder(coefficients)
    found = np.roots(coefficients).astype(complex)
    with np.errstate(all="ignore"):
        for _ in range(3):
            step = np.polyval(coefficients, found) / np.polyval(slopes, found)
            found = found - np.where(np.isfinite(step), step, 0)
    return [
        sympy.Float(float(one.real), _DIGITS) + sympy.I * sympy.Float(float(one.imag), _DIGITS)
        for one in found
    ]
