"""The commands of LaTeX that stand for signs, by name."""

_GREEK = (
    "alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι "
    "kappa κ lambda λ mu μ nu ν xi ξ omicron ο pi π varpi ϖ rho ρ varrho ϱ sigma σ varsigma ς "
    "tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π "
    "Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω"
)
_ORDINARY = (
    "infty ∞ partial ∂ nabla ∇ hbar ℏ ell ℓ Re ℜ Im ℑ aleph ℵ beth ℶ wp ℘ emptyset ∅ varnothing ∅ "
    "forall ∀ exists ∃ nexists ∄ neg ¬ lnot ¬ top ⊤ bot ⊥ angle ∠ triangle △ square □ Box □ "
    "diamond ⋄ star ⋆ prime ′ degree ° dagger † ddagger ‡ S § P ¶ pounds £ euro € copyright © "
    "ldots … dots … cdots ⋯ vdots ⋮ ddots ⋱ dotsc … dotsb ⋯ imath ı jmath ȷ checkmark ✓ "
    "clubsuit ♣ diamondsuit ♢ heartsuit ♡ spadesuit ♠ flat ♭ natural ♮ sharp ♯ surd √ "
    "blacksquare ■ qed ∎ backslash \\ lbrace { rbrace } lbrack [ rbrack ] "
    "langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ vert | Vert ‖ lvert | rvert | lVert ‖ "
    "rVert ‖"
)
_BINARY = (
    "pm ± mp ∓ times × div ÷ cdot · ast ∗ circ ∘ bullet ∙ cap ∩ cup ∪ sqcap ⊓ sqcup ⊔ uplus ⊎ "
    "wedge ∧ land ∧ vee ∨ lor ∨ oplus ⊕ ominus ⊖ otimes ⊗ oslash ⊘ odot ⊙ setminus ∖ wr ≀ amalg ⨿ "
    "bmod mod"
)
_RELATION = (
    "leq ≤ le ≤ geq ≥ ge ≥ neq ≠ ne ≠ ll ≪ gg ≫ equiv ≡ sim ∼ simeq ≃ approx ≈ cong ≅ propto ∝ "
    "doteq ≐ prec ≺ succ ≻ preceq ⪯ succeq ⪰ subset ⊂ supset ⊃ subseteq ⊆ supseteq ⊇ nsubseteq ⊈ "
    "subsetneq ⊊ in ∈ notin ∉ ni ∋ mid ∣ nmid ∤ parallel ∥ perp ⊥ vdash ⊢ dashv ⊣ models ⊨ "
    "to → rightarrow → leftarrow ← gets ← leftrightarrow ↔ Rightarrow ⇒ Leftarrow ⇐ "
    "Leftrightarrow ⇔ implies ⟹ impliedby ⟸ iff ⟺ mapsto ↦ longrightarrow ⟶ longleftarrow ⟵ "
    "Longrightarrow ⟹ longmapsto ⟼ uparrow ↑ downarrow ↓ updownarrow ↕ Uparrow ⇑ Downarrow ⇓ "
    "nearrow ↗ searrow ↘ swarrow ↙ nwarrow ↖ hookrightarrow ↪ hookleftarrow ↩ rightleftharpoons ⇌ "
    "leadsto ⇝ coloneqq ≔ triangleq ≜ lesssim ≲ gtrsim ≳ therefore ∴ because ∵ asymp ≍ colon :"
)


def _pairs(text: str) -> dict[str, str]:
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


ORDINARY: dict[str, str] = {
    **_pairs(_GREEK),
    **_pairs(_ORDINARY),
    **{one: one for one in "{}#$%&_"},
    "|": "‖",
    "-": "",
}
BINARY = _pairs(_BINARY)
RELATION = _pairs(_RELATION)
# As ASCII; Greek letters are written by name there.
_PLAIN = (
    "∞ oo ∂ d ∇ nabla ℏ hbar … ... ⋯ ... ⋮ : ⋱ \\ ± +/- ∓ -/+ × * ÷ / · * ∗ * ∘ o ∙ * ≤ <= ≥ >= "
    "≠ != ≪ << ≫ >> ≡ == ∼ ~ ≈ ~= ′ ' → -> ← <- ↔ <-> ⇒ => ⇐ <= ⇔ <=> ⟹ ==> ⟸ <== ⟺ <=> ∈ in ∅ {} "
    "∃ exists ¬ not ∧ and ∨ or ∪ U ∩ n ∣ | ‖ || ↦ |-> ≃ ~= ≅ ~= ⟨ < ⟩ > ∥ || ⊕ (+) ⊗ (x) √ sqrt "
    "ℓ l ∖ \\ − - ⟶ --> ⟵ <-- ⊥ _|_ ⇌ <=> ≔ := ↑ ^ ↓ v"
)
PLAIN = {
    **{sign: name for name, sign in _pairs(_GREEK).items()},
    **_pairs(_PLAIN),
    "∉": "not in",
    "∀": "for all",
    "⊂": "subset of",
    "⊆": "subset of or =",
    "°": " deg",
}
# For signs that have no other form.
WORDS = {sign: name for name, sign in (ORDINARY | BINARY | RELATION).items()}
FUNCTIONS = frozenset(
    "arccos arcsin arctan arg cos cosh cot coth csc deg dim exp hom ker lg ln log sec sin sinh tan "
    "tanh Pr".split()
)
# Their scripts stand above and below.
LIMITS = frozenset("lim limsup liminf max min sup inf det gcd argmax argmin".split())
LARGE = {
    "sum": "∑", "prod": "∏", "coprod": "∐", "bigcup": "⋃", "bigcap": "⋂", "bigvee": "⋁",
    "bigwedge": "⋀", "bigoplus": "⨁", "bigotimes": "⨂", "bigsqcup": "⨆",
    "int": "∫", "iint": "∬", "iiint": "∭", "oint": "∮",
}  # fmt: skip
ACCENTS = {
    "hat": "\u0302", "widehat": "\u0302", "bar": "\u0304", "overline": "\u0305", "vec": "\u20d7",
    "overrightarrow": "\u20d7", "dot": "\u0307", "ddot": "\u0308", "tilde": "\u0303",
    "widetilde": "\u0303", "check": "\u030c", "breve": "\u0306", "acute": "\u0301",
    "grave": "\u0300", "mathring": "\u030a", "underline": "\u0332", "overbrace": "⏞",
    "underbrace": "⏟", "cancel": "\u0338", "boxed": "□",
}  # fmt: skip
SPACES = {
    ",": 1,
    ":": 1,
    ";": 1,
    " ": 1,
    "~": 1,
    "quad": 2,
    "qquad": 4,
    "!": 0,
    ">": 1,
    "thinspace": 1,
}
# They say how something is set, which a terminal cannot.
SILENT = frozenset(
    "displaystyle textstyle scriptstyle limits nolimits nonumber notag big Big bigg Bigg bigl bigr "
    "Bigl Bigr biggl biggr Biggl Biggr middle rm bf it cal hline".split()
)
