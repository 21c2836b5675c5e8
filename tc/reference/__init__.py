"""The oracle: what a program means, in float64, with a bound on what any correct kernel may compute."""
